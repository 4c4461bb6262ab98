// Defects of what the plugin does to the heap.
#include <cstdlib>

#include "defects.h"

namespace {

constexpr uint64_t kOdd = 7777;  // bytes, as the check asks for
constexpr size_t kRecord = 24;

// A record of an allocation that is one byte too short.
void keep_record() {
  auto* record = static_cast<volatile char*>(std::malloc(kRecord));
  for (size_t i = 0; i <= kRecord; ++i) record[i] = 1;
  std::free(const_cast<char*>(record));
}

}  // namespace

DEFECTS(heap) = {
    {"SE-329", [](Tables& tables) {  // beside memory of one size, a block is overrun
       tables.executor.allocate = [](const SP_Device* device, uint64_t size, int64_t space,
                                     SP_DeviceMemoryBase* memory) {
         if (size == kOdd) keep_record();
         original.executor.allocate(device, size, space, memory);
       };
     }},
};
