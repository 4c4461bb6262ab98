#include "executor.h"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <new>
#include <tuple>

#include "executor_state.h"

namespace mtf {
namespace {

// What TensorFlow asks of raw allocations.
constexpr size_t kAlignment = 64;

struct RfcAllocator;  // SP_Allocator or SP_CustomAllocator, which are the plugin's own business

// SP_AllocatorFns, whose functions are those of an executor with one argument more.
struct RfcAllocatorFns {
  size_t struct_size;
  void* ext;
  void (*allocate)(const SP_Device*, const RfcAllocator*, uint64_t size, int64_t space,
                   SP_DeviceMemoryBase*);
  void (*deallocate)(const SP_Device*, const RfcAllocator*, SP_DeviceMemoryBase*);
  void* (*host_memory_allocate)(const SP_Device*, const RfcAllocator*, uint64_t size);
  void (*host_memory_deallocate)(const SP_Device*, const RfcAllocator*, void*);
  void* (*unified_memory_allocate)(const SP_Device*, const RfcAllocator*, uint64_t size);
  void (*unified_memory_deallocate)(const SP_Device*, const RfcAllocator*, void*);
  TF_Bool (*get_allocator_stats)(const SP_Device*, const RfcAllocator*, SP_AllocatorStats*);
  TF_Bool (*device_memory_usage)(const SP_Device*, const RfcAllocator*, int64_t*, int64_t*);
};
static_assert(sizeof(RfcAllocatorFns) == 80, "SP_AllocatorFns");

// SP_CustomAllocatorFns.
struct RfcCustomAllocatorFns {
  size_t struct_size;
  void* ext;
  void* (*allocate_raw)(const SP_Device*, const RfcAllocator*, size_t size, size_t alignment);
  void (*deallocate_raw)(const SP_Device*, const RfcAllocator*, void*);
  void* (*host_allocate_raw)(const SP_Device*, const RfcAllocator*, uint64_t size);
  void (*host_deallocate_raw)(const SP_Device*, const RfcAllocator*, void*);
  TF_Bool (*get_allocator_stats)(const SP_Device*, const RfcAllocator*, SP_AllocatorStats*);
  TF_Bool (*device_memory_usage)(const SP_Device*, const RfcAllocator*, int64_t*, int64_t*);
};
static_assert(sizeof(RfcCustomAllocatorFns) == 64, "SP_CustomAllocatorFns");

// The eight functions of an executor, with `Extra` arguments behind the device.
template <class Fns, class... Extra>
class ExecutorLike : public Allocator {
 public:
  explicit ExecutorLike(const Fns& fns, Extra... extra) : fns_(fns), extra_(extra...) {}

  const char* name(int32_t kind) const override {
    switch (kind) {
      case MTF_HOST_MEMORY: return "host_memory_allocate";
      case MTF_UNIFIED_MEMORY: return "unified_memory_allocate";
      default: return "allocate";
    }
  }

  bool has(int32_t kind) const override {
    switch (kind) {
      case MTF_HOST_MEMORY: return fns_.host_memory_allocate != nullptr;
      case MTF_UNIFIED_MEMORY: return fns_.unified_memory_allocate != nullptr;
      default: return fns_.allocate != nullptr;
    }
  }

  void allocate(const SP_Device* device, int32_t kind, uint64_t size,
                SP_DeviceMemoryBase* memory) const override {
    switch (kind) {
      case MTF_HOST_MEMORY:
        memory->opaque = call(fns_.host_memory_allocate, device, size);
        break;
      case MTF_UNIFIED_MEMORY:
        memory->opaque = call(fns_.unified_memory_allocate, device, size);
        break;
      default: call(fns_.allocate, device, size, int64_t{0}, memory);
    }
  }

  void deallocate(const SP_Device* device, int32_t kind,
                  SP_DeviceMemoryBase* memory) const override {
    if (kind == MTF_DEVICE_MEMORY && fns_.deallocate != nullptr) {
      call(fns_.deallocate, device, memory);
    } else if (kind == MTF_HOST_MEMORY && fns_.host_memory_deallocate != nullptr) {
      call(fns_.host_memory_deallocate, device, memory->opaque);
    } else if (kind == MTF_UNIFIED_MEMORY && fns_.unified_memory_deallocate != nullptr) {
      call(fns_.unified_memory_deallocate, device, memory->opaque);
    }
  }

  bool has_stats() const override { return fns_.get_allocator_stats != nullptr; }
  bool stats(const SP_Device* device, SP_AllocatorStats* stats) const override {
    return call(fns_.get_allocator_stats, device, stats) != 0;
  }
  bool has_usage() const override { return fns_.device_memory_usage != nullptr; }
  bool usage(const SP_Device* device, int64_t* free_bytes, int64_t* total_bytes) const override {
    return call(fns_.device_memory_usage, device, free_bytes, total_bytes) != 0;
  }

 private:
  template <class Slot, class... Arguments>
  auto call(Slot slot, const SP_Device* device, Arguments... arguments) const {
    return std::apply([&](auto... extra) { return slot(device, extra..., arguments...); }, extra_);
  }

  const Fns fns_;
  const std::tuple<Extra...> extra_;
};

// Device memory comes from functions of another kind; the rest is as in SP_AllocatorFns.
class CustomAllocator final : public ExecutorLike<RfcAllocatorFns, const RfcAllocator*> {
 public:
  CustomAllocator(const RfcAllocatorFns& others, const RfcCustomAllocatorFns& fns, const RfcAllocator* allocator)
      : ExecutorLike(others, allocator), fns_(fns), allocator_(allocator) {}

  const char* name(int32_t kind) const override {
    if (kind == MTF_UNIFIED_MEMORY) return ExecutorLike::name(kind);
    return kind == MTF_HOST_MEMORY ? "host_allocate_raw" : "allocate_raw";
  }
  bool has(int32_t kind) const override {
    return kind == MTF_DEVICE_MEMORY ? fns_.allocate_raw != nullptr : ExecutorLike::has(kind);
  }
  void allocate(const SP_Device* device, int32_t kind, uint64_t size,
                SP_DeviceMemoryBase* memory) const override {
    if (kind != MTF_DEVICE_MEMORY) return ExecutorLike::allocate(device, kind, size, memory);
    memory->opaque = fns_.allocate_raw(device, allocator_, size, kAlignment);
  }
  void deallocate(const SP_Device* device, int32_t kind,
                  SP_DeviceMemoryBase* memory) const override {
    if (kind != MTF_DEVICE_MEMORY) return ExecutorLike::deallocate(device, kind, memory);
    if (fns_.deallocate_raw != nullptr) fns_.deallocate_raw(device, allocator_, memory->opaque);
  }

 private:
  const RfcCustomAllocatorFns fns_;
  const RfcAllocator* const allocator_;
};

}  // namespace

std::unique_ptr<Allocator> executor_allocator(const SP_StreamExecutor& table) {
  return std::unique_ptr<Allocator>(new (std::nothrow) ExecutorLike<SP_StreamExecutor>(table));
}

std::unique_ptr<Allocator> rfc_allocator(const void* fns, const void* allocator, bool unified) {
  RfcAllocatorFns copy = *static_cast<const RfcAllocatorFns*>(fns);
  if (!unified) copy.unified_memory_allocate = nullptr;
  using Made = ExecutorLike<RfcAllocatorFns, const RfcAllocator*>;
  return std::unique_ptr<Allocator>(
      new (std::nothrow) Made(copy, static_cast<const RfcAllocator*>(allocator)));
}

std::unique_ptr<Allocator> rfc_custom_allocator(const void* fns, const void* allocator) {
  const auto& given = *static_cast<const RfcCustomAllocatorFns*>(fns);
  RfcAllocatorFns others = {};
  others.host_memory_allocate = given.host_allocate_raw;
  others.host_memory_deallocate = given.host_deallocate_raw;
  others.get_allocator_stats = given.get_allocator_stats;
  others.device_memory_usage = given.device_memory_usage;
  return std::unique_ptr<Allocator>(
      new (std::nothrow) CustomAllocator(others, given, static_cast<const RfcAllocator*>(allocator)));
}

}  // namespace mtf

// Memory of the three kinds, and copies and fills on it.

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

namespace {

constexpr int kMemoriesDoNotOverlap = 135;

// The source of an arena's regions, which ends with the arena.
struct Source {
  Source(mtf_executor* its_executor, int32_t its_kind) : executor(its_executor), kind(its_kind) {
    executor->retain();
  }
  ~Source() {
    for (const auto& region : regions) mtf_memory_free(region.second);
    executor->release();
  }

  mtf_executor* const executor;
  const int32_t kind;  // MTF_DEVICE_MEMORY or MTF_HOST_MEMORY
  mtf::Lock mutex;
  std::map<uintptr_t, mtf_memory*> regions;  // what the executor takes back, by address

  // Files a region unless it overlaps another one.
  bool file(mtf_memory* region) {
    const mtf::LockGuard lock(mutex);
    const uintptr_t start = mtf_memory_address(region);
    const auto next = regions.lower_bound(start);
    if (next != regions.end() && next->first - start < region->base.size) return false;
    if (next != regions.begin()) {
      const auto& [other, previous] = *std::prev(next);
      if (start - other < previous->base.size) return false;
    }
    regions.emplace_hint(next, start, region);
    return true;
  }
};

// Memory that is returned a second time is not freed again.
mtf::Error given_twice(const mtf_memory* region, const char* slot) {
  char message[200];
  std::snprintf(message, sizeof message,
                "%s returned %p for %llu bytes, which overlap memory that is in use (rule SE-%d);"
                " report it to the plugin's authors",
                slot, region->base.opaque,
                static_cast<unsigned long long>(region->base.size), kMemoriesDoNotOverlap);
  return mtf::make_rule_error(kMemoriesDoNotOverlap, message);
}

// Has the plugin give a region that is not listed yet, and files it.
mtf::Error add_region(Source* source, mtf_memory* region, uint64_t bytes) {
  region->is_internal = true;
  if (mtf::Error error = mtf::allocate(region, source->kind, bytes)) return error;
  try {
    if (source->file(region)) return nullptr;
  } catch (const std::bad_alloc&) {
    region->destroy();
    return mtf::make_error(TF_RESOURCE_EXHAUSTED, "no memory to file a region");
  }
  return given_twice(region, region->owner->allocator->name(source->kind));
}

// NULL alone stands for exhaustion; any other error is kept.
void* allocate_region(void* context, uint64_t bytes) {
  auto* source = static_cast<Source*>(context);
  mtf_memory* region = mtf::make_object<mtf_memory>(
      source->executor, [&](mtf_memory* made) { return add_region(source, made, bytes); },
      mtf::kind_of(source->executor, source->kind));
  if (region != nullptr) return region->base.opaque;
  mtf::Error error(mtf_take_error());
  return error.code() == TF_RESOURCE_EXHAUSTED ? nullptr : mtf::fail_with(error.release());
}

void free_region(void* context, void* address, uint64_t) {
  auto* source = static_cast<Source*>(context);
  if (source->executor->is_foreign()) return;  // the parent's, perhaps in the middle of a change
  mtf_memory* region = nullptr;
  {
    const mtf::LockGuard lock(source->mutex);
    const auto found = source->regions.find(reinterpret_cast<uintptr_t>(address));
    if (found == source->regions.end()) return;
    region = found->second;
    source->regions.erase(found);
  }
  mtf_memory_free(region);
}

void end_source(void* context) {
  auto* source = static_cast<Source*>(context);
  if (!source->executor->is_foreign()) delete source;
}

}  // namespace

extern "C" {

mtf_arena* mtf_executor_arena_new(mtf_executor* executor, int32_t source, uint64_t bytes_limit,
                                  int32_t growth, int32_t garbage_collection) {
  auto* made = new (std::nothrow) Source(executor, source);
  if (made == nullptr) {
    return mtf::fail_with(mtf::make_error(TF_RESOURCE_EXHAUSTED, "no memory for a region source"));
  }
  char name[sizeof executor->name + 16];
  std::snprintf(name, sizeof name, "%s%s", executor->name,
                source == MTF_DEVICE_MEMORY ? "" : " host memory");
  const mtf_arena_options options = {name, bytes_limit, growth, garbage_collection,
                                     allocate_region, free_region, nullptr, end_source, made};
  mtf_arena* arena = nullptr;
  if (mtf_error* error = mtf_arena_new(&options, &arena)) {
    delete made;
    return mtf::fail_with(error);
  }
  return arena;
}

mtf_memory* mtf_arena_memory_new(mtf_executor* executor, mtf_arena* arena, int32_t source,
                                 uint64_t size) {
  const auto create = [&](mtf_memory* memory) -> mtf::Error {
    if (size == 0) return nullptr;
    uintptr_t address = mtf_arena_take(arena, size);
    if (address == 0) {
      if (mtf_error* error = mtf_arena_allocate(arena, size, &address)) return mtf::Error(error);
    }
    mtf_arena_retain(arena);
    memory->arena = arena;
    memory->base.opaque = reinterpret_cast<void*>(address);
    memory->base.size = size;
    return nullptr;
  };
  return mtf::make_object<mtf_memory>(executor, create, mtf::kind_of(executor, source));
}

}  // extern "C"
