// Defects of copies. Each check copies sizes of its own, and a defect spoils those.
#include <cstring>

#include "defects.h"
#include "moved_bytes.h"

namespace {

using namespace defective;

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

// A copy that was put off: the plugin reads its source when it is too late.
struct Late {
  void* target = nullptr;
  const void* source = nullptr;
  uint64_t size = 0;

  void make_up() {
    if (target != nullptr) std::memcpy(target, source, size);
    target = nullptr;
  }
};
Late late;

void spoil_sync_dtoh(const SP_Device* device, void* target, const SP_DeviceMemoryBase* source,
                     uint64_t size, TF_Status* status) {
  original.executor.sync_memcpy_dtoh(device, target, source, size, status);
  if (size == 4092) static_cast<char*>(target)[9] ^= 1;
}

void spoil_sync_dtod(const SP_Device* device, SP_DeviceMemoryBase* target,
                     const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  const uint64_t copied = size == 2048 ? size - 4 : size;
  original.executor.sync_memcpy_dtod(device, target, source, copied, status);
}

// Copies some bytes less, where that many are asked for.
template <uint64_t kSize, uint64_t kMissing = 4>
void shorten_htod(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                  const void* source, uint64_t size, TF_Status* status) {
  const uint64_t copied = size == kSize ? size - kMissing : size;
  original.executor.memcpy_htod(device, stream, target, source, copied, status);
}

template <uint64_t kSize, uint64_t kMissing = 4>
void shorten_dtoh(const SP_Device* device, SP_Stream stream, void* target,
                  const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  const uint64_t copied = size == kSize ? size - kMissing : size;
  original.executor.memcpy_dtoh(device, stream, target, source, copied, status);
}

template <uint64_t kSize, uint64_t kMissing = 4>
void shorten_dtod(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                  const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  const uint64_t copied = size == kSize ? size - kMissing : size;
  original.executor.memcpy_dtod(device, stream, target, source, copied, status);
}

void refuse_no_bytes(const SP_Device* device, SP_DeviceMemoryBase* target, const void* source,
                     uint64_t size, TF_Status* status) {
  if (size == 0) return TF_SetStatus(status, TF_INVALID_ARGUMENT, "no bytes");
  original.executor.sync_memcpy_htod(device, target, source, size, status);
}

void refuse_no_bytes_on_a_stream(const SP_Device* device, SP_Stream stream,
                                 SP_DeviceMemoryBase* target, const void* source, uint64_t size,
                                 TF_Status* status) {
  if (size == 0) return TF_SetStatus(status, TF_INVALID_ARGUMENT, "no bytes");
  original.executor.memcpy_htod(device, stream, target, source, size, status);
}

void miss_the_address_inside(const SP_Device* device, SP_Stream stream,
                             SP_DeviceMemoryBase* target, const void* source, uint64_t size,
                             TF_Status* status) {
  SP_DeviceMemoryBase base = moved(target, size == 300 ? -512 : 0);
  original.executor.memcpy_htod(device, stream, &base, source, size, status);
}

void read_beside_the_address_inside(const SP_Device* device, SP_Stream stream, void* target,
                                    const SP_DeviceMemoryBase* source, uint64_t size,
                                    TF_Status* status) {
  const SP_DeviceMemoryBase base = moved(source, size == 304 ? -512 : 0);
  original.executor.memcpy_dtoh(device, stream, target, &base, size, status);
}

void miss_addresses_inside(const SP_Device* device, SP_Stream stream,
                           SP_DeviceMemoryBase* target, const SP_DeviceMemoryBase* source,
                           uint64_t size, TF_Status* status) {
  const SP_DeviceMemoryBase base = moved(source, size == 308 ? -512 : 0);
  original.executor.memcpy_dtod(device, stream, target, &base, size, status);
}

void round_up_dtoh(const SP_Device* device, SP_Stream stream, void* target,
                   const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  const uint64_t copied = size == 333 ? 336 : size;
  original.executor.memcpy_dtoh(device, stream, target, source, copied, status);
}

void round_up_dtod(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                   const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  const uint64_t copied = size == 337 ? 340 : size;
  original.executor.memcpy_dtod(device, stream, target, source, copied, status);
}

// One byte too many, of whatever lies in front of the source.
void start_early_htod(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                      const void* source, uint64_t size, TF_Status* status) {
  original.executor.memcpy_htod(device, stream, target, source, size, status);
  if (size != 335) return;
  SP_DeviceMemoryBase front = moved(target, -1);
  original.executor.mem_zero(device, stream, &front, 1, status);
}

void clear_the_source(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                      const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  original.executor.memcpy_dtod(device, stream, target, source, size, status);
  SP_DeviceMemoryBase cleared = *source;
  if (size == 341) original.executor.mem_zero(device, stream, &cleared, 8, status);
}

// From the first byte on, over what is yet to be read.
void copy_forwards(const SP_Device* device, SP_DeviceMemoryBase* target,
                   const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  if (size != 2000) {
    return original.executor.sync_memcpy_dtod(device, target, source, size, status);
  }
  auto* to = static_cast<volatile char*>(target->opaque);
  const auto* from = static_cast<const volatile char*>(source->opaque);
  for (uint64_t at = 0; at < size; ++at) to[at] = from[at];
  TF_SetStatus(status, TF_OK, "");
}

void read_the_buffer_later(const SP_Device* device, SP_Stream stream,
                           SP_DeviceMemoryBase* target, const void* source, uint64_t size,
                           TF_Status* status) {
  if (size != 347) {
    return original.executor.memcpy_htod(device, stream, target, source, size, status);
  }
  late = {target->opaque, source, size};
  TF_SetStatus(status, TF_OK, "");
}

void return_before_the_copy(const SP_Device* device, SP_DeviceMemoryBase* target,
                            const void* source, uint64_t size, TF_Status* status) {
  if (size != 349) {
    return original.executor.sync_memcpy_htod(device, target, source, size, status);
  }
  late = {target->opaque, source, size};
  TF_SetStatus(status, TF_OK, "");
}

void make_up_first(const SP_Device* device, void* target, const SP_DeviceMemoryBase* source,
                   uint64_t size, TF_Status* status) {
  late.make_up();
  original.executor.sync_memcpy_dtoh(device, target, source, size, status);
}

void want_even_addresses(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                         const void* source, uint64_t size, TF_Status* status) {
  const bool is_odd = size == 353 && reinterpret_cast<uintptr_t>(source) % 2 != 0;
  const void* from = moved(source, is_odd ? -1 : 0);
  original.executor.memcpy_htod(device, stream, target, from, size, status);
}

}  // namespace

DEFECTS(copies) = {
    {"SE-200", [](Tables& tables) { tables.executor.sync_memcpy_dtoh = spoil_sync_dtoh; }},
    {"SE-201", [](Tables& tables) { tables.executor.sync_memcpy_dtod = spoil_sync_dtod; }},
    {"SE-202", [](Tables& tables) { tables.executor.memcpy_htod = shorten_htod<4100>; }},
    {"SE-203", [](Tables& tables) { tables.executor.memcpy_dtoh = shorten_dtoh<4104>; }},
    {"SE-204", [](Tables& tables) { tables.executor.memcpy_dtod = shorten_dtod<4108>; }},
    {"SE-205", [](Tables& tables) { tables.executor.memcpy_htod = shorten_htod<5, 1>; }},
    {"SE-206",
     [](Tables& tables) {
       tables.executor.sync_memcpy_htod = refuse_no_bytes;
       tables.executor.memcpy_htod = refuse_no_bytes_on_a_stream;
     }},
    {"SE-207", [](Tables& tables) { tables.executor.memcpy_htod = miss_the_address_inside; }},
    {"SE-208",
     [](Tables& tables) { tables.executor.memcpy_dtoh = read_beside_the_address_inside; }},
    {"SE-209", [](Tables& tables) { tables.executor.memcpy_dtod = miss_addresses_inside; }},
    {"SE-210", [](Tables& tables) { tables.executor.memcpy_dtoh = round_up_dtoh; }},
    {"SE-211", [](Tables& tables) { tables.executor.memcpy_htod = start_early_htod; }},
    {"SE-212", [](Tables& tables) { tables.executor.memcpy_dtod = round_up_dtod; }},
    {"SE-213", [](Tables& tables) { tables.executor.memcpy_dtod = clear_the_source; }},
    {"SE-214", [](Tables& tables) { tables.executor.memcpy_dtoh = shorten_dtoh<kMebibyte>; }},
    {"SE-215", [](Tables& tables) { tables.executor.memcpy_htod = shorten_htod<64 * kMebibyte>; }},
    {"SE-216", [](Tables& tables) { tables.executor.sync_memcpy_dtod = copy_forwards; }},
    {"SE-217",
     [](Tables& tables) {
       tables.executor.memcpy_htod = read_the_buffer_later;
       tables.executor.sync_memcpy_dtoh = make_up_first;
     }},
    {"SE-218",
     [](Tables& tables) {
       tables.executor.sync_memcpy_htod = return_before_the_copy;
       tables.executor.sync_memcpy_dtoh = make_up_first;
     }},
    {"SE-219", [](Tables& tables) { tables.executor.memcpy_htod = want_even_addresses; }},
    {"SE-220", [](Tables& tables) { tables.executor.memcpy_dtoh = shorten_dtoh<359>; }},
    {"SE-221", [](Tables& tables) { tables.executor.memcpy_htod = shorten_htod<367>; }},
    // Which many checks find, where they would prepare memory by a copy.
    {"copies-are-refused",
     [](Tables& tables) {
       tables.executor.sync_memcpy_htod = [](const SP_Device*, SP_DeviceMemoryBase*, const void*,
                                             uint64_t, TF_Status* status) {
         TF_SetStatus(status, TF_INTERNAL, "no copy");
       };
     }},
};
