#include "device.h"

#include <cstdio>
#include <utility>

#include "guard.h"
#include "library.h"

namespace {

// Runs `call` if there is code at `slot`.
template <class Call>
mtf_error* call_code(const mtf_plugin* plugin, const char* name, void* slot, Call&& call) {
  if (mtf_is_executable(slot)) return mtf::guarded({plugin, name}, call);
  char message[128];
  std::snprintf(message, sizeof message, "%s points to %p, where there is no code", name, slot);
  return mtf::make_error(TF_INTERNAL, message);
}

template <class Function>
Function* as(void* slot) {
  return reinterpret_cast<Function*>(slot);
}

}  // namespace

extern "C" mtf_error* mtf_se_call(const mtf_plugin* plugin, const char* operation, void* slot,
                                  int32_t signature, void* first, void* second, void* third,
                                  int32_t* exists) {
  const bool destroys = signature >= MTF_SE_DESTROY_ALONE;
  if (destroys && exists != nullptr && std::exchange(*exists, 0) == 0) return nullptr;
  mtf_error* error = call_code(plugin, operation, slot, [&](TF_Status* status) {
    switch (signature) {
      case MTF_SE_INIT: return as<void(void*, TF_Status*)>(slot)(first, status);
      case MTF_SE_CREATE: return as<void(void*, void*, TF_Status*)>(slot)(first, second, status);
      case MTF_SE_DESTROY_ALONE: return as<void(void*)>(slot)(first);
      case MTF_SE_DESTROY: return as<void(void*, void*)>(slot)(first, second);
      default: return as<void(void*, void*, void*)>(slot)(first, second, third);
    }
  });
  if (!destroys && exists != nullptr && error == nullptr) *exists = 1;
  return error;
}

extern "C" mtf_error* mtf_se_ask(const mtf_plugin* plugin, const char* operation, void* slot,
                                 const void* device, int32_t type, void* answer) {
  return call_code(plugin, operation, slot, [&](TF_Status*) {
    if (type == MTF_SE_INT32) {
      *static_cast<int32_t*>(answer) = as<int32_t(const void*)>(slot)(device);
    } else if (type == MTF_SE_INT64) {
      *static_cast<int64_t*>(answer) = as<int64_t(const void*)>(slot)(device);
    } else {
      *static_cast<double*>(answer) = as<double(const void*)>(slot)(device);
    }
  });
}
