/* The slots of the two tables by name: what "fns-create_device-null" clears. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "plan.h"

typedef struct slot {
  const char* table;
  const char* name;
  size_t offset; /* in the plan */
} slot;

#define FNS(name) {"fns", #name, offsetof(device_plan, platform_fns.name)}
#define EXECUTOR(name) {"executor", #name, offsetof(device_plan, executor.name)}

static const slot slots[] = {
    FNS(get_device_count),
    FNS(create_device),
    FNS(destroy_device),
    FNS(create_device_fns),
    FNS(destroy_device_fns),
    FNS(create_stream_executor),
    FNS(destroy_stream_executor),
    FNS(create_timer_fns),
    FNS(destroy_timer_fns),
    EXECUTOR(allocate),
    EXECUTOR(deallocate),
    EXECUTOR(host_memory_allocate),
    EXECUTOR(host_memory_deallocate),
    EXECUTOR(unified_memory_allocate),
    EXECUTOR(unified_memory_deallocate),
    EXECUTOR(get_allocator_stats),
    EXECUTOR(device_memory_usage),
    EXECUTOR(create_stream),
    EXECUTOR(destroy_stream),
    EXECUTOR(create_stream_dependency),
    EXECUTOR(get_stream_status),
    EXECUTOR(create_event),
    EXECUTOR(destroy_event),
    EXECUTOR(get_event_status),
    EXECUTOR(record_event),
    EXECUTOR(wait_for_event),
    EXECUTOR(create_timer),
    EXECUTOR(destroy_timer),
    EXECUTOR(start_timer),
    EXECUTOR(stop_timer),
    EXECUTOR(memcpy_dtoh),
    EXECUTOR(memcpy_htod),
    EXECUTOR(memcpy_dtod),
    EXECUTOR(sync_memcpy_dtoh),
    EXECUTOR(sync_memcpy_htod),
    EXECUTOR(sync_memcpy_dtod),
    EXECUTOR(block_host_for_event),
    EXECUTOR(block_host_until_done),
    EXECUTOR(synchronize_all_activity),
    EXECUTOR(mem_zero),
    EXECUTOR(memset),
    EXECUTOR(memset32),
    EXECUTOR(host_callback),
};

int clear_slot(const char* name) {
  for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); ++i) {
    char variant_name[64];
    snprintf(variant_name, sizeof(variant_name), "%s-%s-null", slots[i].table, slots[i].name);
    if (strcmp(variant_name, name) != 0) continue;
    void (*none)(void) = NULL;
    memcpy((char*)&plan + slots[i].offset, &none, sizeof(none));
    return 1;
  }
  return 0;
}
