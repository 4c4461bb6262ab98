// Element types: their sizes and names.
#ifndef MODULAR_TF_HOST_RUNTIME_KERNELS_DATA_TYPE_H_
#define MODULAR_TF_HOST_RUNTIME_KERNELS_DATA_TYPE_H_

#include <cstddef>
#include <cstdint>

#include "modular_tf/tensor.h"

namespace mtf::kernels {

constexpr int32_t kFirstReference = 100;
constexpr size_t kStringSize = sizeof(TF_TString);
constexpr size_t kVariantSize = 64, kResourceSize = 200;  // opaque to plugins

inline bool is_reference(int32_t type) { return type > kFirstReference; }
inline int32_t without_reference(int32_t type) { return is_reference(type) ? type - 100 : type; }
// Whether elements are objects of the host's, which have to be made and ended.
inline bool is_object(int32_t type) {
  return type == TF_STRING || type == TF_RESOURCE || type == TF_VARIANT;
}
// Bytes that an element takes in memory, objects included; 0 for no type.
size_t element_size(int32_t type);
// As "float"; "type 77" for an unknown number lies in a buffer of the thread's.
const char* type_name(int32_t type);

}  // namespace mtf::kernels
#endif
