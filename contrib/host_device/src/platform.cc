// The entry point: the platform, how many devices it has, and the tables.
#include <charconv>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "device.h"
#include "reported.h"
#include "slots.h"

namespace host {
namespace {

constexpr int kMostDevices = 1024;  // all are the same machine: more is surely a slip

// True and the number when the environment asks for 0 to kMostDevices devices, or for nothing: 1.
bool wished_count(int& count) {
  count = 1;
  const char* text = std::getenv("MTF_HOST_DEVICE_COUNT");
  if (text == nullptr || *text == '\0') return true;
  const std::string_view digits(text);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  return whole && count >= 0 && count <= kMostDevices;
}

void get_device_count(const SP_Platform*, int* device_count, TF_Status* status) {
  *device_count = 0;
  int count = 0;
  if (wished_count(count)) {
    *device_count = count;
    return TF_SetStatus(status, TF_OK, "");
  }
  TF_SetStatus(status, TF_INVALID_ARGUMENT,
               "MTF_HOST_DEVICE_COUNT must be a number from 0 to 1024");
}

// NULL says "not known"; an empty name would be one.
const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

bool is_there(int32_t ordinal) {
  int count = 0;
  return wished_count(count) && ordinal >= 0 && ordinal < count;
}

void create_device(const SP_Platform*, SE_CreateDeviceParams* params, TF_Status* status) {
  if (!is_there(params->ordinal)) {
    return TF_SetStatus(status, TF_INVALID_ARGUMENT, "there is no device of this ordinal");
  }
  reported(status, [&] {
    auto made = std::make_unique<Device>();
    SP_Device& device = *params->device;
    device.struct_size = SP_DEVICE_STRUCT_SIZE;
    device.ordinal = params->ordinal;
    device.hardware_name = or_null(made->hardware_name);
    device.device_vendor = or_null(made->vendor);
    device.pci_bus_id = nullptr;  // the host sits on no bus
    device.device_handle = made.release();
  });
}

void destroy_device(const SP_Platform*, SP_Device* device) {
  delete static_cast<Device*>(device->device_handle);
  device->device_handle = nullptr;
}

void create_device_fns(const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status* status) {
  fill_device_fns(*params->device_fns);
  TF_SetStatus(status, TF_OK, "");
}

void create_stream_executor(const SP_Platform*, SE_CreateStreamExecutorParams* params,
                            TF_Status* status) {
  SP_StreamExecutor& executor = *params->stream_executor;
  executor.struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
  fill_memory_slots(executor);
  fill_stream_slots(executor);
  fill_event_slots(executor);
  fill_timer_slots(executor);
  fill_copy_slots(executor);
  TF_SetStatus(status, TF_OK, "");
}

void create_timer_fns(const SP_Platform*, SP_TimerFns* fns, TF_Status* status) {
  fill_timer_fns(*fns);
  TF_SetStatus(status, TF_OK, "");
}

// The tables point at functions and the names are literals: nothing to release.
void destroy_device_fns(const SP_Platform*, SP_DeviceFns*) {}
void destroy_stream_executor(const SP_Platform*, SP_StreamExecutor*) {}
void destroy_timer_fns(const SP_Platform*, SP_TimerFns*) {}
void destroy_platform(SP_Platform*) {}
void destroy_platform_fns(SP_PlatformFns*) {}

void fill_platform(SP_Platform& platform) {
  platform.struct_size = SP_PLATFORM_STRUCT_SIZE;
  platform.name = MTF_HOST_DEVICE_PLATFORM;
  platform.type = MTF_HOST_DEVICE_TYPE;
  platform.supports_unified_memory = 1;  // there is no other memory
  platform.use_bfc_allocator = 0;        // the heap is quick enough
  platform.force_memory_growth = 1;      // a host that pools all the same must not take it all
}

void fill_platform_fns(SP_PlatformFns& fns) {
  fns.struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
  fns.get_device_count = get_device_count;
  fns.create_device = create_device;
  fns.destroy_device = destroy_device;
  fns.create_device_fns = create_device_fns;
  fns.destroy_device_fns = destroy_device_fns;
  fns.create_stream_executor = create_stream_executor;
  fns.destroy_stream_executor = destroy_stream_executor;
  fns.create_timer_fns = create_timer_fns;
  fns.destroy_timer_fns = destroy_timer_fns;
}

// A host with smaller structs has no room for what we fill in.
bool has_room(const SE_PlatformRegistrationParams& params) {
  return params.struct_size >= SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE &&
         params.platform->struct_size >= SP_PLATFORM_STRUCT_SIZE &&
         params.platform_fns->struct_size >= SP_PLATFORM_FNS_STRUCT_SIZE;
}

}  // namespace
}  // namespace host

extern "C" TF_CAPI_EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                                             TF_Status* status) {
  if (params->major_version != SE_MAJOR || !host::has_room(*params)) {
    return TF_SetStatus(status, TF_FAILED_PRECONDITION,
                        "this plugin needs the device interface of TensorFlow 2.9 to 2.21");
  }
  host::fill_platform(*params->platform);
  host::fill_platform_fns(*params->platform_fns);
  params->struct_size = SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
  params->destroy_platform = host::destroy_platform;
  params->destroy_platform_fns = host::destroy_platform_fns;
  TF_SetStatus(status, TF_OK, "");
}
