// As much of protobuf's encoding as kernels see: TensorProto, which they read, and NodeDef and
// NameAttrList, which they ask for.
#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "node.h"
#include "entry.h"

namespace mtf::kernels {
namespace {

// Reads a number off the front of packed ones; false at the end, or where they are damaged.
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

// The fields of a serialized message, one after the other. Trusts no byte.
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : rest_(bytes) {}

  // Goes to the next field; false at the end, or where the bytes are no message.
  bool next() {
    if (rest_.empty()) return false;
    uint64_t tag = 0, length = 0;
    is_damaged_ = true;
    if (!take_varint(&rest_, &tag)) return false;
    number_ = static_cast<uint32_t>(tag >> 3);
    wire_type_ = tag & 7;
    bytes_ = {};
    switch (wire_type_) {
      case 0: is_damaged_ = !take_varint(&rest_, &value_); break;
      case 1: is_damaged_ = !read_fixed(8); break;
      case 5: is_damaged_ = !read_fixed(4); break;
      case 2:
        if (!take_varint(&rest_, &length) || length > rest_.size()) return false;
        bytes_ = rest_.substr(0, length);
        rest_.remove_prefix(length);
        is_damaged_ = false;
        break;
      default: break;
    }
    return !is_damaged_;
  }
  bool is_damaged() const { return is_damaged_; }
  uint32_t number() const { return number_; }
  // The value of a field that is no submessage, string or list.
  uint64_t value() const { return value_; }
  // The bytes of a field that is one; empty for others.
  std::string_view bytes() const { return bytes_; }
  bool has_bytes() const { return wire_type_ == 2; }

 private:
  bool read_fixed(size_t size) {
    if (rest_.size() < size) return false;
    value_ = 0;
    std::memcpy(&value_, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_, bytes_;
  uint32_t number_ = 0, wire_type_ = 0;
  uint64_t value_ = 0;
  bool is_damaged_ = false;
};

class MessageWriter {
 public:
  MessageWriter& varint(uint32_t number, uint64_t value) {
    append_varint(number << 3);
    append_varint(value);
    return *this;
  }
  MessageWriter& fixed32(uint32_t number, uint32_t value) {
    append_varint(number << 3 | 5);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);  // little-endian
    return *this;
  }
  MessageWriter& bytes(uint32_t number, std::string_view value) {
    append_varint(number << 3 | 2);
    append_varint(value.size());
    text_ += value;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void append_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }

  std::string text_;
};

// -- tensors --

// Fields of TensorProto and TensorShapeProto.
constexpr uint32_t kType = 1, kShape = 2, kContent = 4, kStrings = 8;
constexpr uint32_t kDim = 2, kDimSize = 1, kUnknownRank = 3;

bool read_shape(std::string_view bytes, std::vector<int64_t>* dims) {
  MessageReader shape(bytes);
  while (shape.next()) {
    if (shape.number() == kUnknownRank && shape.value() != 0) return false;
    if (shape.number() != kDim) continue;
    MessageReader dim(shape.bytes());
    int64_t size = 0;
    while (dim.next()) {
      if (dim.number() == kDimSize) size = static_cast<int64_t>(dim.value());
    }
    dims->push_back(size);
  }
  return !shape.is_damaged();
}

// How the values of a type are written where `tensor_content` does not have them.
struct ValueField {
  uint32_t number;
  enum { kVarint, kFixed32, kFixed64 } form;
  int parts;  // complex numbers have two
};

ValueField value_field(int32_t type) {
  switch (type) {
    case TF_FLOAT: return {5, ValueField::kFixed32, 1};
    case TF_DOUBLE: return {6, ValueField::kFixed64, 1};
    case TF_COMPLEX64: return {9, ValueField::kFixed32, 2};
    case TF_COMPLEX128: return {12, ValueField::kFixed64, 2};
    case TF_INT64: return {10, ValueField::kVarint, 1};
    case TF_BOOL: return {11, ValueField::kVarint, 1};
    case TF_HALF:
    case TF_BFLOAT16: return {13, ValueField::kVarint, 1};
    case TF_UINT32: return {16, ValueField::kVarint, 1};
    case TF_UINT64: return {17, ValueField::kVarint, 1};
    default: return {7, ValueField::kVarint, 1};
  }
}

size_t form_size(const ValueField& field, size_t varint_size) {
  if (field.form == ValueField::kVarint) return varint_size;
  return field.form == ValueField::kFixed32 ? 4 : 8;
}

// Adds the numbers of one occurrence of a field, packed or single, as bytes of the tensor.
bool add_values(const MessageReader& reader, const ValueField& field, size_t size,
                std::string* values) {
  const auto add = [&](uint64_t value) {
    values->append(reinterpret_cast<const char*>(&value), size);  // little-endian
  };
  if (!reader.has_bytes()) {
    add(reader.value());
    return true;
  }
  std::string_view packed = reader.bytes();
  if (field.form != ValueField::kVarint) {
    values->append(packed);
    return packed.size() % size == 0;
  }
  while (!packed.empty()) {
    uint64_t value = 0;
    if (!take_varint(&packed, &value)) return false;
    add(value);
  }
  return true;
}

// The last value stands for all that follow; with none, all are zero.
void fill(const std::string& values, size_t unit, char* data, size_t size) {
  const size_t given = std::min(values.size(), size);
  std::memcpy(data, values.data(), given);
  if (given < unit) return static_cast<void>(std::memset(data + given, 0, size - given));
  for (size_t at = given; at < size; at += unit) std::memcpy(data + at, data + at - unit, unit);
}

// Reads a tensor of numbers into host memory; false and the reason where the bytes are none.
bool read_tensor_proto(std::string_view bytes, Tensor* tensor, std::string* why) {
  std::vector<int64_t> dims;
  std::string_view content;
  std::string values;
  MessageReader type_reader(bytes);
  tensor->type = 0;
  while (type_reader.next()) {
    if (type_reader.number() == kType) tensor->type = static_cast<int32_t>(type_reader.value());
  }
  if (type_reader.is_damaged() || is_object(tensor->type) || element_size(tensor->type) == 0) {
    *why = std::string("no tensor of numbers: ") + type_name(tensor->type);
    return false;
  }
  const ValueField field = value_field(tensor->type);
  const size_t unit = element_size(tensor->type);
  const size_t part = form_size(field, unit);
  for (MessageReader reader(bytes); reader.next();) {
    if (reader.number() == kShape && !read_shape(reader.bytes(), &dims)) {
      *why = "its shape is not known";
      return false;
    }
    if (reader.number() == kContent) content = reader.bytes();
    if (reader.number() == field.number && !add_values(reader, field, part, &values)) {
      *why = "its values are damaged";
      return false;
    }
  }
  if (values.size() % unit != 0) {  // half of a complex number
    *why = "its values are damaged";
    return false;
  }
  tensor->dims = Dims(dims.data(), static_cast<int>(std::min<size_t>(dims.size(), INT_MAX)));
  size_t size = 0;
  if (!size_of(tensor->dims, tensor->type, &size) || (!content.empty() && content.size() != size)) {
    *why = "its content has " + std::to_string(content.size()) + " bytes, and its shape is " +
           tensor->dims.text();
    return false;
  }
  if (!allocate_on_host(tensor, size)) throw std::bad_alloc();
  if (size == 0) return true;
  if (content.empty()) {
    fill(values, unit, static_cast<char*>(tensor->data()), size);
  } else {
    std::memcpy(tensor->data(), content.data(), size);
  }
  return true;
}

std::string shape_proto(const Attribute::Shape& shape) {
  MessageWriter writer;
  for (const int64_t size : shape.dims) {
    MessageWriter dim;
    dim.varint(kDimSize, static_cast<uint64_t>(size));
    writer.bytes(kDim, dim.text());
  }
  if (!shape.is_known) writer.varint(kUnknownRank, 1);
  return writer.text();
}

std::string write_tensor_proto(const Tensor& tensor) {
  const int64_t* const dims = tensor.dims.data();
  MessageWriter writer;
  writer.varint(kType, static_cast<uint64_t>(tensor.type));
  writer.bytes(kShape, shape_proto({true, {dims, dims + tensor.dims.rank()}}));
  if (tensor.type != TF_STRING) {
    writer.bytes(kContent, {static_cast<const char*>(tensor.data()), tensor.size()});
    return writer.text();
  }
  const auto* strings = static_cast<const TF_TString*>(tensor.data());
  for (int64_t index = 0; index < tensor.dims.elements(); ++index) {
    const TF_TString* each = strings + index;
    writer.bytes(kStrings, {TF_StringGetDataPointer(each), TF_StringGetSize(each)});
  }
  return writer.text();
}

// -- nodes and functions --

// Fields of AttrValue; those of its ListValue have the same numbers, but for functions.
constexpr uint32_t kList = 1, kString = 2, kInt = 3, kFloat = 4, kBool = 5, kTypeOf = 6,
                   kShapeOf = 7, kTensor = 8, kFunction = 10, kFunctionInList = 9;

std::string function_proto(const std::string& name) {
  MessageWriter writer;
  writer.bytes(1, name);
  return writer.text();
}

void write_ints(MessageWriter* writer, uint32_t field, const Attribute& attribute) {
  for (const int64_t value : attribute.ints) writer->varint(field, static_cast<uint64_t>(value));
}

void write_elements(MessageWriter* writer, const Attribute& attribute) {
  switch (attribute.kind) {
    case MTF_ATTR_INT: return write_ints(writer, kInt, attribute);
    case MTF_ATTR_BOOL: return write_ints(writer, kBool, attribute);
    case MTF_ATTR_TYPE: return write_ints(writer, kTypeOf, attribute);
    default: break;
  }
  for (const float value : attribute.floats) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    writer->fixed32(kFloat, bits);
  }
  const bool is_function = attribute.kind == MTF_ATTR_FUNC;
  const uint32_t function = attribute.is_list ? kFunctionInList : kFunction;
  for (const std::string& text : attribute.strings) {
    is_function ? writer->bytes(function, function_proto(text)) : writer->bytes(kString, text);
  }
  for (const auto& shape : attribute.shapes) writer->bytes(kShapeOf, shape_proto(shape));
  for (const Tensor& tensor : attribute.tensors) writer->bytes(kTensor, write_tensor_proto(tensor));
}

std::string attr_proto(const Attribute& attribute) {
  MessageWriter elements;
  write_elements(&elements, attribute);
  if (!attribute.is_list) return elements.text();
  MessageWriter writer;
  writer.bytes(kList, elements.text());
  return writer.text();
}

std::string node_proto(const mtf_kernel_node& node) {
  MessageWriter writer;
  writer.bytes(1, node.name).bytes(2, node.op);
  for (const auto& [name, attribute] : node.attributes) {
    MessageWriter entry;
    entry.bytes(1, name).bytes(2, attr_proto(attribute));
    writer.bytes(5, entry.text());
  }
  return writer.text();
}

TF_Buffer* buffer_of(const std::string& text, TF_Status* status) {
  TF_Buffer* buffer = TF_NewBufferFromString(text.data(), text.size());
  buffer == nullptr ? fail(status, TF_RESOURCE_EXHAUSTED, "the host has no memory")
                    : succeed(status);
  return buffer;
}

}  // namespace
}  // namespace mtf::kernels

using namespace mtf::kernels;  // the functions of the C interface

extern "C" {

void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to, TF_Status* status) {
  Tensor* target = tensor_of(to, __func__);
  if (target == nullptr || from == nullptr) {
    return fail(status, TF_INVALID_ARGUMENT, "%s: expected a buffer and a tensor in use", __func__);
  }
  with_status(status, [&] {
    Tensor tensor;
    std::string why;
    const std::string_view bytes(static_cast<const char*>(from->data), from->length);
    if (!read_tensor_proto(bytes, &tensor, &why)) {
      return fail(status, TF_INVALID_ARGUMENT, "Unparseable tensor proto: %s", why.c_str());
    }
    *target = std::move(tensor);
    succeed(status);
  });
}

TF_Buffer* TF_OpKernelConstruction_GetNodeDef(TF_OpKernelConstruction* construction,
                                              TF_Status* status) {
  TF_Buffer* buffer = nullptr;
  with_status(status, [&] {
    const mtf_kernel_node* node = node_of(construction, __func__, status);
    if (node != nullptr) buffer = buffer_of(node_proto(*node), status);
  });
  return buffer;
}

TF_Buffer* TF_OpKernelConstruction_GetAttrFunction(TF_OpKernelConstruction* construction,
                                                   const char* name, TF_Status* status) {
  TF_Buffer* buffer = nullptr;
  with_status(status, [&] {
    succeed(status);
    const Attribute* attr = find_attr(construction, name, MTF_ATTR_FUNC, false, __func__, status);
    if (attr != nullptr) buffer = buffer_of(function_proto(attr->strings[0]), status);
  });
  return buffer;
}

}  // extern "C"
