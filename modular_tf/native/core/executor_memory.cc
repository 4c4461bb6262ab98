// Memory of the three kinds, and copies and fills on it.
#include <cstdio>

#include "executor_state.h"

using mtf::call_slot;
using mtf::guarded;
using mtf::make_error;
using mtf::make_object;
using mtf::on_slot;

namespace {

mtf_error* no_memory_error(const char* name, uint64_t size) {
  char message[128];
  std::snprintf(message, sizeof message, "%s gave no memory for %llu bytes", name,
                static_cast<unsigned long long>(size));
  return make_error(8, message);
}

mtf_error* allocate(mtf_memory* memory, int32_t kind, uint64_t size) {
  mtf_executor* executor = memory->owner;
  const mtf::Allocator* allocator = executor->allocator.get();
  SP_DeviceMemoryBase& base = memory->base;
  mtf_error* error = on_slot(
      executor, allocator->has(kind) ? allocator : nullptr, allocator->name(kind),
      [&](auto* asked, TF_Status*) { asked->allocate(executor->device, kind, size, &base); });
  if (error != nullptr) return error;
  if (base.opaque == nullptr) return no_memory_error(allocator->name(kind), size);
  base.struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  base.size = size;  // what was asked for is what may be used
  memory->source = kind;
  return nullptr;
}

// The part of `memory` that a copy touches, as TensorFlow describes it: an address inside of it
// and the copy's size.
SP_DeviceMemoryBase part(const mtf_memory* memory, uint64_t offset, uint64_t size) {
  SP_DeviceMemoryBase base = memory->base;
  base.opaque = static_cast<char*>(base.opaque) + offset;
  base.size = size;
  return base;
}

bool is_inside(const mtf_memory* memory, uint64_t offset, uint64_t size) {
  return size <= memory->base.size && offset <= memory->base.size - size;
}

// NULL when a copy or fill by `executor` may touch these bytes.
mtf_error* check_part(const mtf_executor* executor, const mtf_memory* memory, uint64_t offset,
                      uint64_t size) {
  if (mtf_error* error = mtf::stranger_error(executor, memory)) return error;
  if (is_inside(memory, offset, size)) return nullptr;
  char message[160];
  std::snprintf(message, sizeof message,
                "%llu bytes at offset %llu reach outside of a memory of %llu bytes",
                static_cast<unsigned long long>(size), static_cast<unsigned long long>(offset),
                static_cast<unsigned long long>(memory->base.size));
  return make_error(3, message);
}

}  // namespace

void mtf_memory::destroy() {
  if (arena != nullptr) {
    mtf_error_free(mtf_arena_free(arena, reinterpret_cast<uintptr_t>(base.opaque)));
    mtf_arena_release(arena);
  } else if (source >= 0) {
    mtf_error_free(guarded(
        [&](TF_Status*) { owner->allocator->deallocate(owner->device, source, &base); }));
  }
}

extern "C" {

mtf_memory* mtf_memory_new(mtf_executor* executor, int32_t source, uint64_t size) {
  const auto create = [&](mtf_memory* memory) -> mtf_error* {
    return size == 0 ? nullptr : allocate(memory, source, size);
  };
  const bool is_hosts = source != MTF_DEVICE_MEMORY;
  return make_object<mtf_memory>(executor, create,
                                 is_hosts ? mtf::Kind::kHostMemory : mtf::Kind::kMemory);
}

mtf_memory* mtf_memory_borrow(mtf_executor* executor, void* address, uint64_t size,
                              uint64_t payload) {
  return make_object<mtf_memory>(executor, [&](mtf_memory* memory) -> mtf_error* {
    memory->base.opaque = address;
    memory->base.size = size;
    memory->base.payload = payload;
    return nullptr;
  });
}

void* mtf_memory_address(const mtf_memory* memory) { return memory->base.opaque; }
uint64_t mtf_memory_payload(const mtf_memory* memory) { return memory->base.payload; }

void mtf_memory_free(mtf_memory* memory) {
  if (memory != nullptr) memory->owner->end(memory);
}

int64_t mtf_memory_free_of_host(mtf_memory* memory) {
  mtf_executor* executor = memory->owner;
  if (executor->is_foreign()) return -1;
  executor->retain();
  executor->end(memory);
  const int64_t left = executor->count(mtf::Kind::kHostMemory);
  executor->release();
  return left;
}

mtf_error* mtf_memcpy_htod(mtf_stream* stream, mtf_memory* target, uint64_t offset,
                           const void* source, uint64_t size) {
  if (mtf_error* error = check_part(stream->owner, target, offset, size)) return error;
  SP_DeviceMemoryBase base = part(target, offset, size);
  return call_slot(stream->owner, stream->owner->table.memcpy_htod, "memcpy_htod", stream->handle,
                   &base, source, size);
}

mtf_error* mtf_memcpy_dtoh(mtf_stream* stream, void* target, mtf_memory* source, uint64_t offset,
                           uint64_t size) {
  if (mtf_error* error = check_part(stream->owner, source, offset, size)) return error;
  const SP_DeviceMemoryBase base = part(source, offset, size);
  return call_slot(stream->owner, stream->owner->table.memcpy_dtoh, "memcpy_dtoh", stream->handle,
                   target, &base, size);
}

mtf_error* mtf_memcpy_dtod(mtf_stream* stream, mtf_memory* target, uint64_t target_offset,
                           mtf_memory* source, uint64_t source_offset, uint64_t size) {
  if (mtf_error* error = check_part(stream->owner, target, target_offset, size)) return error;
  if (mtf_error* error = check_part(stream->owner, source, source_offset, size)) return error;
  SP_DeviceMemoryBase to = part(target, target_offset, size);
  const SP_DeviceMemoryBase from = part(source, source_offset, size);
  return call_slot(stream->owner, stream->owner->table.memcpy_dtod, "memcpy_dtod", stream->handle,
                   &to, &from, size);
}

mtf_error* mtf_sync_memcpy_htod(mtf_executor* executor, mtf_memory* target, uint64_t offset,
                                const void* source, uint64_t size) {
  if (mtf_error* error = check_part(executor, target, offset, size)) return error;
  SP_DeviceMemoryBase base = part(target, offset, size);
  return call_slot(executor, executor->table.sync_memcpy_htod, "sync_memcpy_htod", &base, source,
                   size);
}

mtf_error* mtf_sync_memcpy_dtoh(mtf_executor* executor, void* target, mtf_memory* source,
                                uint64_t offset, uint64_t size) {
  if (mtf_error* error = check_part(executor, source, offset, size)) return error;
  const SP_DeviceMemoryBase base = part(source, offset, size);
  return call_slot(executor, executor->table.sync_memcpy_dtoh, "sync_memcpy_dtoh", target, &base,
                   size);
}

mtf_error* mtf_sync_memcpy_dtod(mtf_executor* executor, mtf_memory* target, uint64_t target_offset,
                                mtf_memory* source, uint64_t source_offset, uint64_t size) {
  if (mtf_error* error = check_part(executor, target, target_offset, size)) return error;
  if (mtf_error* error = check_part(executor, source, source_offset, size)) return error;
  SP_DeviceMemoryBase to = part(target, target_offset, size);
  const SP_DeviceMemoryBase from = part(source, source_offset, size);
  return call_slot(executor, executor->table.sync_memcpy_dtod, "sync_memcpy_dtod", &to, &from,
                   size);
}

mtf_error* mtf_mem_zero(mtf_stream* stream, mtf_memory* target, uint64_t offset, uint64_t size) {
  if (mtf_error* error = check_part(stream->owner, target, offset, size)) return error;
  SP_DeviceMemoryBase base = part(target, offset, size);
  return call_slot(stream->owner, stream->owner->table.mem_zero, "mem_zero", stream->handle, &base,
                   size);
}

mtf_error* mtf_memset(mtf_stream* stream, mtf_memory* target, uint64_t offset, uint8_t pattern,
                      uint64_t size) {
  if (mtf_error* error = check_part(stream->owner, target, offset, size)) return error;
  SP_DeviceMemoryBase base = part(target, offset, size);
  return call_slot(stream->owner, stream->owner->table.memset, "memset", stream->handle, &base,
                   pattern, size);
}

mtf_error* mtf_memset32(mtf_stream* stream, mtf_memory* target, uint64_t offset, uint32_t pattern,
                        uint64_t size) {
  if (mtf_error* error = check_part(stream->owner, target, offset, size)) return error;
  SP_DeviceMemoryBase base = part(target, offset, size);
  return call_slot(stream->owner, stream->owner->table.memset32, "memset32", stream->handle, &base,
                   pattern, size);
}

int mtf_has_operation(const mtf_executor* executor, int32_t operation) {
  const SP_StreamExecutor& table = executor->table;
  switch (operation) {
    case MTF_MEMCPY_DTOD: return table.memcpy_dtod != nullptr;
    case MTF_SYNC_MEMCPY_DTOD: return table.sync_memcpy_dtod != nullptr;
    case MTF_MEM_ZERO: return table.mem_zero != nullptr;
    case MTF_MEMSET: return table.memset != nullptr;
    default: return table.memset32 != nullptr;
  }
}

}  // extern "C"
