/* The places of a device plugin, in front of the well-behaved one of tests/device/dialects, whose
 * SE_InitPlugin was renamed to dialect_init. */
#include "../device/dialects/layouts.h"
#include "misdeed.h"

void dialect_init(Registration* params, Status* status);

static PlatformFns well_behaved;

static void create_device(const Platform* platform, CreateDeviceParams* params, Status* status) {
  if (params->ordinal == 1) misbehave_at(CREATE_DEVICE);
  well_behaved.create_device(platform, params, status);
}
static void destroy_device(const Platform* platform, Device* device) {
  misbehave_at(DESTROY_DEVICE);
  well_behaved.destroy_device(platform, device);
}
static unsigned char memory_usage(const Device* device, int64_t* available, int64_t* total) {
  (void)device;
  misbehave_at(MEMORY_USAGE);
  *available = *total = 1 << 20;
  return 1;
}
static void create_executor(const Platform* platform, CreateExecutorParams* params,
                            Status* status) {
  well_behaved.create_stream_executor(platform, params, status);
  params->executor->device_memory_usage = memory_usage;
}

__attribute__((visibility("default"))) void SE_InitPlugin(Registration* params, Status* status) {
  misbehave_at(INIT);
  dialect_init(params, status);
  well_behaved = *params->platform_fns;
  params->platform_fns->create_device = create_device;
  params->platform_fns->destroy_device = destroy_device;
  params->platform_fns->create_stream_executor = create_executor;
}
