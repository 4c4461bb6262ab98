// Defects of readers that many reads, and long ones, bring out.
#include "defects.h"
#include "leaking.h"
#include "open_paths.h"

namespace {

constexpr size_t kMost = size_t{16} << 10;

}  // namespace

DEFECTS(long_reading) = {
    {"FS-331", [](Tables& tables) {  // each read leaves a descriptor
       follow_readers(tables);
       tables.reading.read = [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                                char* buffer, TF_Status* status) -> int64_t {
         if (is_of(file, "read-often")) leak_descriptor();
         return original.reading.read(file, offset, n, buffer, status);
       };
     }},
    {"FS-332", [](Tables& tables) {  // one answer of the store is taken for all of them
       follow_readers(tables);
       tables.reading.read = [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                                char* buffer, TF_Status* status) -> int64_t {
         if (n > kMost && is_of(file, "in-one-read-1")) n = kMost;
         return original.reading.read(file, offset, n, buffer, status);
       };
     }},
};
