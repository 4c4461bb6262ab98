#include "kernel_site.h"

#include <cstdio>
#include <memory>
#include <utility>

#include "executor_arena.h"
#include "executor_call.h"

namespace {

// What this thread's kernels gave back while they queued work. A list through the memory itself: there
// may be no memory for another one.
struct Deferred {
  bool is_queueing;
  mtf_memory* first;
};
thread_local Deferred deferred = {false, nullptr};

mtf_kernel_site* site_of(const mtf_kernel_place* place) {
  return const_cast<mtf_kernel_site*>(reinterpret_cast<const mtf_kernel_site*>(place));
}

int allocate(const mtf_kernel_place* place, uint64_t size, void** address, void** owner,
             char* message, size_t message_size) {
  mtf_kernel_site* site = site_of(place);
  const mtf::PartOfCall of_execution(site->executor);
  mtf_memory* memory = site->arena == nullptr
                           ? mtf_memory_new(site->executor, MTF_DEVICE_MEMORY, size)
                           : mtf_arena_memory_new(site->executor, site->arena, MTF_DEVICE_MEMORY, size);
  if (memory == nullptr) {
    const mtf::Error error(mtf_take_error());
    std::snprintf(message, message_size, "%s", error.message());
    return 0;
  }
  site->retain();
  *address = reinterpret_cast<void*>(mtf_memory_address(memory));
  *owner = memory;
  return 1;
}

void free_memory(const mtf_kernel_place* place, void* owner, void* stream) {
  mtf_kernel_site* site = site_of(place);
  auto* memory = static_cast<mtf_memory*>(owner);
  if (deferred.is_queueing || stream == nullptr) {
    mtf::free_after_queueing(memory);
  } else {
    const mtf::LockGuard guard(site->lock);
    memory->deferred_stream = stream;
    memory->next_deferred = std::exchange(site->deferred, memory);
  }
  site->release();
}

// Takes one of those from the site that the stream's queued work may use; NULL for no more.
mtf_memory* take_deferred_of(mtf_kernel_site* site, const void* stream) {
  const mtf::LockGuard guard(site->lock);
  for (mtf_memory** link = &site->deferred; *link != nullptr; link = &(*link)->next_deferred) {
    if ((*link)->deferred_stream != stream) continue;
    return std::exchange(*link, (*link)->next_deferred);
  }
  return nullptr;
}

}  // namespace

mtf::Queueing::Queueing(bool has_stream)
    : outer_(std::exchange(deferred.is_queueing, has_stream)) {}

mtf::Queueing::~Queueing() { deferred.is_queueing = outer_; }

void mtf::free_after_queueing(mtf_memory* memory) {
  if (!deferred.is_queueing) return mtf_memory_free(memory);
  memory->next_deferred = std::exchange(deferred.first, memory);
}

extern "C" {

mtf_kernel_site* mtf_kernel_site_new(mtf_executor* executor, mtf_arena* arena,
                                     const char* device_name, int32_t ordinal, int32_t is_host) {
  auto site = std::make_unique<mtf_kernel_site>();
  site->device_name = device_name;
  executor->retain();
  site->executor = executor;
  if (arena != nullptr) mtf_arena_retain(arena);
  site->arena = arena;
  site->place = {allocate, free_memory, site->device_name.c_str(), ordinal, is_host};
  return site.release();
}

void mtf_kernel_site_free(mtf_kernel_site* site) {
  if (site == nullptr) return;
  mtf::drop_temporaries_of(site);
  site->release();
}

mtf_memory* mtf_kernel_take_deferred(mtf_kernel_site* site, const mtf_stream* stream) {
  mtf_memory* memory = deferred.first;
  if (memory == nullptr) return take_deferred_of(site, stream->handle);
  deferred.first = std::exchange(memory->next_deferred, nullptr);
  return memory;
}

}  // extern "C"
