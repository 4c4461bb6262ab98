// Defects of fills. Each check fills sizes of its own, and a defect spoils those.
#include <cstring>

#include "defects.h"
#include "moved_bytes.h"

namespace {

using namespace defective;

// Fills as many bytes as `kFilled` says where `kAsked` are asked for.
template <uint64_t kAsked, uint64_t kFilled>
void zero_others(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory,
                 uint64_t size, TF_Status* status) {
  const uint64_t filled = size == kAsked ? kFilled : size;
  original.executor.mem_zero(device, stream, memory, filled, status);
}

template <uint64_t kAsked, uint64_t kFilled>
void fill_others(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory,
                 uint8_t pattern, uint64_t size, TF_Status* status) {
  const uint64_t filled = size == kAsked ? kFilled : size;
  original.executor.memset(device, stream, memory, pattern, filled, status);
}

template <uint64_t kAsked, uint64_t kFilled>
void fill_other_words(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory,
                      uint32_t pattern, uint64_t size, TF_Status* status) {
  const uint64_t filled = size == kAsked ? kFilled : size;
  original.executor.memset32(device, stream, memory, pattern, filled, status);
}

void swap_bytes(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory,
                uint32_t pattern, uint64_t size, TF_Status* status) {
  const uint32_t written = size == 4096 ? __builtin_bswap32(pattern) : pattern;
  original.executor.memset32(device, stream, memory, written, size, status);
}

void lose_the_highest_bit(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory,
                          uint8_t pattern, uint64_t size, TF_Status* status) {
  const uint8_t written = size == 44 ? pattern & 0x7F : pattern;
  original.executor.memset(device, stream, memory, written, size, status);
}

void refuse_no_bytes(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory,
                     uint64_t size, TF_Status* status) {
  if (size == 0) return TF_SetStatus(status, TF_INVALID_ARGUMENT, "no bytes");
  original.executor.mem_zero(device, stream, memory, size, status);
}

void fill_at_once(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory,
                  uint8_t pattern, uint64_t size, TF_Status* status) {
  if (size != 349) {
    return original.executor.memset(device, stream, memory, pattern, size, status);
  }
  std::memset(memory->opaque, pattern, size);
  TF_SetStatus(status, TF_OK, "");
}

constexpr uint64_t kMany = uint64_t{16} << 20;

}  // namespace

DEFECTS(fills) = {
    {"SE-223", [](Tables& tables) { tables.executor.mem_zero = zero_others<4096, 4095>; }},
    {"SE-224", [](Tables& tables) { tables.executor.memset = fill_others<4096, 4095>; }},
    {"SE-225", [](Tables& tables) { tables.executor.memset32 = swap_bytes; }},
    {"SE-226", [](Tables& tables) { tables.executor.memset = lose_the_highest_bit; }},
    {"SE-227", [](Tables& tables) { tables.executor.mem_zero = zero_others<333, 336>; }},
    {"SE-228", [](Tables& tables) { tables.executor.memset = fill_others<335, 336>; }},
    {"SE-229", [](Tables& tables) { tables.executor.memset32 = fill_other_words<332, 336>; }},
    {"SE-230", [](Tables& tables) { tables.executor.memset = fill_others<7, 4>; }},
    {"SE-231", [](Tables& tables) { tables.executor.memset32 = fill_other_words<13, 16>; }},
    {"SE-232", [](Tables& tables) { tables.executor.mem_zero = refuse_no_bytes; }},
    {"SE-233", [](Tables& tables) { tables.executor.memset = fill_others<kMany, kMany - 4096>; }},
    {"SE-234", [](Tables& tables) { tables.executor.memset = fill_at_once; }},
};
