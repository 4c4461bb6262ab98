// Variables: tensors that outlive calls, and that kernels change in place.
//
// A resource or reference input of a call names one. Its memory may be seen by arrays of Python's at
// the same time: whoever changes it makes it exclusive first, by a copy where it is shared.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "fork_lock.h"
#include "host_types.h"
#include "tensor.h"

struct mtf_kernel_variable {
  std::atomic<int> references{1};
  std::atomic<int> abandoned_calls{0};  // that are not over, and whose callers were interrupted
  mtf::Lock lock;  // of what follows
  mtf::kernels::Tensor tensor;
  bool is_initialized = false;

  void retain() { references.fetch_add(1); }
  void release() {
    if (references.fetch_sub(1) == 1) delete this;
  }
};

namespace mtf::kernels {

struct ReleaseVariable {
  void operator()(mtf_kernel_variable* variable) const { variable->release(); }
};
using VariableRef = std::unique_ptr<mtf_kernel_variable, ReleaseVariable>;

// Variables that a kernel has locked, each once, in the order of their addresses.
struct VariableLocks {
  std::vector<mtf_kernel_variable*> locked;
  void* handle = nullptr;

  void unlock() {
    for (mtf_kernel_variable* variable : locked) variable->lock.unlock();
    locked.clear();
  }
  ~VariableLocks() {
    end_handle(handle, HandleKind::kVariableLocks);
    unlock();
  }
};

// Takes the lock of a variable. A kernel may hold it as long as it runs; but one that nobody waits for
// any more may never end. False and a failure: such a call of the variable was waited for in vain.
bool lock_variable(mtf_kernel_variable* variable, mtf_kernel_failure* failure);

mtf_kernel_variable* new_variable();
void free_variable(mtf_kernel_variable* variable);
// Gives a variable memory of a device, which is its own from now on: `owner` is for the place's `free`.
// With a failure the memory is free.
void set_variable(mtf_kernel_variable* variable, const mtf_kernel_place* place, void* data,
                  uint64_t size, void* owner, int32_t type, const int64_t* dims, int32_t rank,
                  mtf_kernel_failure* failure);
// Describes the value as an output with a hold on the memory, whose sizes are written to `dims`.
void read_variable(mtf_kernel_variable* variable, mtf_kernel_output* output, int64_t* dims,
                   mtf_kernel_failure* failure);
// Ends the temporary variables that kernels have left on a device.
void drop_temporaries(const mtf_kernel_place* place);

}  // namespace mtf::kernels
