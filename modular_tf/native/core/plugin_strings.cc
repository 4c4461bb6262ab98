#include "plugin_strings.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "copied_text.h"

namespace mtf {
namespace {

constexpr size_t kFirstRoom = 4096;
constexpr int64_t kMostNames = int64_t{1} << 24;  // copies take memory, also of names that are empty

// Strings, one behind the other, in memory that std::free takes back.
class StringBlock {
 public:
  StringBlock() = default;
  StringBlock(const StringBlock&) = delete;
  StringBlock& operator=(const StringBlock&) = delete;
  ~StringBlock() { std::free(bytes_); }

  Error add(const char* text) {
    const size_t length = mtf_text_length(text);
    if (length == MTF_LONGEST_TEXT) return make_error(TF_INTERNAL, "an entry of the array has no end");
    if (!make_room(length + 1)) return make_error(TF_RESOURCE_EXHAUSTED, "no memory for a list of names");
    mtf_put_text(bytes_ + size_, text, length);
    size_ += std::strlen(bytes_ + size_) + 1;  // a NUL may have come into it meanwhile
    return nullptr;
  }

  void move_to(mtf_strings* strings) {
    strings->size = std::exchange(size_, 0);
    strings->bytes = std::exchange(bytes_, nullptr);
  }

 private:
  bool make_room(size_t more) {
    if (more <= room_ - size_) return true;
    const size_t wanted = std::max({kFirstRoom, 2 * room_, size_ + more});
    auto* grown = static_cast<char*>(std::realloc(bytes_, wanted));
    if (grown == nullptr) return false;
    bytes_ = grown;
    room_ = wanted;
    return true;
  }

  char* bytes_ = nullptr;
  size_t size_ = 0;
  size_t room_ = 0;
};

}  // namespace

PluginStrings::~PluginStrings() {
  if (count_ < 0) return;
  for (int i = 0; entries_ != nullptr && i < count_; ++i) {
    free_by_plugin(plugin_, free_, entries_[i]);
  }
  free_by_plugin(plugin_, free_, entries_);
}

Error PluginStrings::copy_to(mtf_strings* strings) const {
  if (count_ < 0) return make_error(TF_INTERNAL, "a negative count came with an OK status");
  if (count_ > 0 && entries_ == nullptr) {
    return make_error(TF_INTERNAL, "a positive count came with a NULL array");
  }
  StringBlock block;
  for (int i = 0; i < count_; ++i) {
    const char* entry = __atomic_load_n(&entries_[i], __ATOMIC_RELAXED);
    if (entry == nullptr) return make_error(TF_INTERNAL, "the array holds a NULL entry");
    if (Error error = block.add(entry)) return error;
  }
  strings->count = count_;
  block.move_to(strings);
  return nullptr;
}

int split_names(const char* bytes, size_t size, int64_t count, char*** entries) {
  if (count < 0 || count > kMostNames || static_cast<uint64_t>(count) > size) return -1;
  auto** const made = static_cast<char**>(std::calloc(static_cast<size_t>(count) + 1, sizeof(char*)));
  int64_t done = 0;
  for (size_t at = 0; made != nullptr && done < count; ++done) {
    const size_t length = strnlen(bytes + at, size - at);
    if (length == size - at) break;
    made[done] = static_cast<char*>(std::malloc(length + 1));
    if (made[done] == nullptr) break;
    mtf_put_text(made[done], bytes + at, length);
    at += length + 1;
  }
  if (made != nullptr && done == count) {
    *entries = made;
    return static_cast<int>(count);
  }
  while (done > 0) std::free(made[--done]);
  std::free(made);
  return -1;
}

}  // namespace mtf
