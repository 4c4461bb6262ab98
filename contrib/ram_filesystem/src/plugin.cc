// The entry point: one scheme and its tables.
#include <cstdlib>
#include <cstring>

#include "slots.h"

namespace ram {
namespace {

// Memory that goes over to the host comes from malloc throughout the plugin.
void* allocate(size_t size) { return std::malloc(size); }
void release(void* memory) { std::free(memory); }

// The host frees each table by itself. NULL when out of memory, which the host refuses.
template <class Table>
Table* exported(const Table& table) {
  auto* copy = static_cast<Table*>(allocate(sizeof(Table)));
  if (copy != nullptr) std::memcpy(copy, &table, sizeof(Table));
  return copy;
}

TF_FilesystemOps filesystem_table() {
  TF_FilesystemOps ops{};
  fill_file_slots(ops);
  fill_filesystem_slots(ops);
  fill_option_slots(ops);
  return ops;
}

}  // namespace
}  // namespace ram

extern "C" TF_CAPI_EXPORT void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = ram::allocate;
  info->plugin_memory_free = ram::release;
  auto* ops = static_cast<TF_FilesystemPluginOps*>(std::calloc(1, sizeof(TF_FilesystemPluginOps)));
  info->ops = ops;
  info->num_schemes = ops == nullptr ? 0 : 1;
  if (ops == nullptr) return;
  TF_SetFilesystemVersionMetadata(ops);
  ops->scheme = strdup(MTF_RAM_SCHEME);
  ops->filesystem_ops = ram::exported(ram::filesystem_table());
  ops->random_access_file_ops = ram::exported(ram::random_access_file_slots());
  ops->writable_file_ops = ram::exported(ram::writable_file_slots());
  ops->read_only_memory_region_ops = ram::exported(ram::read_only_region_slots());
}
