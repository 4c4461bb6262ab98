#include "arena_host_memory.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "guard.h"

struct mtf_host_memory {
  uint64_t alignment;
  std::atomic<uint64_t> limit;
  std::atomic<uint64_t> bytes;
  std::atomic<int64_t> references;
};

namespace {

// Counts `bytes` more, unless that is over the limit.
bool claim(mtf_host_memory* memory, uint64_t bytes) {
  uint64_t held = memory->bytes.load();
  do {
    const uint64_t limit = memory->limit.load();
    if (held > limit || bytes > limit - held) return false;
  } while (!memory->bytes.compare_exchange_weak(held, held + bytes));
  return true;
}

}  // namespace

extern "C" {

mtf_error* mtf_host_memory_new(uint64_t alignment, uint64_t bytes_limit, mtf_host_memory** memory) {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) {
    return mtf::make_error(TF_INVALID_ARGUMENT,
                           "an alignment is a power of two and at least that of a pointer");
  }
  auto* made = new (std::nothrow) mtf_host_memory;
  if (made == nullptr) return mtf::make_error(TF_RESOURCE_EXHAUSTED,
                                              "no memory for a source of host memory");
  made->alignment = alignment;
  made->limit = bytes_limit;
  made->bytes = 0;
  made->references = 1;
  *memory = made;
  return nullptr;
}

void mtf_host_memory_set_limit(mtf_host_memory* memory, uint64_t bytes_limit) {
  memory->limit = bytes_limit;
}

uint64_t mtf_host_memory_bytes(mtf_host_memory* memory) { return memory->bytes; }

void* mtf_host_memory_allocate(void* context, uint64_t bytes) {
  auto* memory = static_cast<mtf_host_memory*>(context);
  if (!claim(memory, bytes)) return nullptr;
  void* address = nullptr;
  if (posix_memalign(&address, memory->alignment, bytes) == 0) return address;
  memory->bytes -= bytes;
  return nullptr;
}

void mtf_host_memory_free(void* context, void* address, uint64_t bytes) {
  std::free(address);
  static_cast<mtf_host_memory*>(context)->bytes -= bytes;
}

void mtf_host_memory_retain(void* context) {
  ++static_cast<mtf_host_memory*>(context)->references;
}

void mtf_host_memory_release(void* context) {
  auto* memory = static_cast<mtf_host_memory*>(context);
  if (--memory->references == 0) delete memory;
}

}  // extern "C"
