// Defects of the end: of one device among others, of the platform, of the process.
#include <cstdlib>
#include <stdexcept>

#include "defects.h"

namespace {

using namespace defective;

void throw_at_the_end(SP_Platform*) { throw std::runtime_error("not now"); }

// -- one of two devices ---------------------------------------------------------------------------

void count_two(const SP_Platform*, int* count, TF_Status* status) {
  *count = 2;
  TF_SetStatus(status, TF_OK, "");
}

void create_either(const SP_Platform* platform, SE_CreateDeviceParams* params, TF_Status* status) {
  SE_CreateDeviceParams first = *params;
  first.ordinal = 0;
  original.platform_fns.create_device(platform, &first, status);
  params->device->ordinal = params->ordinal;
}

bool is_over = false;

void destroy_all(const SP_Platform* platform, SP_Device* device) {
  if (device->ordinal == 1) is_over = true;
  original.platform_fns.destroy_device(platform, device);
}

void copy_unless_over(const SP_Device* device, void* target, const SP_DeviceMemoryBase* source,
                      uint64_t size, TF_Status* status) {
  if (is_over) return TF_SetStatus(status, TF_FAILED_PRECONDITION, "the driver is closed");
  original.executor.sync_memcpy_dtoh(device, target, source, size, status);
}

// -- the process ----------------------------------------------------------------------------------

bool aborts_when_destroyed = false, aborts_when_kept = false;
bool is_destroyed = false;

void note_the_end(SP_Platform* platform) {
  is_destroyed = true;
  original.params.destroy_platform(platform);
}

struct AtExit {
  ~AtExit() {
    if (is_destroyed ? aborts_when_destroyed : aborts_when_kept) std::abort();
  }
} at_exit;

}  // namespace

DEFECTS(lifetime) = {
    {"SE-032", [](Tables& tables) { tables.params.destroy_platform = throw_at_the_end; }},
    {"SE-180",
     [](Tables& tables) {
       tables.platform_fns.get_device_count = count_two;
       tables.platform_fns.create_device = create_either;
       tables.platform_fns.destroy_device = destroy_all;
       tables.executor.sync_memcpy_dtoh = copy_unless_over;
     }},
    {"SE-182",
     [](Tables& tables) {
       aborts_when_destroyed = true;
       tables.params.destroy_platform = note_the_end;
     }},
    {"SE-183",
     [](Tables& tables) {
       aborts_when_kept = true;
       tables.params.destroy_platform = note_the_end;
     }},
};
