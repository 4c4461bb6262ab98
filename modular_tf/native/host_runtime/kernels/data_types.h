// Numbers, names and sizes of element types.
#ifndef MODULAR_TF_HOST_RUNTIME_KERNELS_DATA_TYPES_H_
#define MODULAR_TF_HOST_RUNTIME_KERNELS_DATA_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mtf::kernels {

struct DataTypeFacts {
  int32_t number;  // TF_DataType
  const char* name;
  size_t size;  // bytes of an element; 0: elements have no fixed size
};

// NULL for numbers that no type has, and for reference types.
const DataTypeFacts* find_data_type(int32_t number) noexcept;
// By its lower-case name, such as "float"; "float32", "float64" and "float16" are understood too.
const DataTypeFacts* find_data_type(std::string_view name) noexcept;

}  // namespace mtf::kernels
#endif
