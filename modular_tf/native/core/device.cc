#include "device.h"

#include <cstdio>
#include <utility>

#include "guard.h"
#include "library.h"

namespace {

// Runs `call` on the function at `slot`, which must be code.
template <class Function, class Call>
mtf_error* call_slot(const mtf_plugin* plugin, const char* name, void* slot, Call&& call) {
  if (!mtf_is_executable(slot)) {
    char message[128];
    std::snprintf(message, sizeof message, "%s points to %p, where there is no code", name, slot);
    return mtf::make_error(TF_INTERNAL, message);
  }
  return mtf::guarded({plugin, name}, [&](TF_Status* status) {
    call(reinterpret_cast<Function*>(slot), status);
  });
}

template <class Value>
mtf_error* ask_device(const mtf_plugin* plugin, const char* name, void* slot, const void* device,
                      Value* value) {
  return call_slot<Value(const void*)>(
      plugin, name, slot, [&](auto* ask, TF_Status*) { *value = ask(device); });
}

// Whether something is there to be destroyed, which the caller does.
bool claim(int32_t* exists) { return exists == nullptr || std::exchange(*exists, 0) != 0; }

}  // namespace

extern "C" {

mtf_error* mtf_se_init_plugin(const mtf_plugin* plugin, const char* operation, void* entry,
                              void* params) {
  return call_slot<void(void*, TF_Status*)>(
      plugin, operation, entry, [&](auto* init, TF_Status* status) { init(params, status); });
}

mtf_error* mtf_se_get_device_count(const mtf_plugin* plugin, const char* operation, void* slot,
                                   const void* platform, int32_t* count) {
  return call_slot<void(const void*, int32_t*, TF_Status*)>(
      plugin, operation, slot, [&](auto* get, TF_Status* status) { get(platform, count, status); });
}

mtf_error* mtf_se_create(const mtf_plugin* plugin, const char* operation, void* slot,
                         const void* platform, void* params, int32_t* exists) {
  mtf_error* error = call_slot<void(const void*, void*, TF_Status*)>(
      plugin, operation, slot,
      [&](auto* create, TF_Status* status) { create(platform, params, status); });
  if (exists != nullptr && error == nullptr) *exists = 1;
  return error;
}

mtf_error* mtf_se_destroy(const mtf_plugin* plugin, const char* operation, void* slot,
                          const void* platform, void* object, int32_t* exists) {
  if (!claim(exists)) return nullptr;
  return call_slot<void(const void*, void*)>(
      plugin, operation, slot,
      [&](auto* destroy, TF_Status*) { destroy(platform, object); });
}

mtf_error* mtf_se_destroy_allocator(const mtf_plugin* plugin, const char* operation, void* slot,
                                    const void* platform, void* allocator, void* fns,
                                    int32_t* exists) {
  if (!claim(exists)) return nullptr;
  return call_slot<void(const void*, void*, void*)>(
      plugin, operation, slot,
      [&](auto* destroy, TF_Status*) { destroy(platform, allocator, fns); });
}

mtf_error* mtf_se_destroy_registered(const mtf_plugin* plugin, const char* operation, void* slot,
                                     void* object, int32_t* exists) {
  if (!claim(exists)) return nullptr;
  return call_slot<void(void*)>(plugin, operation, slot,
                                [&](auto* destroy, TF_Status*) { destroy(object); });
}

mtf_error* mtf_se_get_numa_node(const mtf_plugin* plugin, const char* operation, void* slot,
                                const void* device, int32_t* node) {
  return ask_device(plugin, operation, slot, device, node);
}

mtf_error* mtf_se_get_memory_bandwidth(const mtf_plugin* plugin, const char* operation, void* slot,
                                       const void* device, int64_t* bytes_per_second) {
  return ask_device(plugin, operation, slot, device, bytes_per_second);
}

mtf_error* mtf_se_get_gflops(const mtf_plugin* plugin, const char* operation, void* slot,
                             const void* device, double* gflops) {
  return ask_device(plugin, operation, slot, device, gflops);
}

}  // extern "C"
