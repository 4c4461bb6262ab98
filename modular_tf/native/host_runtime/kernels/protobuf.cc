#include "protobuf.h"

#include <cstring>

namespace mtf::kernels {

bool take_varint(std::string_view* packed, uint64_t* value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && !packed->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(packed->front());
    packed->remove_prefix(1);
    *value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool MessageReader::read_varint(uint64_t* value) { return take_varint(&rest_, value); }

bool MessageReader::read_fixed(size_t size) {
  if (rest_.size() < size) return false;
  value_ = 0;
  std::memcpy(&value_, rest_.data(), size);
  rest_.remove_prefix(size);
  return true;
}

bool MessageReader::next() {
  if (rest_.empty()) return false;
  uint64_t tag = 0, length = 0;
  is_damaged_ = true;
  if (!read_varint(&tag)) return false;
  number_ = static_cast<uint32_t>(tag >> 3);
  wire_type_ = tag & 7;
  bytes_ = {};
  switch (wire_type_) {
    case 0: is_damaged_ = !read_varint(&value_); break;
    case 1: is_damaged_ = !read_fixed(8); break;
    case 5: is_damaged_ = !read_fixed(4); break;
    case 2:
      if (!read_varint(&length) || length > rest_.size()) return false;
      bytes_ = rest_.substr(0, length);
      rest_.remove_prefix(length);
      is_damaged_ = false;
      break;
    default: break;
  }
  return !is_damaged_;
}

void MessageWriter::append_varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
  text_ += static_cast<char>(value);
}

MessageWriter& MessageWriter::varint(uint32_t number, uint64_t value) {
  append_varint(number << 3);
  append_varint(value);
  return *this;
}

MessageWriter& MessageWriter::fixed32(uint32_t number, uint32_t value) {
  append_varint(number << 3 | 5);
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  text_.append(raw, sizeof raw);
  return *this;
}

MessageWriter& MessageWriter::bytes(uint32_t number, std::string_view value) {
  append_varint(number << 3 | 2);
  append_varint(value.size());
  text_ += value;
  return *this;
}

}  // namespace mtf::kernels
