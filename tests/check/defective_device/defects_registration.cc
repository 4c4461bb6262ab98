// Defects of what the entry point leaves, as the loader judges it.
#include "defects.h"

namespace {

using namespace defective;

char no_code[64];

template <class Slot>
void point_to_data(Slot& slot) {
  slot = reinterpret_cast<Slot>(reinterpret_cast<void*>(no_code));
}

SP_PlatformFns own_fns;

void give_own_fns(Tables& tables) {
  own_fns = tables.platform_fns;
  tables.params.platform_fns = &own_fns;
}

void fail_device_fns(const SP_Platform*, SE_CreateDeviceFnsParams*, TF_Status* status) {
  TF_SetStatus(status, TF_INTERNAL, "no device functions today");
}

void fail_executor(const SP_Platform*, SE_CreateStreamExecutorParams*, TF_Status* status) {
  TF_SetStatus(status, TF_INTERNAL, "no executor today");
}

}  // namespace

DEFECTS(registration) = {
    {"SE-002",
     [](Tables& tables) {
       TF_SetStatus(tables.outcome.status, TF_UNAVAILABLE, "the driver is too old");
     }},
    {"SE-005", [](Tables& tables) { tables.params.struct_size = 0; }},
    {"SE-006", [](Tables& tables) { tables.params.patch_version = 99; }},
    {"SE-007", give_own_fns},
    {"SE-008",
     [](Tables& tables) { tables.params.platform = reinterpret_cast<SP_Platform*>(64); }},
    {"SE-009", [](Tables& tables) { tables.params.destroy_platform = nullptr; }},
    {"SE-010", [](Tables& tables) { tables.params.destroy_platform_fns = nullptr; }},
    {"SE-011", [](Tables& tables) { tables.platform.struct_size = 0; }},
    {"SE-012", [](Tables& tables) { tables.platform.name = nullptr; }},
    {"SE-013", [](Tables& tables) { tables.platform.name = "defect"; }},
    {"SE-014", [](Tables& tables) { tables.platform.type = nullptr; }},
    {"SE-015", [](Tables& tables) { tables.platform.type = "DEFECT:0"; }},
    {"SE-016", [](Tables& tables) { tables.platform.force_memory_growth = 2; }},
    {"SE-017", [](Tables& tables) { tables.platform_fns.struct_size = 0; }},
    {"SE-018", [](Tables& tables) { tables.platform_fns.destroy_device = nullptr; }},
    {"SE-019", [](Tables& tables) { tables.platform_fns.get_device_count = nullptr; }},
    {"SE-020", [](Tables& tables) { tables.platform_fns.destroy_timer_fns = nullptr; }},
    {"SE-021", [](Tables& tables) { tables.platform_fns.create_device_fns = fail_device_fns; }},
    {"SE-022", [](Tables& tables) { tables.device_fns.struct_size = 0; }},
    {"SE-023", [](Tables& tables) { tables.platform_fns.create_stream_executor = fail_executor; }},
    {"SE-024", [](Tables& tables) { tables.executor.struct_size = 0; }},
    {"SE-025", [](Tables& tables) { tables.executor.allocate = nullptr; }},
    {"SE-026", [](Tables& tables) { tables.executor.unified_memory_allocate = nullptr; }},
    {"SE-027", [](Tables& tables) { tables.executor.sync_memcpy_dtod = nullptr; }},
    {"SE-028", [](Tables& tables) { tables.executor.stop_timer = nullptr; }},
    {"SE-029", [](Tables& tables) { point_to_data(tables.executor.allocate); }},
    {"SE-030", [](Tables& tables) { tables.device_fns.struct_size -= 1; }},
    {"SE-031", [](Tables& tables) { tables.device_fns.struct_size += 8; }},
    {"SE-033", [](Tables& tables) { tables.executor.memset32 = nullptr; }},
};
