// Nodes, the kernels that plugins have registered, and their objects.
#pragma once

#include <map>
#include <string>
#include <utility>
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

// The kernels that plugins have registered in this process, in order.

struct mtf_kernel_definition {
  std::string op, device_type, label, name;
  std::vector<std::pair<std::string, int32_t>> constraints;
  std::vector<std::string> host_args;
  int32_t priority = 0;
  void* (*create)(TF_OpKernelConstruction*) = nullptr;
  void (*compute)(void*, TF_OpKernelContext*) = nullptr;
  void (*compute_async)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*) = nullptr;
  void (*delete_kernel)(void*) = nullptr;
};

namespace mtf::kernels {

// Keeps a definition for the life of the process.
void register_kernel(mtf_kernel_definition* definition);
int64_t count_kernels();
const mtf_kernel_definition* kernel_at(int64_t index, mtf_kernel_facts* facts);
// Calls TF_InitKernel; what it throws leaves this.
void init_kernels(void (*init)(void), mtf_kernel_failure* misuse);
const char* constraint_at(const mtf_kernel_definition* kernel, int32_t index, int32_t* type);
const char* host_arg_at(const mtf_kernel_definition* kernel, int32_t index);

// Kernel objects: made by a plugin's `create`, ended by its `delete`.

// The node of a construction; NULL and a status where that is over.
const mtf_kernel_node* node_of(TF_OpKernelConstruction* construction, const char* function,
                               TF_Status* status);
// The attribute of a name if it is of that kind; otherwise NULL, and the status says why.
const Attribute* find_attr(TF_OpKernelConstruction* construction, const char* name, int32_t kind,
                           bool is_list, const char* function, TF_Status* status);

// Makes a kernel object; what `create` throws leaves this. With a failure there may be an object too,
// which is the caller's to delete.
void create(const mtf_kernel_definition* kernel, const mtf_kernel_node* node, void** object,
            mtf_kernel_failure* failure);
void delete_object(const mtf_kernel_definition* kernel, void* object);

}  // namespace mtf::kernels
