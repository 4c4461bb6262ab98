// What a defect of the device fixture can change, and how one is written.
//
// The fixture is the reference plugin, except for the one defect that the environment variable
// MODULAR_TF_FIXTURE_DEFECT names by the check that must find it. A file defects_GROUP.cc lists
// those of the checks of one group:
//
//   DEFECTS(memory) = {
//       {"SE-110", [](Tables& tables) {
//          tables.executor.allocate = [](const SP_Device* device, uint64_t size, int64_t space,
//                                        SP_DeviceMemoryBase* memory) {
//            original.executor.allocate(device, size, space, memory);
//            memory->size = size + 1;
//          };
//        }},
//   };
#pragma once

#include "chosen_defect.h"
#include "modular_tf/device.h"
#include "modular_tf/status.h"

namespace defective {

// What the entry point ends with.
struct Outcome {
  TF_Status* status;       // OK, until a defect sets it
  bool is_untold = false;  // the host's status is left as it is
};

// What the reference plugin registered, and what its create_* functions hand out: the host sees
// what the defect makes of it. A defect that replaces create_device_fns, create_stream_executor or
// create_timer_fns calls the one in `original.platform_fns`, which fills in the changed table.
struct Tables {
  SE_PlatformRegistrationParams& params;
  Outcome& outcome;
  SP_Platform& platform;
  SP_PlatformFns& platform_fns;
  SP_DeviceFns& device_fns;
  SP_StreamExecutor& executor;
  SP_TimerFns& timer_fns;
};

// The reference plugin's own functions, for defects that call on.
struct Originals {
  SE_PlatformRegistrationParams params;
  SP_PlatformFns platform_fns;
  SP_DeviceFns device_fns;
  SP_StreamExecutor executor;
  SP_TimerFns timer_fns;
};
extern Originals original;

}  // namespace defective
