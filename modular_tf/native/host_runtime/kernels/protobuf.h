// As much of protobuf's encoding as kernels see: tensors that they read, nodes that they ask for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mtf::kernels {

// The fields of a serialized message, one after the other. Trusts no byte.
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : rest_(bytes) {}

  // Goes to the next field; false at the end, or where the bytes are no message.
  bool next();
  bool is_damaged() const { return is_damaged_; }
  uint32_t number() const { return number_; }
  // The value of a field that is no submessage, string or list.
  uint64_t value() const { return value_; }
  // The bytes of a field that is one; empty for others.
  std::string_view bytes() const { return bytes_; }
  bool has_bytes() const { return wire_type_ == 2; }

 private:
  bool read_varint(uint64_t* value);
  bool read_fixed(size_t size);

  std::string_view rest_, bytes_;
  uint32_t number_ = 0, wire_type_ = 0;
  uint64_t value_ = 0;
  bool is_damaged_ = false;
};

class MessageWriter {
 public:
  MessageWriter& varint(uint32_t number, uint64_t value);
  MessageWriter& fixed32(uint32_t number, uint32_t value);
  MessageWriter& bytes(uint32_t number, std::string_view value);
  const std::string& text() const { return text_; }

 private:
  void append_varint(uint64_t value);
  std::string text_;
};

// Reads a number off the front of packed ones; false at the end, or where they are damaged.
bool take_varint(std::string_view* packed, uint64_t* value);

}  // namespace mtf::kernels
