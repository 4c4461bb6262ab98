// Defects of what a device tells of its memory.
#include <limits>

#include "defects.h"

namespace {

using namespace defective;

template <class Change>
TF_Bool changed_stats(const SP_Device* device, SP_AllocatorStats* stats, Change change) {
  const TF_Bool known = original.executor.get_allocator_stats(device, stats);
  change(*stats);
  return known;
}

TF_Bool know_no_usage(const SP_Device*, int64_t*, int64_t*) { return 0; }
TF_Bool know_no_stats(const SP_Device*, SP_AllocatorStats*) { return 0; }

TF_Bool have_more_free(const SP_Device* device, int64_t* free, int64_t* total) {
  const TF_Bool known = original.executor.device_memory_usage(device, free, total);
  *free = *total + 1;
  return known;
}

TF_Bool grow(const SP_Device* device, int64_t* free, int64_t* total) {
  static int64_t grown = 0;
  const TF_Bool known = original.executor.device_memory_usage(device, free, total);
  *total += ++grown;
  return known;
}

TF_Bool have_negative(const SP_Device* device, SP_AllocatorStats* stats) {
  return changed_stats(device, stats, [](auto& s) { s.largest_free_block_bytes = -1; });
}

TF_Bool have_a_small_limit(const SP_Device* device, SP_AllocatorStats* stats) {
  return changed_stats(device, stats, [](auto& s) {
    s.has_bytes_limit = 1;
    s.bytes_limit = 1;
  });
}

TF_Bool never_fall(const SP_Device* device, SP_AllocatorStats* stats) {
  return changed_stats(device, stats, [](auto& s) { s.bytes_in_use = s.peak_bytes_in_use; });
}

TF_Bool count_twice(const SP_Device* device, SP_AllocatorStats* stats) {
  return changed_stats(device, stats, [](auto& s) { s.num_allocs *= 2; });
}

TF_Bool forget_the_peak(const SP_Device* device, SP_AllocatorStats* stats) {
  return changed_stats(device, stats, [](auto& s) { s.peak_bytes_in_use = s.bytes_in_use; });
}

TF_Bool forget_the_largest(const SP_Device* device, SP_AllocatorStats* stats) {
  return changed_stats(device, stats, [](auto& s) { s.largest_alloc_size = 1; });
}

TF_Bool forget_struct_size(const SP_Device* device, SP_AllocatorStats* stats) {
  return changed_stats(device, stats, [](auto& s) { s.struct_size = 0; });
}

TF_Bool have_an_odd_flag(const SP_Device* device, SP_AllocatorStats* stats) {
  return changed_stats(device, stats, [](auto& s) {
    s.has_bytes_reservable_limit = 2;
    s.bytes_reservable_limit = std::numeric_limits<int64_t>::max();
  });
}

}  // namespace

DEFECTS(accounting) = {
    {"SE-165", [](Tables& tables) { tables.executor.device_memory_usage = know_no_usage; }},
    {"SE-166", [](Tables& tables) { tables.executor.device_memory_usage = have_more_free; }},
    {"SE-167", [](Tables& tables) { tables.executor.device_memory_usage = grow; }},
    {"SE-169", [](Tables& tables) { tables.executor.get_allocator_stats = know_no_stats; }},
    {"SE-170", [](Tables& tables) { tables.executor.get_allocator_stats = have_negative; }},
    {"SE-171", [](Tables& tables) { tables.executor.get_allocator_stats = have_a_small_limit; }},
    {"SE-172", [](Tables& tables) { tables.executor.get_allocator_stats = never_fall; }},
    {"SE-173", [](Tables& tables) { tables.executor.get_allocator_stats = count_twice; }},
    {"SE-174", [](Tables& tables) { tables.executor.get_allocator_stats = forget_the_peak; }},
    {"SE-175", [](Tables& tables) { tables.executor.get_allocator_stats = forget_the_largest; }},
    {"SE-176", [](Tables& tables) { tables.executor.get_allocator_stats = forget_struct_size; }},
    {"SE-177", [](Tables& tables) { tables.executor.get_allocator_stats = have_an_odd_flag; }},
};
