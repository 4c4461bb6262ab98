// The entry point: the platform, how many devices it has, and the tables.
#include <memory>
#include <string>

#include "device.h"
#include "discovery.h"
#include "reported.h"
#include "slots.h"

namespace opencl {
namespace {

void get_device_count(const SP_Platform*, int* device_count, TF_Status* status) {
  *device_count = 0;
  reported(status, [&] { *device_count = static_cast<int>(found_devices().devices.size()); });
}

// NULL says "not known"; an empty name would be one.
const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

cl_device_id device_at(int32_t ordinal) {
  const auto& devices = found_devices().devices;
  if (ordinal >= 0 && static_cast<size_t>(ordinal) < devices.size()) {
    return devices[static_cast<size_t>(ordinal)];
  }
  throw Failed(TF_INVALID_ARGUMENT, "there is no OpenCL device " + std::to_string(ordinal) +
                                        ": found " + std::to_string(devices.size()));
}

void create_device(const SP_Platform*, SE_CreateDeviceParams* params, TF_Status* status) {
  reported(status, [&] {
    const cl_device_id id = device_at(params->ordinal);
    auto made = std::make_unique<Device>(shared_context(), id);
    SP_Device& device = *params->device;
    device.struct_size = SP_DEVICE_STRUCT_SIZE;
    device.ordinal = params->ordinal;
    device.hardware_name = or_null(made->hardware_name);
    device.device_vendor = or_null(made->vendor);
    device.pci_bus_id = or_null(made->pci_bus_id);
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

// Drivers that cannot be asked have no memory to share; get_device_count tells why.
bool host_shares_memory() {
  try {
    return found_devices().shares_with_host;
  } catch (const std::exception&) {
    return false;
  }
}

void fill_platform(SP_Platform& platform) {
  platform.struct_size = SP_PLATFORM_STRUCT_SIZE;
  platform.name = MTF_OPENCL_PLATFORM_NAME;
  platform.type = MTF_OPENCL_DEVICE_TYPE;
  platform.supports_unified_memory = host_shares_memory() ? 1 : 0;
  platform.use_bfc_allocator = 1;    // a driver's allocation is slow
  platform.force_memory_growth = 1;  // and on a host's processor it is the host's memory
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
}  // namespace opencl

extern "C" TF_CAPI_EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                                             TF_Status* status) {
  if (params->major_version != SE_MAJOR || !opencl::has_room(*params)) {
    return TF_SetStatus(status, TF_FAILED_PRECONDITION,
                        "this plugin needs the device interface of TensorFlow 2.9 to 2.21");
  }
  opencl::fill_platform(*params->platform);
  opencl::fill_platform_fns(*params->platform_fns);
  params->struct_size = SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
  params->destroy_platform = opencl::destroy_platform;
  params->destroy_platform_fns = opencl::destroy_platform_fns;
  TF_SetStatus(status, TF_OK, "");
}
