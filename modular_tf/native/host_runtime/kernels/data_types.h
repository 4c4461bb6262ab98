// Numbers, names and sizes of element types.
#pragma once

#include <cstddef>
#include <cstdint>

#include "modular_tf/tensor.h"

namespace mtf::kernels {

struct DataTypeFacts {
  int32_t number;  // TF_DataType
  const char* name;
  size_t size;  // bytes of an element; 0: elements have no fixed size
};

// NULL for numbers that no type has, and for reference types.
const DataTypeFacts* find_data_type(int32_t number) noexcept;

constexpr int32_t kFirstReference = 100;

inline bool is_reference(int32_t type) { return type > kFirstReference; }
inline int32_t without_reference(int32_t type) {
  return is_reference(type) ? type - kFirstReference : type;
}
// Whether elements are objects of the host's, which have to be made and ended.
inline bool is_object(int32_t type) {
  return type == TF_STRING || type == TF_RESOURCE || type == TF_VARIANT;
}
// Bytes that an element takes in memory, objects included; 0 for no type.
size_t element_size(int32_t type) noexcept;
// As "float"; "type 77" for an unknown number lies in a buffer of the thread's.
const char* type_name(int32_t type) noexcept;

}  // namespace mtf::kernels
