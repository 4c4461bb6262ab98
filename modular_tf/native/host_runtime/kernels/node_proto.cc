// Nodes and functions in protobuf's form: NodeDef and NameAttrList.
#include <cstring>

#include "construction.h"
#include "entry.h"
#include "protobuf.h"
#include "tensor_proto.h"

namespace mtf::kernels {
namespace {

// Fields of AttrValue; those of its ListValue have the same numbers, but for functions.
constexpr uint32_t kList = 1, kString = 2, kInt = 3, kFloat = 4, kBool = 5, kTypeOf = 6, kShape = 7,
                   kTensor = 8, kFunction = 10, kFunctionInList = 9;

std::string shape_proto(const Attribute::Shape& shape) {
  MessageWriter writer;
  for (const int64_t size : shape.dims) {
    MessageWriter dim;
    dim.varint(1, static_cast<uint64_t>(size));
    writer.bytes(2, dim.text());
  }
  if (!shape.is_known) writer.varint(3, 1);
  return writer.text();
}

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
  for (const auto& shape : attribute.shapes) writer->bytes(kShape, shape_proto(shape));
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
