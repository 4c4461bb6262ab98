// Defects of regions.
#include <atomic>
#include <cstring>

#include "defects.h"
#include "leaking.h"
#include "misjudging.h"
#include "open_paths.h"

namespace {

std::atomic<unsigned> asked{0};

}  // namespace

DEFECTS(regions) = {
    {"FS-199", [](Tables& tables) {  // one byte is missing
       follow_regions(tables);
       tables.region.length = [](const TF_ReadOnlyMemoryRegion* region) -> uint64_t {
         const uint64_t length = original.region.length(region);
         return is_of(region, "mapped") ? length - 1 : length;
       };
     }},
    {"FS-200", [](Tables& tables) {  // an empty file is not found
       misjudge<&TF_FilesystemOps::new_read_only_memory_region_from_file>(tables, "E",
                                                                          TF_NOT_FOUND);
     }},
    {"FS-201", [](Tables& tables) {  // a missing parent is a failed precondition
       misjudge<&TF_FilesystemOps::new_read_only_memory_region_from_file>(tables, "X/y",
                                                                          TF_FAILED_PRECONDITION);
     }},
    {"FS-202", [](Tables& tables) {  // a directory is not found
       misjudge<&TF_FilesystemOps::new_read_only_memory_region_from_file>(tables, "D",
                                                                          TF_NOT_FOUND);
     }},
    {"FS-203", [](Tables& tables) {  // the bytes are copied to and fro between two places
       follow_regions(tables);
       tables.region.data = [](const TF_ReadOnlyMemoryRegion* region) -> const void* {
         static char places[2][64];
         const void* data = original.region.data(region);
         if (!is_of(region, "stable")) return data;
         char* place = places[asked++ % 2];
         std::memcpy(place, data, original.region.length(region));
         return place;
       };
     }},
    {"FS-204", [](Tables& tables) {  // a header before the bytes
       follow_regions(tables);
       tables.region.data = [](const TF_ReadOnlyMemoryRegion* region) -> const void* {
         const auto* data = static_cast<const char*>(original.region.data(region));
         return is_of(region, "aligned-100") ? data + 8 : data;
       };
     }},
    {"FS-205", [](Tables& tables) {  // each region leaves a descriptor
       follow_regions(tables);
       tables.region.cleanup = [](TF_ReadOnlyMemoryRegion* region) {
         if (is_of(region, "often")) leak_descriptor();
         original.region.cleanup(region);
       };
     }},
};
