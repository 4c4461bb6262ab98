// Options for a plugin, in memory of its own allocator, as the interface demands of who sets them.
#pragma once

#include <vector>

#include "filesystem_settings.h"
#include "filesystem_state.h"

namespace mtf {

// The blocks are the host's, which gives each back when this object ends: whatever the plugin made
// of what is in them.
class LentOptions {
 public:
  explicit LentOptions(const mtf_filesystem& filesystem) : filesystem_(filesystem) {}
  ~LentOptions();
  LentOptions(const LentOptions&) = delete;
  LentOptions& operator=(const LentOptions&) = delete;

  Error copy(const mtf_option* options, int count);  // once, before get()
  const TF_Filesystem_Option* get() const { return options_; }

 private:
  Error copy_option(mtf_option& option);
  Error copy_value(mtf_option_value& value);
  Error lend(const void* bytes, size_t size, void** block);
  template <class Type>
  Error lend_copy(Type*& pointer, size_t count);  // points it to a copy of what it points to

  const mtf_filesystem& filesystem_;
  const TF_Filesystem_Option* options_ = nullptr;
  std::vector<void*> blocks_;
};

}  // namespace mtf
