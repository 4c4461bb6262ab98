// Defects of device memory, each of a size that one check alone uses.
#include <fcntl.h>
#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "defects.h"

namespace {

using namespace defective;

constexpr uint64_t kMib = uint64_t{1} << 20;
constexpr uint64_t kAddress = 64;  // what a misplaced memory is off by

void give_back(const SP_Device* device, void* opaque) {
  SP_DeviceMemoryBase memory{};
  memory.struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory.opaque = opaque;
  original.executor.deallocate(device, &memory);
}

TF_Bool overrun_stats(const SP_Device* device, SP_AllocatorStats* stats) {
  reinterpret_cast<char*>(stats + 1)[0] = 1;
  return original.executor.get_allocator_stats(device, stats);
}

void refuse_255(const SP_Device* device, uint64_t size, int64_t space, SP_DeviceMemoryBase* memory) {
  if (size != 255) original.executor.allocate(device, size, space, memory);
}

void abort_at_0(const SP_Device* device, uint64_t size, int64_t space,
                SP_DeviceMemoryBase* memory) {
  if (size == 0) std::abort();
  original.executor.allocate(device, size, space, memory);
}

void forget_the_size(const SP_Device* device, uint64_t size, int64_t space,
                     SP_DeviceMemoryBase* memory) {
  original.executor.allocate(device, size, space, memory);
  if (size == 5003) memory->size = 0;
}

// -- where it lies --------------------------------------------------------------------------------

void misplace(const SP_Device* device, uint64_t size, int64_t space, SP_DeviceMemoryBase* memory) {
  const bool is_ours = size == 100;
  original.executor.allocate(device, is_ours ? size + kAddress : size, space, memory);
  if (!is_ours) return;
  memory->opaque = static_cast<char*>(memory->opaque) + kAddress;
  memory->size = size;
}

void give_back_misplaced(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  auto* address = static_cast<char*>(memory->opaque);
  const bool is_ours = reinterpret_cast<uintptr_t>(address) % 256 == kAddress;
  give_back(device, is_ours ? address - kAddress : address);
}

void* shared = nullptr;

void share(const SP_Device* device, uint64_t size, int64_t space, SP_DeviceMemoryBase* memory) {
  const bool is_ours = size > (32 << 10) && size < (64 << 10);
  original.executor.allocate(device, size, space, memory);
  if (!is_ours) return;
  if (shared == nullptr) {
    shared = memory->opaque;
  } else {
    give_back(device, memory->opaque);
    memory->opaque = static_cast<char*>(shared) + 256;
  }
}

// -- what is in it --------------------------------------------------------------------------------

// Memories of one range of sizes, in the order of their allocation.
std::mutex mutex;
std::vector<void*> watched;
uint64_t watched_from = 0, watched_to = 0;

void watch(uint64_t from, uint64_t to) {
  watched_from = from;
  watched_to = to;
}

void allocate_watched(const SP_Device* device, uint64_t size, int64_t space,
                      SP_DeviceMemoryBase* memory) {
  original.executor.allocate(device, size, space, memory);
  const std::lock_guard lock(mutex);
  if (size >= watched_from && size <= watched_to) watched.push_back(memory->opaque);
}

// Forgets a memory and returns where it stood, or -1.
int take_watched(const void* opaque) {
  for (size_t at = 0; at < watched.size(); ++at) {
    if (watched[at] != opaque) continue;
    watched.erase(watched.begin() + static_cast<std::ptrdiff_t>(at));
    return static_cast<int>(at);
  }
  return -1;
}

void spoil(void* memory) { ++static_cast<unsigned char*>(memory)[0]; }

// Spoils the newest of the others with every deallocation.
void give_back_and_spoil(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  const std::lock_guard lock(mutex);
  if (take_watched(memory->opaque) >= 0 && !watched.empty()) spoil(watched.back());
  original.executor.deallocate(device, memory);
}

// Takes memory for a stack.
void give_back_the_newest_only(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  const std::lock_guard lock(mutex);
  const int at = take_watched(memory->opaque);
  if (at >= 0 && at < static_cast<int>(watched.size())) spoil(watched.back());
  original.executor.deallocate(device, memory);
}

void spoil_after_many(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  static int given_back = 0;
  const std::lock_guard lock(mutex);
  if (take_watched(memory->opaque) >= 0 && ++given_back == 100 && !watched.empty()) {
    spoil(watched.front());
  }
  original.executor.deallocate(device, memory);
}

// -- giving back ----------------------------------------------------------------------------------

void keep(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  const std::lock_guard lock(mutex);
  static int kept = 0;
  if (take_watched(memory->opaque) < 0 || ++kept % 3) original.executor.deallocate(device, memory);
}

void want_an_address(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  if (memory->opaque == nullptr) std::abort();
  original.executor.deallocate(device, memory);
}

std::map<void*, pthread_t> owners;

void allocate_of_thread(const SP_Device* device, uint64_t size, int64_t space,
                        SP_DeviceMemoryBase* memory) {
  original.executor.allocate(device, size, space, memory);
  const std::lock_guard lock(mutex);
  if (size == 2503) owners[memory->opaque] = pthread_self();
}

void want_the_same_thread(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  const std::lock_guard lock(mutex);
  const auto found = owners.find(memory->opaque);
  if (found != owners.end() && !pthread_equal(found->second, pthread_self())) std::abort();
  if (found != owners.end()) owners.erase(found);
  original.executor.deallocate(device, memory);
}

void allocate_and_open(const SP_Device* device, uint64_t size, int64_t space,
                       SP_DeviceMemoryBase* memory) {
  static int calls = 0;
  if (size == 777 && ++calls % 2 == 0) open("/dev/null", O_RDONLY | O_CLOEXEC);
  original.executor.allocate(device, size, space, memory);
}

// -- payload --------------------------------------------------------------------------------------

constexpr uint64_t kPayload = 77;

void allocate_with_payload(const SP_Device* device, uint64_t size, int64_t space,
                           SP_DeviceMemoryBase* memory) {
  original.executor.allocate(device, size, space, memory);
  if (size == 1511) memory->payload = kPayload;
}

void want_the_payload(const SP_Device* device, SP_DeviceMemoryBase* target, const void* source,
                      uint64_t size, TF_Status* status) {
  if (size == 1511 && target->payload != kPayload) {
    return TF_SetStatus(status, TF_INVALID_ARGUMENT, "this is no memory");
  }
  original.executor.sync_memcpy_htod(device, target, source, size, status);
}

}  // namespace

DEFECTS(memory) = {
    {"SE-130", [](Tables& tables) { tables.executor.get_allocator_stats = overrun_stats; }},
    {"SE-131", [](Tables& tables) { tables.executor.allocate = refuse_255; }},
    {"SE-132", [](Tables& tables) { tables.executor.allocate = abort_at_0; }},
    {"SE-133", [](Tables& tables) { tables.executor.allocate = forget_the_size; }},
    {"SE-134",
     [](Tables& tables) {
       tables.executor.allocate = misplace;
       tables.executor.deallocate = give_back_misplaced;
     }},
    {"SE-135", [](Tables& tables) { tables.executor.allocate = share; }},
    {"SE-136",
     [](Tables& tables) {
       watch(2003, 2003);
       tables.executor.allocate = allocate_watched;
       tables.executor.deallocate = give_back_and_spoil;
     }},
    {"SE-137",
     [](Tables& tables) {
       watch(64 * kMib, 64 * kMib);
       tables.executor.allocate = allocate_watched;
       tables.executor.deallocate = keep;
     }},
    {"SE-138", [](Tables& tables) { tables.executor.deallocate = want_an_address; }},
    {"SE-139",
     [](Tables& tables) {
       tables.executor.allocate = allocate_with_payload;
       tables.executor.sync_memcpy_htod = want_the_payload;
     }},
    {"SE-140",
     [](Tables& tables) {
       tables.executor.allocate = allocate_of_thread;
       tables.executor.deallocate = want_the_same_thread;
     }},
    {"SE-141",
     [](Tables& tables) {
       watch(3001, 3001);
       tables.executor.allocate = allocate_watched;
       tables.executor.deallocate = give_back_the_newest_only;
     }},
    {"SE-142",
     [](Tables& tables) {
       watch(6000, 9000);
       tables.executor.allocate = allocate_watched;
       tables.executor.deallocate = spoil_after_many;
     }},
    {"SE-143", [](Tables& tables) { tables.executor.allocate = allocate_and_open; }},
};
