#include "worker_options.h"

#include <cstdlib>
#include <cstring>

#include "library.h"
#include "filesystem_state.h"

namespace mtf {
namespace {

constexpr size_t kLongestText = size_t{1} << 20;  // as strings.py reads one

enum Part : uint32_t { kName = 1, kDescription = 2, kValue = 4, kValues = 8 };

// An option: name, description and values follow it, without a NUL.
struct Head {
  uint32_t parts;  // those that there are; a pointer to any other is NULL
  int32_t per_file;
  int32_t type_tag;
  int32_t num_values;
  uint32_t name_size;
  uint32_t description_size;
};

// A value that is a buffer: its bytes follow it.
struct BufferHead {
  int32_t length;
  uint32_t has_bytes;
};
static_assert(sizeof(BufferHead) == sizeof(int64_t) && sizeof(double) == sizeof(int64_t),
              "every value takes as much");

bool has_values(const mtf_option_value& value) {
  return value.values != nullptr && value.num_values >= 0 && value.type_tag >= kIntegers &&
         value.type_tag <= kBuffers;
}

// -- writing --------------------------------------------------------------------------------------

// Measured once: a plugin may change it meanwhile.
uint32_t text_size(const char* text) {
  const int64_t length = text == nullptr ? -1 : mtf_try_strlen(text, kLongestText);
  return length < 0 ? UINT32_MAX : static_cast<uint32_t>(length);
}

bool append(std::string& bytes, const void* data, size_t size) {
  if (size > kMostOfOptions - bytes.size()) return false;
  if (size > 0) bytes.append(static_cast<const char*>(data), size);
  return true;
}

bool write_buffer(const mtf_option_buffer& buffer, std::string& bytes) {
  const mtf_option_buffer seen = buffer;
  const bool has_bytes = seen.bytes != nullptr && seen.length > 0;
  const BufferHead head = {seen.length, has_bytes ? 1u : 0u};
  if (!append(bytes, &head, sizeof head)) return false;
  return !has_bytes || append(bytes, seen.bytes, static_cast<size_t>(seen.length));
}

bool write_values(const mtf_option_item* items, int type_tag, int count, std::string& bytes) {
  for (int i = 0; i < count; ++i) {
    const bool is_written = type_tag == kBuffers ? write_buffer(items[i].buffer, bytes)
                                                 : append(bytes, &items[i].integer, sizeof(int64_t));
    if (!is_written) return false;
  }
  return true;
}

bool write_option(const mtf_option& option, std::string& bytes) {
  const mtf_option seen = option;
  mtf_option_value value = {};
  if (seen.value != nullptr) value = *seen.value;
  const bool values_come = has_values(value);
  Head head = {};
  head.per_file = seen.per_file;
  head.type_tag = value.type_tag;
  head.num_values = value.num_values;
  const uint32_t name_size = text_size(seen.name);
  const uint32_t description_size = text_size(seen.description);
  if (name_size != UINT32_MAX) head.parts |= kName, head.name_size = name_size;
  if (description_size != UINT32_MAX) {
    head.parts |= kDescription, head.description_size = description_size;
  }
  if (seen.value != nullptr) head.parts |= kValue;
  if (values_come) head.parts |= kValues;
  return append(bytes, &head, sizeof head) && append(bytes, seen.name, head.name_size) &&
         append(bytes, seen.description, head.description_size) &&
         (!values_come || write_values(value.values, value.type_tag, value.num_values, bytes));
}

// -- reading --------------------------------------------------------------------------------------

class Source {
 public:
  Source(const char* bytes, size_t size) : next_(bytes), left_(size) {}
  size_t left() const { return left_; }

  bool take(void* to, size_t size) {
    if (size > left_) return false;
    std::memcpy(to, next_, size);
    next_ += size;
    left_ -= size;
    return true;
  }

  // A copy with a NUL behind it.
  bool take_text(size_t size, char*& text) {
    if (size > left_) return false;
    text = static_cast<char*>(std::malloc(size + 1));
    if (text == nullptr) return false;
    text[size] = '\0';
    return take(text, size);
  }

 private:
  const char* next_;
  size_t left_;
};

bool read_buffer(Source& source, mtf_option_buffer& buffer) {
  BufferHead head;
  if (!source.take(&head, sizeof head)) return false;
  buffer.length = head.length;
  if (head.has_bytes == 0) return true;
  return head.length > 0 && source.take_text(static_cast<size_t>(head.length), buffer.bytes);
}

bool read_values(Source& source, mtf_option_value& value, int count) {
  if (count < 0 || static_cast<size_t>(count) > source.left() / sizeof(int64_t)) return false;
  value.values = static_cast<mtf_option_item*>(
      std::calloc(static_cast<size_t>(count) + 1, sizeof(mtf_option_item)));
  if (value.values == nullptr) return false;
  value.num_values = count;
  for (int i = 0; i < count; ++i) {
    mtf_option_item& item = value.values[i];
    const bool is_read = value.type_tag == kBuffers ? read_buffer(source, item.buffer)
                                                    : source.take(&item.integer, sizeof item.integer);
    if (!is_read) return false;
  }
  return true;
}

bool read_value(Source& source, const Head& head, mtf_option_value*& value) {
  value = static_cast<mtf_option_value*>(std::calloc(1, sizeof *value));
  if (value == nullptr) return false;
  value->type_tag = head.type_tag;
  value->num_values = head.num_values;
  if ((head.parts & kValues) == 0) return true;
  if (head.type_tag < kIntegers || head.type_tag > kBuffers) return false;
  return read_values(source, *value, head.num_values);
}

bool read_option(Source& source, mtf_option& option) {
  Head head;
  if (!source.take(&head, sizeof head)) return false;
  option.per_file = head.per_file;
  if ((head.parts & kName) != 0 && !source.take_text(head.name_size, option.name)) return false;
  if ((head.parts & kDescription) != 0 &&
      !source.take_text(head.description_size, option.description)) {
    return false;
  }
  return (head.parts & kValue) == 0 || read_value(source, head, option.value);
}

}  // namespace

OwnedOptions::~OwnedOptions() { release_options(options, count, std::free); }

bool write_options(const mtf_option* options, int count, std::string& bytes) {
  for (int i = 0; i < count; ++i) {
    if (!write_option(options[i], bytes)) return false;
  }
  return true;
}

bool read_options(const char* bytes, size_t size, int64_t count, OwnedOptions& made) {
  if (count < 0 || static_cast<uint64_t>(count) > size / sizeof(Head)) return false;
  made.options = static_cast<mtf_option*>(
      std::calloc(static_cast<size_t>(count) + 1, sizeof(mtf_option)));
  if (made.options == nullptr) return false;
  Source source(bytes, size);
  while (made.count < count) {
    if (!read_option(source, made.options[made.count++])) return false;
  }
  return source.left() == 0;
}

}  // namespace mtf
