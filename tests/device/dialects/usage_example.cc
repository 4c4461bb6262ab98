// The usage example of the RFC of 2020-09-08, with its functions as they are printed there: three
// dots stand for nothing. Repaired is what no host can survive: the assignment loses the pointers
// that are written through next, and the strings end with the function while the host goes on
// reading them. The name of the allocator's parameters is the one that the RFC declares.
#include <string>

#include "modular_tf/device_rfc.h"

namespace {

int my_device;

void* get_my_device_handle() { return &my_device; }

void my_device_memcpy_from_host_function(const SP_Device* device, SP_Stream stream,
                                         SP_DeviceMemoryBase* device_dst, const void* host_src,
                                         uint64_t size, TF_Status* status) {}

uint64_t nanoseconds(SP_Timer timer) { return 0; }

void create_device(const SP_Platform* platform, SE_CreateDeviceParams* params, TF_Status* status) {
  params->device->device_handle = get_my_device_handle();
}
void create_stream_executor(const SP_Platform* platform, SE_CreateStreamExecutorParams* params,
                            TF_Status* status) {
  params->stream_executor->memcpy_htod = my_device_memcpy_from_host_function;
}
void create_timer_fns(const SP_Platform* platform, SP_TimerFns* timer_fns, TF_Status* status) {
  timer_fns->nanoseconds = nanoseconds;
}
void create_allocator(const SP_Platform* platform, SE_CreateAllocatorParams* params,
                      TF_Status* status) {}
void destroy_device(const SP_Platform* platform, SP_Device* device) {}
void destroy_stream_executor(const SP_Platform* platform, SP_StreamExecutor* se) {}
void destroy_timer_fns(const SP_Platform* platform, SP_TimerFns* timer_fns) {}
void destroy_allocator(const SP_Platform* platform, SP_Allocator* allocator,
                       SP_AllocatorFns* allocator_fns) {}

}  // namespace

void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  int32_t visible_device_count = 2;
  static std::string name = "MyDevice";
  static std::string type = "GPU";

  SP_Platform* const platform = params->platform;
  SP_PlatformFns* const platform_fns = params->platform_fns;
  *params = {SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE};
  params->platform = platform;
  params->platform_fns = platform_fns;
  params->platform->name = name.c_str();
  params->platform->type = type.c_str();
  params->platform->visible_device_count = visible_device_count;
  params->platform_fns->create_device = create_device;
  params->platform_fns->destroy_device = destroy_device;
  params->platform_fns->create_stream_executor = create_stream_executor;
  params->platform_fns->destroy_stream_executor = destroy_stream_executor;
  params->platform_fns->create_timer_fns = create_timer_fns;
  params->platform_fns->destroy_timer_fns = destroy_timer_fns;
  params->platform_fns->create_allocator = create_allocator;
  params->platform_fns->destroy_allocator = destroy_allocator;
}
