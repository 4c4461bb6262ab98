#include "node.h"

#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "entry.h"

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

// What `create` of a kernel sees: the attributes of its node.

namespace {

struct Construction {
  const mtf_kernel_node* node;
  mtf_kernel_failure* failure;
};

const char* kind_name(int32_t kind) {
  constexpr const char* kNames[] = {"string", "int",    "float",       "bool", "type",
                                    "shape",  "tensor", "placeholder", "func"};
  return kind >= 0 && kind <= MTF_ATTR_FUNC ? kNames[kind] : "unknown";
}

Construction* construction_of(const TF_OpKernelConstruction* handle, const char* function) {
  return checked<Construction>(handle, HandleKind::kConstruction, function);
}

// Stands for the object of a `create` that has not returned; NULL is one that plugins return.
void* not_made() {
  static char nothing;
  return &nothing;
}

const char* shown(const char* name) { return name == nullptr ? "(NULL)" : name; }

// TensorFlow asks for the size of a list first, and says so, but not of strings and tensors.
TF_Code code_of_missing(int32_t kind, bool is_list) {
  const bool asks_for_size = is_list && kind != MTF_ATTR_STRING && kind != MTF_ATTR_TENSOR;
  return asks_for_size ? TF_INVALID_ARGUMENT : TF_NOT_FOUND;
}

// A list without elements passes for a list of every kind: TensorFlow keeps no kind with it.
bool is_of_kind(const Attribute& attribute, int32_t kind, bool is_list) {
  if (attribute.is_list != is_list) return false;
  return attribute.kind == kind || (is_list && attribute.count() == 0);
}

template <class Value, class Source>
void copy_list(const std::vector<Source>& source, Value* values, int max_values) {
  const size_t most = max_values < 0 ? 0 : static_cast<size_t>(max_values);
  for (size_t index = 0; index < source.size() && index < most; ++index) {
    values[index] = static_cast<Value>(source[index]);
  }
}

struct Sizes {
  int32_t list, total;
};

Sizes sizes_of(const Attribute& attribute) {
  if (attribute.is_list && attribute.count() == 0) return {0, -1};  // of no kind
  int64_t total = -1;
  if (attribute.kind == MTF_ATTR_STRING) {
    total = 0;
    for (const std::string& text : attribute.strings) total += static_cast<int64_t>(text.size());
  } else if (attribute.kind == MTF_ATTR_SHAPE) {
    total = 0;
    for (const auto& shape : attribute.shapes) total += static_cast<int64_t>(shape.dims.size());
    const bool is_unknown = !attribute.is_list && !attribute.shapes.empty() &&
                            !attribute.shapes.front().is_known;
    if (is_unknown) total = -1;
  }
  const int64_t count = attribute.kind == MTF_ATTR_FUNC ? 0 : attribute.count();  // as TensorFlow does
  const int64_t list = attribute.is_list ? count : -1;
  return {static_cast<int32_t>(list), static_cast<int32_t>(total)};
}

TF_Tensor* handle_of(const Tensor& tensor) {
  return entry<TF_Tensor*>(nullptr, [&] { return new_tensor_handle(tensor); });
}

void pack_strings(const Attribute& attribute, char** values, size_t* lengths, int max_values,
                  char* storage, size_t room, TF_Status* status) {
  const auto most = static_cast<size_t>(max_values < 0 ? 0 : max_values);
  for (size_t index = 0; index < attribute.strings.size() && index < most; ++index) {
    const std::string& text = attribute.strings[index];
    values[index] = storage;
    lengths[index] = text.size();
    if (text.size() > room) {
      return fail(status, TF_INVALID_ARGUMENT,
                  "Not enough storage to hold the requested list of strings");
    }
    std::memcpy(storage, text.data(), text.size());
    storage += text.size();
    room -= text.size();
  }
}

}  // namespace

const mtf_kernel_node* node_of(TF_OpKernelConstruction* handle, const char* function,
                               TF_Status* status) {
  const Construction* its = construction_of(handle, function);
  if (its == nullptr) fail(status, TF_FAILED_PRECONDITION, "%s: the construction is over", function);
  return its == nullptr ? nullptr : its->node;
}

const Attribute* find_attr(TF_OpKernelConstruction* handle, const char* name, int32_t kind,
                           bool is_list, const char* function, TF_Status* status) {
  const Construction* its = construction_of(handle, function);
  if (its == nullptr) {
    fail(status, TF_FAILED_PRECONDITION, "%s: the construction is over", function);
    return nullptr;
  }
  const Attribute* found = its->node->find(name);
  if (found == nullptr) {
    fail(status, code_of_missing(kind, is_list),
         "No attr named '%s' in NodeDef of operation '%s' (%s)", shown(name),
         its->node->name.c_str(), its->node->op.c_str());
    return nullptr;
  }
  if (!is_of_kind(*found, kind, is_list)) {
    fail(status, TF_INVALID_ARGUMENT, "attr '%s' of operation '%s': expected %s%s, found %s%s",
         shown(name), its->node->name.c_str(), is_list ? "list of " : "", kind_name(kind),
         found->is_list ? "list of " : "", kind_name(found->kind));
    return nullptr;
  }
  return found;
}

void create(const mtf_kernel_definition* kernel, const mtf_kernel_node* node, void** object,
            mtf_kernel_failure* failure) {
  *object = nullptr;
  if (kernel->create == nullptr) return;
  *object = not_made();
  Construction construction{node, failure};
  void* handle = new_handle(HandleKind::kConstruction, &construction);
  if (handle == nullptr) return set_failure(failure, TF_RESOURCE_EXHAUSTED, 0, "no memory");
  struct Ending {
    void* handle;
    ~Ending() { end_handle(handle, HandleKind::kConstruction); }
  } const ending{handle};
  const MisuseRecord misuse;
  *object = kernel->create(static_cast<TF_OpKernelConstruction*>(handle));
  set_failure_of_misuse(failure, misuse);
}

void delete_object(const mtf_kernel_definition* kernel, void* object) {
  const bool has_object = object != not_made() && kernel->delete_kernel != nullptr;
  if (has_object) kernel->delete_kernel(object);
}

}  // namespace mtf::kernels

using namespace mtf::kernels;  // the functions of the C interface

// A getter of one value: finds the attribute, and copies what `from` says of it.
#define MTF_GET(kind, is_list, from)                                                        \
  succeed(status);                                                                          \
  const Attribute* attr = find_attr(construction, name, kind, is_list, __func__, status);   \
  if (attr == nullptr) return;                                                              \
  from

extern "C" {

void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction* construction, const char* name,
                                         int32_t* list_size, int32_t* total_size,
                                         TF_Status* status) {
  *list_size = *total_size = -1;
  const Construction* its = construction_of(construction, __func__);
  if (its == nullptr) {
    return fail(status, TF_FAILED_PRECONDITION, "%s: the construction is over", __func__);
  }
  const Attribute* attr = its->node->find(name);
  if (attr == nullptr) {
    return fail(status, TF_INVALID_ARGUMENT, "Operation '%s' has no attr named '%s'.",
                its->node->name.c_str(), shown(name));
  }
  if (TF_GetCode(status) != TF_OK) return;  // TensorFlow does not reset it either
  const Sizes sizes = sizes_of(*attr);
  *list_size = sizes.list;
  *total_size = sizes.total;
}

void TF_OpKernelConstruction_GetAttrType(TF_OpKernelConstruction* construction, const char* name,
                                         TF_DataType* value, TF_Status* status) {
  MTF_GET(MTF_ATTR_TYPE, false, *value = static_cast<TF_DataType>(attr->ints[0]);)
}

void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction* construction, const char* name,
                                          int32_t* value, TF_Status* status) {
  MTF_GET(MTF_ATTR_INT, false, const int64_t number = attr->ints[0];)
  if (number < std::numeric_limits<int32_t>::min() || number > std::numeric_limits<int32_t>::max()) {
    return fail(status, TF_INVALID_ARGUMENT, "Attr %s has value %lld out of range for an int32",
                shown(name), static_cast<long long>(number));
  }
  *value = static_cast<int32_t>(number);
}

void TF_OpKernelConstruction_GetAttrInt64(TF_OpKernelConstruction* construction, const char* name,
                                          int64_t* value, TF_Status* status) {
  MTF_GET(MTF_ATTR_INT, false, *value = attr->ints[0];)
}

void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction* construction, const char* name,
                                          float* value, TF_Status* status) {
  MTF_GET(MTF_ATTR_FLOAT, false, *value = attr->floats[0];)
}

void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction* construction, const char* name,
                                         unsigned char* value, TF_Status* status) {
  MTF_GET(MTF_ATTR_BOOL, false, *value = attr->ints[0] != 0;)
}

void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction* construction, const char* name,
                                           char* value, size_t max_length, TF_Status* status) {
  MTF_GET(MTF_ATTR_STRING, false, const std::string& text = attr->strings[0];)
  if (max_length > 0) std::memcpy(value, text.data(), std::min(max_length, text.size()));
}

void TF_OpKernelConstruction_GetAttrTypeList(TF_OpKernelConstruction* construction,
                                             const char* name, TF_DataType* values, int max_values,
                                             TF_Status* status) {
  MTF_GET(MTF_ATTR_TYPE, true, copy_list(attr->ints, values, max_values);)
}

void TF_OpKernelConstruction_GetAttrInt32List(TF_OpKernelConstruction* construction,
                                              const char* name, int32_t* values, int max_values,
                                              TF_Status* status) {
  MTF_GET(MTF_ATTR_INT, true, copy_list(attr->ints, values, max_values);)
}

void TF_OpKernelConstruction_GetAttrInt64List(TF_OpKernelConstruction* construction,
                                              const char* name, int64_t* values, int max_values,
                                              TF_Status* status) {
  MTF_GET(MTF_ATTR_INT, true, copy_list(attr->ints, values, max_values);)
}

void TF_OpKernelConstruction_GetAttrFloatList(TF_OpKernelConstruction* construction,
                                              const char* name, float* values, int max_values,
                                              TF_Status* status) {
  MTF_GET(MTF_ATTR_FLOAT, true, copy_list(attr->floats, values, max_values);)
}

void TF_OpKernelConstruction_GetAttrBoolList(TF_OpKernelConstruction* construction,
                                             const char* name, unsigned char* values,
                                             int max_values, TF_Status* status) {
  MTF_GET(MTF_ATTR_BOOL, true, copy_list(attr->ints, values, max_values);)
}

void TF_OpKernelConstruction_GetAttrStringList(TF_OpKernelConstruction* construction,
                                               const char* name, char** values, size_t* lengths,
                                               int max_values, void* storage, size_t storage_size,
                                               TF_Status* status) {
  MTF_GET(MTF_ATTR_STRING, true,
          pack_strings(*attr, values, lengths, max_values, static_cast<char*>(storage),
                       storage_size, status);)
}

void TF_OpKernelConstruction_GetAttrTensor(TF_OpKernelConstruction* construction, const char* name,
                                           TF_Tensor** value, TF_Status* status) {
  *value = nullptr;
  MTF_GET(MTF_ATTR_TENSOR, false, *value = handle_of(attr->tensors[0]);)
  if (*value == nullptr) fail(status, TF_RESOURCE_EXHAUSTED, "the host has no memory");
}

void TF_OpKernelConstruction_GetAttrTensorList(TF_OpKernelConstruction* construction,
                                               const char* name, TF_Tensor** values, int max_values,
                                               TF_Status* status) {
  const auto most = static_cast<size_t>(max_values < 0 ? 0 : max_values);
  std::fill_n(values, most, nullptr);
  MTF_GET(MTF_ATTR_TENSOR, true, size_t index = 0;)
  for (; index < attr->tensors.size() && index < most; ++index) {
    values[index] = handle_of(attr->tensors[index]);
    if (values[index] == nullptr) return fail(status, TF_RESOURCE_EXHAUSTED, "the host has no memory");
  }
}

void TF_OpKernelConstruction_GetAttrTensorShape(TF_OpKernelConstruction* construction,
                                                const char* name, int64_t* dims, size_t num_dims,
                                                TF_Status* status) {
  MTF_GET(MTF_ATTR_SHAPE, false, const Attribute::Shape& shape = attr->shapes[0];)
  if (!shape.is_known || shape.dims.size() != num_dims) {
    const int rank = shape.is_known ? static_cast<int>(shape.dims.size()) : -1;
    return fail(status, TF_INVALID_ARGUMENT,
                "Expected rank is %zu but actual rank is %d for attr %s", num_dims, rank,
                shown(name));
  }
  std::copy(shape.dims.begin(), shape.dims.end(), dims);
}

bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction* construction, const char* name,
                                     TF_Status*) {
  const Construction* its = construction_of(construction, __func__);
  return its != nullptr && its->node->find(name) != nullptr;
}

TF_StringView TF_OpKernelConstruction_GetName(TF_OpKernelConstruction* construction) {
  const Construction* its = construction_of(construction, __func__);
  if (its == nullptr) return {"", 0};
  return {its->node->name.data(), its->node->name.size()};
}

void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* construction, TF_Status* status) {
  const Construction* its = construction_of(construction, __func__);
  if (its != nullptr) set_failure_of_plugin(its->failure, status, kRuleConstructionFailed);
}

}  // extern "C"
