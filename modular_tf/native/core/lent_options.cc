#include "lent_options.h"

#include <algorithm>
#include <cstring>

#include "option_blocks.h"

namespace mtf {

LentOptions::~LentOptions() {
  for (void* block : blocks_) {
    if (block == nullptr) continue;
    free_by_plugin(filesystem_.plugin, filesystem_.tables->plugin_free, block);
  }
}

Error LentOptions::lend(const void* bytes, size_t size, void** block) {
  blocks_.push_back(nullptr);  // first, so that no block is lost where the list cannot grow
  Error error = guarded({filesystem_.plugin, "plugin_memory_allocate"}, [&](TF_Status* status) {
    blocks_.back() = filesystem_.tables->plugin_allocate(std::max<size_t>(size, 1));
    if (blocks_.back() == nullptr) {
      mtf_status_set(status, TF_RESOURCE_EXHAUSTED,
                     "the plugin's plugin_memory_allocate has no memory for options");
    }
  });
  if (error) return error;
  *block = blocks_.back();
  if (size != 0) std::memcpy(*block, bytes, size);
  return nullptr;
}

template <class Type>
Error LentOptions::lend_copy(Type*& pointer, size_t count) {
  void* block = nullptr;
  Error error = lend(pointer, count * sizeof(Type), &block);
  pointer = static_cast<Type*>(block);
  return error;
}

Error LentOptions::copy_value(mtf_option_value& value) {
  if (Error error = lend_copy(value.values, static_cast<size_t>(value.num_values))) return error;
  for (int i = 0; value.type_tag == kBuffers && i < value.num_values; ++i) {
    mtf_option_buffer& buffer = value.values[i].buffer;
    if (Error error = lend_copy(buffer.bytes, static_cast<size_t>(buffer.length))) return error;
  }
  return nullptr;
}

Error LentOptions::copy_option(mtf_option& option) {
  if (Error error = lend_copy(option.name, std::strlen(option.name) + 1)) return error;
  if (Error error = lend_copy(option.description, std::strlen(option.description) + 1)) {
    return error;
  }
  if (Error error = lend_copy(option.value, 1)) return error;
  return copy_value(*option.value);
}

Error LentOptions::copy(const mtf_option* options, int count) {
  void* block = nullptr;
  if (Error error = lend(options, static_cast<size_t>(count) * sizeof(mtf_option), &block)) {
    return error;
  }
  auto* copies = static_cast<mtf_option*>(block);
  for (int i = 0; i < count; ++i) {
    if (Error error = copy_option(copies[i])) return error;
  }
  options_ = reinterpret_cast<const TF_Filesystem_Option*>(copies);
  return nullptr;
}

}  // namespace mtf
