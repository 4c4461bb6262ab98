// A defect that only a sequence shows.
#include <atomic>

#include "defects.h"

namespace {

using namespace defective;

constexpr uint64_t kLongestSpoilt = 32;

std::atomic<bool> filled_last{false};

void fill_and_tell(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory,
                   uint8_t pattern, uint64_t size, TF_Status* status) {
  filled_last = true;
  original.executor.memset(device, stream, memory, pattern, size, status);
}

void copy_less_after_a_fill(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                            const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  const bool spoils = filled_last.exchange(false) && size > 1 && size <= kLongestSpoilt;
  original.executor.memcpy_dtod(device, stream, target, source, spoils ? size - 1 : size, status);
}

}  // namespace

DEFECTS(sequences) = {
    {"SE-300", [](Tables& tables) {  // the last byte is lost of a short copy after a fill
       tables.executor.memset = fill_and_tell;
       tables.executor.memcpy_dtod = copy_less_after_a_fill;
     }},
};
