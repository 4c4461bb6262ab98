// Defects of what happens where there is no memory, or little.
#include <set>

#include "defects.h"

namespace {

using namespace defective;

constexpr uint64_t kTooMuch = uint64_t{1} << 62;
constexpr uint64_t kMib = uint64_t{1} << 20;
constexpr uint64_t kSmall = 16;

void promise_too_much(const SP_Device* device, uint64_t size, int64_t space,
                      SP_DeviceMemoryBase* memory) {
  original.executor.allocate(device, size == kTooMuch ? kSmall : size, space, memory);
}

void round_over(const SP_Device* device, uint64_t size, int64_t space,
                SP_DeviceMemoryBase* memory) {
  const bool overflows = size + 255 < size;
  original.executor.allocate(device, overflows ? kSmall : size, space, memory);
}

void* promise_too_much_host(const SP_Device* device, uint64_t size) {
  return original.executor.host_memory_allocate(device, size == kTooMuch ? kSmall : size);
}

void* promise_too_much_unified(const SP_Device* device, uint64_t size) {
  return original.executor.unified_memory_allocate(device, size == kTooMuch ? kSmall : size);
}

// The twentieth block lies where the one before lies.
void give_one_twice(const SP_Device* device, uint64_t size, int64_t space,
                    SP_DeviceMemoryBase* memory) {
  static int blocks = 0;
  static void* before = nullptr;
  original.executor.allocate(device, size, space, memory);
  if (size != kMib) return;
  if (++blocks == 20) {
    original.executor.deallocate(device, memory);
    memory->opaque = before;
    memory->size = size;
  }
  before = memory->opaque;
}

std::set<void*> large;
bool had_a_peak = false;

void allocate_less_after_a_peak(const SP_Device* device, uint64_t size, int64_t space,
                                SP_DeviceMemoryBase* memory) {
  const bool is_large = size == 4 * kMib;
  if (is_large && had_a_peak && large.size() >= 4) return;
  original.executor.allocate(device, size, space, memory);
  if (is_large) large.insert(memory->opaque);
}

void give_back_after_a_peak(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  if (large.erase(memory->opaque) != 0 && large.empty()) had_a_peak = true;
  original.executor.deallocate(device, memory);
}

void* at_stake = nullptr;

void fail_and_spoil(const SP_Device* device, uint64_t size, int64_t space,
                    SP_DeviceMemoryBase* memory) {
  original.executor.allocate(device, size, space, memory);
  if (memory->opaque == nullptr && at_stake != nullptr) {
    static_cast<unsigned char*>(at_stake)[0] ^= 0xff;
  }
  if (size == 5021) at_stake = memory->opaque;
}

void give_back_at_stake(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  if (memory->opaque == at_stake) at_stake = nullptr;
  original.executor.deallocate(device, memory);
}

constexpr int kMost = 1000;

void have_a_small_table(const SP_Device* device, uint64_t size, int64_t space,
                        SP_DeviceMemoryBase* memory) {
  static int small = 0;
  if (size == 256 && ++small > kMost) return;
  original.executor.allocate(device, size, space, memory);
}

}  // namespace

DEFECTS(exhaustion) = {
    {"SE-155", [](Tables& tables) { tables.executor.allocate = promise_too_much; }},
    {"SE-156", [](Tables& tables) { tables.executor.allocate = round_over; }},
    {"SE-157",
     [](Tables& tables) { tables.executor.host_memory_allocate = promise_too_much_host; }},
    {"SE-158",
     [](Tables& tables) { tables.executor.unified_memory_allocate = promise_too_much_unified; }},
    {"SE-159", [](Tables& tables) { tables.executor.allocate = give_one_twice; }},
    {"SE-160",
     [](Tables& tables) {
       tables.executor.allocate = allocate_less_after_a_peak;
       tables.executor.deallocate = give_back_after_a_peak;
     }},
    {"SE-161",
     [](Tables& tables) {
       tables.executor.allocate = fail_and_spoil;
       tables.executor.deallocate = give_back_at_stake;
     }},
    {"SE-162", [](Tables& tables) { tables.executor.allocate = have_a_small_table; }},
};
