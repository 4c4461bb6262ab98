// One execution of a kernel: its inputs, its outputs, and how it ended.
#pragma once

#include <atomic>
#include <vector>

#include "fork_lock.h"
#include "node.h"
#include "variables.h"

namespace mtf::kernels {

struct CallInput {
  Tensor tensor;
  bool is_on_host = false;
  bool is_donated = false;
  VariableRef variable;  // of a resource or reference
};

struct CallOutput {
  Tensor tensor;
  bool is_set = false;
  VariableRef variable;  // of a reference
};

}  // namespace mtf::kernels

// Held by the caller, and by `done` of an asynchronous kernel until that has been run.
struct mtf_kernel_call {
  const mtf_kernel_node* node = nullptr;
  const mtf_kernel_place* place = nullptr;
  void* stream = nullptr;
  int64_t step = 0;
  std::vector<mtf::kernels::CallInput> inputs;
  std::vector<mtf::kernels::CallOutput> outputs;
  std::vector<uint64_t> input_checksums;  // before the call; empty where nobody compares them
  std::vector<std::unique_ptr<mtf::kernels::VariableLocks>> locks;  // until released, or the end
  mtf_kernel_failure failure = {};
  void* handle = nullptr;       // the context; ends with the call
  void* done_handle = nullptr;  // of asynchronous kernels
  std::atomic<int> holders{1};
  mtf::Lock lock;  // of what follows, and of `failure` of asynchronous kernels
  mtf::Signal ended;
  bool is_over = false;
  bool is_abandoned = false;

  ~mtf_kernel_call();
};

namespace mtf::kernels {

mtf_kernel_call* new_call(const mtf_kernel_node* node, const mtf_kernel_place* place, void* stream,
                          mtf_kernel_input* inputs, int32_t count, bool watches_inputs);
int compute(const mtf_kernel_definition* kernel, void* object, mtf_kernel_call* call);
int wait(mtf_kernel_call* call, uint64_t nanoseconds);
void take_failure(mtf_kernel_call* call, mtf_kernel_failure* failure);
void finish(mtf_kernel_call* call, mtf_kernel_input* inputs, mtf_kernel_output* outputs,
            mtf_kernel_failure* failure);
void abandon(mtf_kernel_call* call);
void free_call(mtf_kernel_call* call);
void drop_buffer(void* buffer);

// Contexts, as the functions on them need them.

// The call of a context; NULL after reporting that it is over.
mtf_kernel_call* call_of(const TF_OpKernelContext* handle, const char* function);
// The same; the status says so too.
mtf_kernel_call* call_of(const TF_OpKernelContext* handle, const char* function, TF_Status* status);

// Memory for a tensor on the host or the device of a call; false and a status where there is none.
bool allocate_for_call(const mtf_kernel_call* call, Tensor* tensor, bool on_host,
                       TF_Status* status);

}  // namespace mtf::kernels
