// Memory of the three kinds, and copies and fills on it.
#include <cstdio>
#include <cstring>

#include "executor_call.h"

using mtf::call_slot;
using mtf::guarded;
using mtf::make_error;
using mtf::make_object;
using mtf::on_slot;

namespace {

mtf::Error no_memory_error(const char* name, uint64_t size) {
  char message[128];
  std::snprintf(message, sizeof message, "%s gave no memory for %llu bytes", name,
                static_cast<unsigned long long>(size));
  return make_error(TF_RESOURCE_EXHAUSTED, message);
}

// The bytes of a memory that a copy or fill by `user` touches.
class Part {
 public:
  Part(mtf_executor* user, const mtf_memory* memory, uint64_t offset, uint64_t size)
      : operand_(user, memory), whole_(memory->base.size), offset_(offset), base_(memory->base) {
    base_.opaque = static_cast<char*>(base_.opaque) + offset;
    base_.size = size;
  }

  // NULL when they may be touched.
  mtf::Error refusal() const {
    if (mtf::Error error = operand_.refusal()) return error;
    return base_.size <= whole_ && offset_ <= whole_ - base_.size ? nullptr : outside();
  }
  // As TensorFlow describes it: an address inside of the memory and the size of the copy.
  SP_DeviceMemoryBase* base() { return &base_; }

 private:
  mtf::Error outside() const {
    char message[160];
    std::snprintf(message, sizeof message,
                  "%llu bytes at offset %llu reach outside of a memory of %llu bytes",
                  static_cast<unsigned long long>(base_.size),
                  static_cast<unsigned long long>(offset_),
                  static_cast<unsigned long long>(whole_));
    return make_error(TF_INVALID_ARGUMENT, message);
  }

  const mtf::Operand operand_;
  const uint64_t whole_;
  const uint64_t offset_;
  SP_DeviceMemoryBase base_;
};

SP_DeviceMemoryBase* passed(Part& part) { return part.base(); }
template <class Argument>
Argument passed(Argument argument) {
  return argument;
}

mtf::Error refusal_of(const Part& part) { return part.refusal(); }
template <class Argument>
mtf::Error refusal_of(const Argument&) {
  return nullptr;
}

// Calls a slot, whose memory arguments are the parts among `arguments`, unless one may not be touched.
template <class Slot, class... Arguments>
mtf_error* call_on_parts(mtf_executor* executor, Slot slot, const char* name,
                         Arguments&&... arguments) {
  mtf::Error refused;
  if ((... || static_cast<bool>(refused = refusal_of(arguments)))) return refused.release();
  return call_slot(executor, slot, name, passed(arguments)...);
}

}  // namespace

mtf::Error mtf::allocate(mtf_memory* memory, int32_t source, uint64_t size) {
  mtf_executor* executor = memory->owner;
  const Allocator* allocator = executor->allocator.get();
  SP_DeviceMemoryBase& base = memory->base;
  Error error = on_slot(
      executor, allocator->has(source) ? allocator : nullptr, allocator->name(source),
      [&](auto* asked, TF_Status*) { asked->allocate(executor->device, source, size, &base); });
  if (error) return error;
  if (base.opaque == nullptr) return no_memory_error(allocator->name(source), size);
  base.struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  base.size = size;  // what was asked for is what may be used
  memory->source = source;
  return nullptr;
}

void mtf_memory::destroy() {
  if (arena != nullptr) {
    mtf_error_free(mtf_arena_free(arena, reinterpret_cast<uintptr_t>(base.opaque)));
    mtf_arena_release(arena);
  } else if (source >= 0) {
    mtf::drop(guarded({owner->plugin, "deallocate", owner->name}, [&](TF_Status*) {
      owner->allocator->deallocate(owner->device, source, &base);
    }));
  }
}

extern "C" {

mtf_memory* mtf_memory_new(mtf_executor* executor, int32_t source, uint64_t size) {
  const auto create = [&](mtf_memory* memory) -> mtf::Error {
    return size == 0 ? nullptr : mtf::allocate(memory, source, size);
  };
  return make_object<mtf_memory>(executor, create, mtf::kind_of(executor, source));
}

mtf_memory* mtf_memory_borrow(mtf_executor* executor, void* address, uint64_t size,
                              uint64_t payload) {
  return make_object<mtf_memory>(executor, [&](mtf_memory* memory) -> mtf::Error {
    memory->base.opaque = address;
    memory->base.size = size;
    memory->base.payload = payload;
    return nullptr;
  });
}

uintptr_t mtf_memory_address(const mtf_memory* memory) {
  return reinterpret_cast<uintptr_t>(memory->base.opaque);
}
uint64_t mtf_memory_payload(const mtf_memory* memory) { return memory->base.payload; }

void mtf_memory_free(mtf_memory* memory) {
  if (memory != nullptr) memory->owner->end(memory);
}

int64_t mtf_memory_free_of_host(mtf_memory* memory) {
  return memory == nullptr ? -1 : memory->owner->end(memory);
}

mtf_error* mtf_memcpy_htod(mtf_stream* stream, mtf_memory* target, uint64_t offset,
                           const void* source, uint64_t size) {
  mtf_executor* const executor = stream->owner;
  return call_on_parts(executor, executor->table.memcpy_htod, "memcpy_htod", stream->handle,
                       Part(executor, target, offset, size), source, size);
}

mtf_error* mtf_memcpy_dtoh(mtf_stream* stream, void* target, mtf_memory* source, uint64_t offset,
                           uint64_t size) {
  mtf_executor* const executor = stream->owner;
  return call_on_parts(executor, executor->table.memcpy_dtoh, "memcpy_dtoh", stream->handle, target,
                       Part(executor, source, offset, size), size);
}

mtf_error* mtf_memcpy_dtod(mtf_stream* stream, mtf_memory* target, uint64_t target_offset,
                           mtf_memory* source, uint64_t source_offset, uint64_t size) {
  mtf_executor* const executor = stream->owner;
  return call_on_parts(executor, executor->table.memcpy_dtod, "memcpy_dtod", stream->handle,
                       Part(executor, target, target_offset, size),
                       Part(executor, source, source_offset, size), size);
}

mtf_error* mtf_read_host_memory(mtf_executor* executor, void* target, uintptr_t source,
                                uint64_t size) {
  const mtf::ExecutorUse use(executor);  // it is freed when the device is closed
  if (!use) return mtf::closed_executor_error(executor).release();
  if (size > 0) std::memcpy(target, reinterpret_cast<const void*>(source), size);
  return nullptr;
}

mtf_error* mtf_sync_memcpy_htod(mtf_executor* executor, mtf_memory* target, uint64_t offset,
                                const void* source, uint64_t size) {
  return call_on_parts(executor, executor->table.sync_memcpy_htod, "sync_memcpy_htod",
                       Part(executor, target, offset, size), source, size);
}

mtf_error* mtf_sync_memcpy_dtoh(mtf_executor* executor, void* target, mtf_memory* source,
                                uint64_t offset, uint64_t size) {
  return call_on_parts(executor, executor->table.sync_memcpy_dtoh, "sync_memcpy_dtoh", target,
                       Part(executor, source, offset, size), size);
}

mtf_error* mtf_sync_memcpy_dtod(mtf_executor* executor, mtf_memory* target, uint64_t target_offset,
                                mtf_memory* source, uint64_t source_offset, uint64_t size) {
  return call_on_parts(executor, executor->table.sync_memcpy_dtod, "sync_memcpy_dtod",
                       Part(executor, target, target_offset, size),
                       Part(executor, source, source_offset, size), size);
}

mtf_error* mtf_mem_zero(mtf_stream* stream, mtf_memory* target, uint64_t offset, uint64_t size) {
  mtf_executor* const executor = stream->owner;
  return call_on_parts(executor, executor->table.mem_zero, "mem_zero", stream->handle,
                       Part(executor, target, offset, size), size);
}

mtf_error* mtf_memset(mtf_stream* stream, mtf_memory* target, uint64_t offset, uint8_t pattern,
                      uint64_t size) {
  mtf_executor* const executor = stream->owner;
  return call_on_parts(executor, executor->table.memset, "memset", stream->handle,
                       Part(executor, target, offset, size), pattern, size);
}

mtf_error* mtf_memset32(mtf_stream* stream, mtf_memory* target, uint64_t offset, uint32_t pattern,
                        uint64_t size) {
  mtf_executor* const executor = stream->owner;
  return call_on_parts(executor, executor->table.memset32, "memset32", stream->handle,
                       Part(executor, target, offset, size), pattern, size);
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
