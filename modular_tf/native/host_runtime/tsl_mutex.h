/* tsl::mutex as plugins of TensorFlow 2.16 were compiled: 16 opaque bytes, a constructor in the
 * host, a trivial destructor in the plugin, all zero when it was never constructed at run time. */
#pragma once

#include <atomic>
#include <cstdint>

#include "modular_tf/export.h"

namespace tsl {

class mutex {
 public:
  TF_CAPI_EXPORT mutex();
  TF_CAPI_EXPORT void lock();
  TF_CAPI_EXPORT void unlock();

 private:
  std::atomic<uint32_t> state_;
  uint32_t unused_[3];
};

static_assert(sizeof(mutex) == 16, "the size is compiled into plugins");

}  // namespace tsl
