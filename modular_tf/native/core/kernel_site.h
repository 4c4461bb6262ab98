// Where kernels work, and when the memory that they give back is freed.
#ifndef MODULAR_TF_CORE_KERNEL_SITE_H_
#define MODULAR_TF_CORE_KERNEL_SITE_H_

#include <atomic>
#include <string>

#include "executor_state.h"
#include "kernels.h"

struct mtf_kernel_site {
  mtf_kernel_place place = {};  // first: the host runtime knows no more
  mtf_executor* executor = nullptr;
  mtf_arena* arena = nullptr;
  std::string device_name;
  std::atomic<int> references{1};

  ~mtf_kernel_site() {
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

// Frees memory; while this thread queues work, which may use it, it is kept for mtf_kernel_take_deferred.
void free_after_queueing(mtf_memory* memory);

}  // namespace mtf
#endif
