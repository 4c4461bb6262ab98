// The table of a filesystem that TensorFlow calls, and memory regions.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "bridge_calls.h"
#include "filesystem_slots.h"
#include "plugin_strings.h"

namespace mtf::bridge {
namespace {

// The call of a slot by Python, which knows it by its name.
class PythonCall {
 public:
  PythonCall(const TF_Filesystem*, Slot slot, SlotValues& values, TF_Status* status) : status_(status) {
    if (slot == Slot::delete_recursively) answer_.numbers[1] = 1;  // where the walk cannot start
    if (slot == Slot::is_directory) answer_.numbers[0] = 1;        // where the status is OK
    is_ok_ = ask(status, answer_, [&] {
      mtf_upcall_path(info_of(slot).name, values.texts[0], values.texts[1], &answer_);
    });
    std::memcpy(values.numbers, answer_.numbers, sizeof values.numbers);
  }

  bool is_ok() const { return is_ok_; }

  int names(char*** entries) {
    const mtf_strings& names = answer_.names;
    const int count = split_names(names.bytes, names.size, names.count, entries);
    if (count < 0) set_status(status_, TF_RESOURCE_EXHAUSTED, "modular_tf: no memory for the names");
    return count;
  }

 private:
  Answer answer_;
  TF_Status* status_;
  bool is_ok_ = false;
};

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

void open_region(const TF_Filesystem*, const char* path, TF_ReadOnlyMemoryRegion* region,
                 TF_Status* status) {
  catch_exceptions(status, [&] {
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

// -- the tables -------------------------------------------------------------------------------------------

// The functions of slots whose rows say kBridge.
template <Slot slot>
constexpr void* kBridgeFunction = nullptr;  // is none
template <>
constexpr auto kBridgeFunction<Slot::new_random_access_file> = open_reader;
template <>
constexpr auto kBridgeFunction<Slot::new_writable_file> = open_writer;
template <>
constexpr auto kBridgeFunction<Slot::new_appendable_file> = open_appender;
template <>
constexpr auto kBridgeFunction<Slot::new_read_only_memory_region_from_file> = open_region;
// The whole URI: TensorFlow's own rule would drop the scheme, by which Python finds the filesystem.
template <>
constexpr auto kBridgeFunction<Slot::translate_name> = +[](const TF_Filesystem*, const char* uri) {
  return strdup(uri);
};
// TensorFlow names no scheme here.
template <>
constexpr auto kBridgeFunction<Slot::flush_caches> = +[](const TF_Filesystem*) {};

TF_FilesystemOps filesystem_table() {
  TF_FilesystemOps table = {};
  table.init = [](TF_Filesystem*, TF_Status* status) { set_status(status, TF_OK, ""); };
  table.cleanup = [](TF_Filesystem*) {};
#define MTF_FUNCTION_kAsked(slot) slot_function<PythonCall, Slot::slot>()
#define MTF_FUNCTION_kBridge(slot) kBridgeFunction<Slot::slot>
#define MTF_FUNCTION_kNone(slot) nullptr
#define MTF_SLOT(slot, texts, missing, worker, tensorflow) table.slot = MTF_FUNCTION_##tensorflow(slot);
#include "filesystem_slots.def"
  return table;
}

// The slots before the transactions: what the tables of 264 and of 216 bytes have in common.
constexpr size_t kCommonTable = offsetof(TF_FilesystemOps_V221, start_transaction);

// Lets TensorFlow, which frees each table, have a copy of its own.
template <class Table>
Table* lent(const Table& table) {
  auto* copy = static_cast<Table*>(std::malloc(sizeof(Table)));
  if (copy != nullptr) *copy = table;
  return copy;
}

}  // namespace

void fill_tables(TF_FilesystemPluginOps* entry, const char* scheme) {
  TF_SetFilesystemVersionMetadata(entry);
  entry->scheme = strdup(scheme);
  entry->filesystem_ops_size = kCommonTable;
  entry->filesystem_ops = lent(filesystem_table());
  entry->random_access_file_ops = lent(reader_table());
  entry->writable_file_ops = lent(writer_table());
  entry->read_only_memory_region_ops = lent(TF_ReadOnlyMemoryRegionOps{
      cleanup_region,
      [](const TF_ReadOnlyMemoryRegion* region) -> const void* { return region_of(region)->data; },
      [](const TF_ReadOnlyMemoryRegion* region) { return region_of(region)->length; }});
}

}  // namespace mtf::bridge
