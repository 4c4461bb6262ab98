// The slots of a device plugin, for a PUT(slot) that gives each the function of its name; memset and
// memset32, which are names of the C library's, are left to the plugin.
#pragma once

#define EXECUTOR_SLOTS(PUT) \
  PUT(allocate) PUT(deallocate) PUT(host_memory_allocate) PUT(host_memory_deallocate) \
  PUT(unified_memory_allocate) PUT(unified_memory_deallocate) PUT(get_allocator_stats) \
  PUT(device_memory_usage) PUT(create_stream) PUT(destroy_stream) \
  PUT(create_stream_dependency) PUT(get_stream_status) PUT(create_event) PUT(destroy_event) \
  PUT(get_event_status) PUT(record_event) PUT(wait_for_event) PUT(create_timer) \
  PUT(destroy_timer) PUT(start_timer) PUT(stop_timer) PUT(memcpy_dtoh) PUT(memcpy_htod) \
  PUT(memcpy_dtod) PUT(sync_memcpy_dtoh) PUT(sync_memcpy_htod) PUT(sync_memcpy_dtod) \
  PUT(block_host_for_event) PUT(block_host_until_done) PUT(synchronize_all_activity) \
  PUT(mem_zero) PUT(host_callback)

#define PLATFORM_SLOTS(PUT) \
  PUT(get_device_count) PUT(create_device) PUT(destroy_device) PUT(create_device_fns) \
  PUT(destroy_device_fns) PUT(create_stream_executor) PUT(destroy_stream_executor)
