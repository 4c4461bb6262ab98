// Where kernels work, and when the memory that they give back is freed.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "executor_state.h"
#include "fork_lock.h"
#include "kernels.h"

struct mtf_kernel_site {
  mtf_kernel_place place = {};  // first: the host runtime knows no more
  mtf_executor* executor = nullptr;
  mtf_arena* arena = nullptr;
  std::string device_name;
  std::atomic<int> references{1};
  mtf::Lock lock;  // of what follows
  mtf_memory* deferred = nullptr;  // given back by threads of plugins, as asynchronous kernels have

  ~mtf_kernel_site() {
    while (deferred != nullptr) mtf_memory_free(std::exchange(deferred, deferred->next_deferred));
    if (arena != nullptr) mtf_arena_release(arena);
    if (executor != nullptr) executor->release();
  }
  mtf_kernel_site* retain() {
    references.fetch_add(1);
    return this;
  }
  void release() {
    if (references.fetch_sub(1) == 1) delete this;
  }
};

namespace mtf {

// For as long as this thread may queue work of a kernel on a stream.
class Queueing {
 public:
  explicit Queueing(bool has_stream);
  ~Queueing();
  Queueing(const Queueing&) = delete;
  Queueing& operator=(const Queueing&) = delete;

 private:
  const bool outer_;
};

// Ends the temporary variables that kernels have left there.
void drop_temporaries_of(const mtf_kernel_site* site);

// Frees memory; while this thread queues work, which may use it, it is kept for mtf_kernel_take_deferred.
void free_after_queueing(mtf_memory* memory);

}  // namespace mtf
