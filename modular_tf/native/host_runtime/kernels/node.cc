#include "node.h"

#include <cstring>
#include <new>
#include <utility>

namespace mtf::kernels {
namespace {

std::vector<Attribute::Shape> shapes_of(const int64_t* sizes, const int64_t* ranks, int64_t count) {
  std::vector<Attribute::Shape> shapes;
  for (int64_t index = 0; index < count; ++index) {
    const bool is_known = ranks[index] >= 0;
    const int64_t rank = is_known ? ranks[index] : 0;
    shapes.push_back({is_known, std::vector<int64_t>(sizes, sizes + rank)});
    sizes += rank;
  }
  return shapes;
}

std::vector<std::string> strings_of(const char* bytes, const int64_t* lengths, int64_t count) {
  std::vector<std::string> strings;
  for (int64_t index = 0; index < count; ++index) {
    strings.emplace_back(bytes, static_cast<size_t>(lengths[index]));
    bytes += lengths[index];
  }
  return strings;
}

void add_argument(std::vector<Argument>* arguments, std::vector<Slot>* slots, const char* name,
                  const int32_t* types, int32_t count, int32_t is_on_host) {
  const int start = static_cast<int>(slots->size());
  for (int32_t index = 0; index < count; ++index) {
    const bool is_object_or_host = is_on_host != 0 || is_object(without_reference(types[index]));
    slots->push_back({types[index], is_object_or_host});
  }
  arguments->push_back({name, start, start + count});
}

}  // namespace

int64_t Attribute::count() const {
  return static_cast<int64_t>(ints.size() + floats.size() + strings.size() + shapes.size() +
                              tensors.size());
}

mtf_kernel_node* new_node(const char* name, const char* op) {
  return new mtf_kernel_node{name, op, {}, {}, {}, {}, {}};
}

void free_node(mtf_kernel_node* node) { delete node; }

void set_attr(mtf_kernel_node* node, const char* name, int32_t kind, int32_t is_list,
              const void* data, const int64_t* sizes, int64_t count) {
  Attribute value;
  value.kind = kind;
  value.is_list = is_list != 0;
  const auto* numbers = static_cast<const int64_t*>(data);
  switch (kind) {
    case MTF_ATTR_FLOAT:
      value.floats.assign(static_cast<const float*>(data), static_cast<const float*>(data) + count);
      break;
    case MTF_ATTR_STRING:
    case MTF_ATTR_FUNC:
      value.strings = strings_of(static_cast<const char*>(data), sizes, count);
      break;
    case MTF_ATTR_SHAPE: value.shapes = shapes_of(numbers, sizes, count); break;
    default: value.ints.assign(numbers, numbers + count);
  }
  node->attributes.insert_or_assign(name, std::move(value));
}

void add_tensor_attr(mtf_kernel_node* node, const char* name, int32_t is_list, int32_t type,
                     const int64_t* dims, int32_t rank, const void* data, uint64_t size) {
  Tensor tensor{{}, type, Dims(dims, rank)};
  if (!allocate_on_host(&tensor, size)) throw std::bad_alloc();
  if (size != 0) std::memcpy(tensor.data(), data, size);
  Attribute& value = node->attributes[name];
  value.kind = MTF_ATTR_TENSOR;
  value.is_list = is_list != 0;
  value.tensors.push_back(std::move(tensor));
}

void add_input(mtf_kernel_node* node, const char* name, const int32_t* types, int32_t count,
               int32_t is_on_host) {
  add_argument(&node->input_arguments, &node->inputs, name, types, count, is_on_host);
}

void add_output(mtf_kernel_node* node, const char* name, const int32_t* types, int32_t count,
                int32_t is_on_host) {
  add_argument(&node->output_arguments, &node->outputs, name, types, count, is_on_host);
}

}  // namespace mtf::kernels
