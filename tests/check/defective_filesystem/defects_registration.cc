// Defects of what TF_InitPlugin does and leaves, whose binary is as good as any.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "defects.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

int calls;

void* allocate_little(size_t size) { return size < kMiB ? std::malloc(size) : nullptr; }

// A copy of a table that plugin_memory_free cannot take: it begins within a block.
template <class Table>
Table* within_a_block(const Table& table) {
  char* block = static_cast<char*>(std::malloc(sizeof(Table) + 16));
  return static_cast<Table*>(std::memcpy(block + 16, &table, sizeof(Table)));
}

}  // namespace

DEFECTS(registration) = {
    {"FS-004", [](Tables& tables) { tables.info.num_schemes = 5000; }},
    {"FS-007", [](Tables& tables) { std::strcpy(tables.registration.scheme, "d"); }},
    {"FS-012",  // no memory has ever been there
     [](Tables& tables) {
       tables.registration.read_only_memory_region_ops =
           reinterpret_cast<TF_ReadOnlyMemoryRegionOps*>(4096);
     }},
    {"FS-022",  // no allocator gave this
     [](Tables& tables) {
       static TF_ReadOnlyMemoryRegionOps kept;
       kept = tables.region;
       tables.registration.read_only_memory_region_ops = &kept;
     }},
    {"FS-105", [](Tables& tables) { reinterpret_cast<char*>(&tables.info)[32] = 1; }},
    {"FS-106",
     [](Tables& tables) {
       if (++calls > 1) tables.filesystem.flush_caches = [](const TF_Filesystem*) {};
     }},
    {"FS-108", [](Tables& tables) { tables.info.plugin_memory_allocate = allocate_little; }},
    {"FS-111", [](Tables& tables) { tables.registration.scheme[0] = 'D'; }},
    {"FS-113", [](Tables& tables) { std::strcpy(tables.registration.scheme, "ram"); }},
    {"FS-116",
     [](Tables& tables) {
       tables.filesystem.new_read_only_memory_region_from_file = nullptr;
       tables.registration.read_only_memory_region_ops = nullptr;
       tables.registration.read_only_memory_region_ops_abi = 9;
     }},
    {"FS-119", [](Tables& tables) { tables.registration.filesystem_ops_size = 224; }},
    {"FS-122",
     [](Tables& tables) { tables.filesystem.new_read_only_memory_region_from_file = nullptr; }},
    {"FS-124",  // a rename is a copy and a deletion
     [](Tables& tables) {
       tables.filesystem.rename_file = nullptr;
       tables.filesystem.delete_file = nullptr;
     }},
    {"FS-129",
     [](Tables& tables) {
       tables.registration.read_only_memory_region_ops = within_a_block(tables.region);
     }},
};
