// A node: an operation with its attributes, and what its inputs and outputs are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "host_table.h"
#include "tensor.h"

namespace mtf::kernels {

// The value of an attribute; a list has any number of elements, anything else one.
struct Attribute {
  int32_t kind = MTF_ATTR_INT;
  bool is_list = false;
  std::vector<int64_t> ints;  // also types and bools
  std::vector<float> floats;
  std::vector<std::string> strings;  // also functions
  struct Shape {
    bool is_known;
    std::vector<int64_t> dims;
  };
  std::vector<Shape> shapes;
  std::vector<Tensor> tensors;

  int64_t count() const;
};

// An input or output by its name in the operation: tensors `start` to before `stop`.
struct Argument {
  std::string name;
  int start, stop;
};

struct Slot {
  int32_t type;
  bool is_on_host;
};

}  // namespace mtf::kernels

struct mtf_kernel_node {
  std::string name, op;
  std::map<std::string, mtf::kernels::Attribute, std::less<>> attributes;
  std::vector<mtf::kernels::Argument> input_arguments, output_arguments;
  std::vector<mtf::kernels::Slot> inputs, outputs;

  const mtf::kernels::Attribute* find(const char* attribute) const {
    const auto found = attributes.find(std::string_view(attribute == nullptr ? "" : attribute));
    return found == attributes.end() ? nullptr : &found->second;
  }
};

namespace mtf::kernels {

mtf_kernel_node* new_node(const char* name, const char* op);
void free_node(mtf_kernel_node* node);
void set_attr(mtf_kernel_node* node, const char* name, int32_t kind, int32_t is_list,
              const void* data, const int64_t* sizes, int64_t count);
void add_tensor_attr(mtf_kernel_node* node, const char* name, int32_t is_list, int32_t type,
                     const int64_t* dims, int32_t rank, const void* data, uint64_t size);
void add_input(mtf_kernel_node* node, const char* name, const int32_t* types, int32_t count,
               int32_t is_on_host);
void add_output(mtf_kernel_node* node, const char* name, const int32_t* types, int32_t count,
                int32_t is_on_host);

}  // namespace mtf::kernels
