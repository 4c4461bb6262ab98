#include "executor_allocator.h"

#include <cstddef>
#include <new>
#include <tuple>

#include "executor.h"

namespace mtf {
namespace {

// What TensorFlow asks of raw allocations.
constexpr size_t kAlignment = 64;

struct RfcAllocator;  // SP_Allocator and SP_CustomAllocator are the plugin's own business
struct RfcCustomAllocator;

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
  void* (*allocate_raw)(const SP_Device*, const RfcCustomAllocator*, size_t size, size_t alignment);
  void (*deallocate_raw)(const SP_Device*, const RfcCustomAllocator*, void*);
  void* (*host_allocate_raw)(const SP_Device*, const RfcCustomAllocator*, uint64_t size);
  void (*host_deallocate_raw)(const SP_Device*, const RfcCustomAllocator*, void*);
  TF_Bool (*get_allocator_stats)(const SP_Device*, const RfcCustomAllocator*, SP_AllocatorStats*);
  TF_Bool (*device_memory_usage)(const SP_Device*, const RfcCustomAllocator*, int64_t*, int64_t*);
};
static_assert(sizeof(RfcCustomAllocatorFns) == 64, "SP_CustomAllocatorFns");

// The eight functions of an executor, with `Extra` arguments behind the device.
template <class Fns, class... Extra>
class ExecutorLike final : public Allocator {
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

class CustomAllocator final : public Allocator {
 public:
  CustomAllocator(const RfcCustomAllocatorFns& fns, const RfcCustomAllocator* allocator)
      : fns_(fns), allocator_(allocator) {}

  const char* name(int32_t kind) const override {
    switch (kind) {
      case MTF_HOST_MEMORY: return "host_allocate_raw";
      case MTF_UNIFIED_MEMORY: return "unified_memory_allocate";
      default: return "allocate_raw";
    }
  }

  bool has(int32_t kind) const override {
    if (kind == MTF_UNIFIED_MEMORY) return false;
    return kind == MTF_HOST_MEMORY ? fns_.host_allocate_raw != nullptr
                                   : fns_.allocate_raw != nullptr;
  }

  void allocate(const SP_Device* device, int32_t kind, uint64_t size,
                SP_DeviceMemoryBase* memory) const override {
    memory->opaque = kind == MTF_HOST_MEMORY
                         ? fns_.host_allocate_raw(device, allocator_, size)
                         : fns_.allocate_raw(device, allocator_, size, kAlignment);
  }

  void deallocate(const SP_Device* device, int32_t kind,
                  SP_DeviceMemoryBase* memory) const override {
    const auto slot = kind == MTF_HOST_MEMORY ? fns_.host_deallocate_raw : fns_.deallocate_raw;
    if (slot != nullptr) slot(device, allocator_, memory->opaque);
  }

  bool has_stats() const override { return fns_.get_allocator_stats != nullptr; }
  bool stats(const SP_Device* device, SP_AllocatorStats* stats) const override {
    return fns_.get_allocator_stats(device, allocator_, stats) != 0;
  }
  bool has_usage() const override { return fns_.device_memory_usage != nullptr; }
  bool usage(const SP_Device* device, int64_t* free_bytes, int64_t* total_bytes) const override {
    return fns_.device_memory_usage(device, allocator_, free_bytes, total_bytes) != 0;
  }

 private:
  const RfcCustomAllocatorFns fns_;
  const RfcCustomAllocator* const allocator_;
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
  return std::unique_ptr<Allocator>(
      new (std::nothrow) CustomAllocator(*static_cast<const RfcCustomAllocatorFns*>(fns),
                                         static_cast<const RfcCustomAllocator*>(allocator)));
}

}  // namespace mtf
