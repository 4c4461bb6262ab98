// The blocks of memory of an array of options: each pointer in it is one.
#pragma once

#include "filesystem_settings.h"

namespace mtf {

constexpr int kIntegers = 0, kReals = 1, kBuffers = 2;  // the type tags

// Gives every block back by release(block), which accepts NULL.
template <class Release>
void release_options(mtf_option* options, int count, Release&& release) {
  for (int i = 0; options != nullptr && i < count; ++i) {
    mtf_option_value* value = options[i].value;
    const bool has_buffers =
        value != nullptr && value->type_tag == kBuffers && value->values != nullptr;
    for (int j = 0; has_buffers && j < value->num_values; ++j) {
      release(value->values[j].buffer.bytes);
    }
    if (value != nullptr) release(value->values);
    release(value);
    release(options[i].name);
    release(options[i].description);
  }
  release(options);
}

}  // namespace mtf
