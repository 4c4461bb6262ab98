// Tensors in protobuf's form: TensorProto.
#include "tensor_proto.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <vector>

#include "entry.h"
#include "protobuf.h"

namespace mtf::kernels {
namespace {

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

}  // namespace

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

std::string write_tensor_proto(const Tensor& tensor) {
  MessageWriter shape;
  for (int index = 0; index < tensor.dims.rank(); ++index) {
    MessageWriter dim;
    dim.varint(kDimSize, static_cast<uint64_t>(tensor.dims[index]));
    shape.bytes(kDim, dim.text());
  }
  MessageWriter writer;
  writer.varint(kType, static_cast<uint64_t>(tensor.type)).bytes(kShape, shape.text());
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

}  // namespace mtf::kernels

extern "C" void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to, TF_Status* status) {
  using namespace mtf::kernels;
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
