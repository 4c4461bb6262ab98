#include "bridge_files.h"

#include <memory>
#include <string>
#include <utility>

#include "bridge_tables.h"

namespace mtf::bridge {

void release(int64_t file) {
  if (file == 0) return;
  Answer answer;
  const Call call;
  if (call) mtf_upcall_file("release", file, nullptr, 0, &answer);
}

UniqueCallLock lock_of(CallLock& lock, int64_t file, TF_Status* status) {
  while (!lock.try_lock()) {
    if (lock.is_held_by_this_thread()) {
      const std::string message = std::string("modular_tf: ") + kFileIsInterrupted + kUseFileLater;
      set_status(status, TF_FAILED_PRECONDITION, message.c_str());
      return {};
    }
    Answer answer;
    mtf_upcall_file("wait", file, nullptr, 0, &answer);
  }
  return UniqueCallLock(lock, std::adopt_lock);
}

void refuse(TF_Status* status) {
  set_status(status, TF_FAILED_PRECONDITION, "modular_tf: the process ends");
}

// ---- Memory regions -------------------------------------------------------------------------

namespace {

struct Region {
  char* data;
  uint64_t length;
};

Region* region_of(const TF_ReadOnlyMemoryRegion* region) {
  return static_cast<Region*>(region->plugin_memory_region);
}

void cleanup_region(TF_ReadOnlyMemoryRegion* region) {
  std::free(region_of(region)->data);
  delete region_of(region);
}

}  // namespace

void open_region(const TF_Filesystem*, const char* path, TF_ReadOnlyMemoryRegion* region,
                 TF_Status* status) {
  guarded(status, [&] {
    Answer answer;
    auto opened = std::make_unique<Region>();
    if (ask(status, answer, [&] {
          mtf_upcall_path("new_read_only_memory_region_from_file", path, nullptr, &answer);
        })) {
      *opened = {std::exchange(answer.text, nullptr), static_cast<uint64_t>(answer.numbers[0])};
      region->plugin_memory_region = opened.release();
    }
  });
}

TF_ReadOnlyMemoryRegionOps region_table() {
  return {cleanup_region,
          [](const TF_ReadOnlyMemoryRegion* region) -> const void* {
            return region_of(region)->data;
          },
          [](const TF_ReadOnlyMemoryRegion* region) { return region_of(region)->length; }};
}

}  // namespace mtf::bridge
