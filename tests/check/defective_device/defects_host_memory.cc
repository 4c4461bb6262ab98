// Defects of host and unified memory, each of a size that one check alone uses.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <set>

#include "defects.h"

namespace {

using namespace defective;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMib = uint64_t{1} << 20;

// Memory that the reference plugin did not allocate, or must not get back.
std::mutex mutex;
std::set<void*> foreign;

void* note_foreign(void* memory) {
  const std::lock_guard lock(mutex);
  foreign.insert(memory);
  return memory;
}

bool is_foreign(void* memory) {
  const std::lock_guard lock(mutex);
  return foreign.erase(memory) != 0;
}

void give_back_host(const SP_Device* device, void* memory) {
  if (!is_foreign(memory)) original.executor.host_memory_deallocate(device, memory);
}

void give_back_unified(const SP_Device* device, void* memory) {
  if (!is_foreign(memory)) original.executor.unified_memory_deallocate(device, memory);
}

void* unwritable(uint64_t size) {
  const uint64_t whole = (size + kPage - 1) / kPage * kPage;
  return note_foreign(
      mmap(nullptr, whole, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

// Gives memories that begin inside the first, while that is there.
struct Overlapping {
  void* first = nullptr;
  int others = 0;

  template <class Allocate>
  void* next(uint64_t size, Allocate allocate) {
    if (first != nullptr) return note_foreign(static_cast<char*>(first) + 8 * ++others);
    others = 0;
    return first = allocate(size + kPage);
  }

  void given_back(void* memory) {
    if (memory == first) first = nullptr;
  }
} overlapping;

void* unwritable_host(const SP_Device* device, uint64_t size) {
  if (size == 4097) return unwritable(size);
  return original.executor.host_memory_allocate(device, size);
}

void* unwritable_unified(const SP_Device* device, uint64_t size) {
  if (size == 4097) return unwritable(size);
  return original.executor.unified_memory_allocate(device, size);
}

constexpr uint64_t kAside = 16;

void* misplaced_host(const SP_Device* device, uint64_t size) {
  if (size != 64) return original.executor.host_memory_allocate(device, size);
  auto* memory =
      static_cast<char*>(original.executor.host_memory_allocate(device, size + kAside));
  return memory + kAside;
}

void give_back_misplaced_host(const SP_Device* device, void* memory) {
  auto* address = static_cast<char*>(memory);
  const bool is_ours = reinterpret_cast<uintptr_t>(address) % 64 == kAside;
  original.executor.host_memory_deallocate(device, is_ours ? address - kAside : address);
}

void* overlapping_host(const SP_Device* device, uint64_t size) {
  const auto allocate = [&](uint64_t n) {
    return original.executor.host_memory_allocate(device, n);
  };
  return size == 3011 ? overlapping.next(size, allocate) : allocate(size);
}

void give_back_overlapping_host(const SP_Device* device, void* memory) {
  overlapping.given_back(memory);
  give_back_host(device, memory);
}

void* overlapping_unified(const SP_Device* device, uint64_t size) {
  const auto allocate = [&](uint64_t n) {
    return original.executor.unified_memory_allocate(device, n);
  };
  return size == 3011 ? overlapping.next(size, allocate) : allocate(size);
}

void give_back_overlapping_unified(const SP_Device* device, void* memory) {
  overlapping.given_back(memory);
  give_back_unified(device, memory);
}

void* leaking_host(const SP_Device* device, uint64_t size) {
  void* memory = original.executor.host_memory_allocate(device, size);
  static int calls = 0;
  return size == 16 * kMib && ++calls % 3 == 0 ? note_foreign(memory) : memory;
}

void copy_once(const SP_Device* device, SP_DeviceMemoryBase* target,
               const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  static int copies = 0;
  if (++copies == 2) return TF_SetStatus(status, TF_OK, "");
  original.executor.sync_memcpy_dtod(device, target, source, size, status);
}

void* for_the_first_thread(const SP_Device* device, uint64_t size) {
  if (syscall(SYS_gettid) != getpid()) return nullptr;
  return original.executor.host_memory_allocate(device, size);
}

}  // namespace

DEFECTS(host_memory) = {
    {"SE-145",
     [](Tables& tables) {
       tables.executor.host_memory_allocate = unwritable_host;
       tables.executor.host_memory_deallocate = give_back_host;
     }},
    {"SE-146",
     [](Tables& tables) {
       tables.executor.host_memory_allocate = misplaced_host;
       tables.executor.host_memory_deallocate = give_back_misplaced_host;
     }},
    {"SE-147",
     [](Tables& tables) {
       tables.executor.host_memory_allocate = overlapping_host;
       tables.executor.host_memory_deallocate = give_back_overlapping_host;
     }},
    {"SE-148",
     [](Tables& tables) {
       tables.executor.host_memory_allocate = leaking_host;
       tables.executor.host_memory_deallocate = give_back_host;
     }},
    {"SE-149",
     [](Tables& tables) {
       tables.executor.unified_memory_allocate = unwritable_unified;
       tables.executor.unified_memory_deallocate = give_back_unified;
     }},
    {"SE-150",
     [](Tables& tables) {
       tables.executor.unified_memory_allocate = overlapping_unified;
       tables.executor.unified_memory_deallocate = give_back_overlapping_unified;
     }},
    {"SE-151", [](Tables& tables) { tables.executor.sync_memcpy_dtod = copy_once; }},
    {"SE-152", [](Tables& tables) { tables.executor.host_memory_allocate = for_the_first_thread; }},
};
