#include "data_types.h"

#include <cstdio>

#include "modular_tf/tensor.h"

namespace mtf::kernels {
namespace {

constexpr DataTypeFacts kTypes[] = {
    {TF_FLOAT, "float", 4},
    {TF_DOUBLE, "double", 8},
    {TF_INT32, "int32", 4},
    {TF_UINT8, "uint8", 1},
    {TF_INT16, "int16", 2},
    {TF_INT8, "int8", 1},
    {TF_STRING, "string", 0},
    {TF_COMPLEX64, "complex64", 8},
    {TF_INT64, "int64", 8},
    {TF_BOOL, "bool", 1},
    {TF_QINT8, "qint8", 1},
    {TF_QUINT8, "quint8", 1},
    {TF_QINT32, "qint32", 4},
    {TF_BFLOAT16, "bfloat16", 2},
    {TF_QINT16, "qint16", 2},
    {TF_QUINT16, "quint16", 2},
    {TF_UINT16, "uint16", 2},
    {TF_COMPLEX128, "complex128", 16},
    {TF_HALF, "half", 2},
    {TF_RESOURCE, "resource", 0},
    {TF_VARIANT, "variant", 0},
    {TF_UINT32, "uint32", 4},
    {TF_UINT64, "uint64", 8},
    {TF_FLOAT8_E5M2, "float8_e5m2", 1},
    {TF_FLOAT8_E4M3FN, "float8_e4m3fn", 1},
    {TF_FLOAT8_E4M3FNUZ, "float8_e4m3fnuz", 1},
    {TF_FLOAT8_E4M3B11FNUZ, "float8_e4m3b11fnuz", 1},
    {TF_FLOAT8_E5M2FNUZ, "float8_e5m2fnuz", 1},
    {TF_INT4, "int4", 1},
    {TF_UINT4, "uint4", 1},
    {TF_INT2, "int2", 1},
    {TF_UINT2, "uint2", 1},
    {TF_FLOAT4_E2M1FN, "float4_e2m1fn", 1},
};

}  // namespace

const DataTypeFacts* find_data_type(int32_t number) noexcept {
  constexpr int32_t kCount = sizeof kTypes / sizeof kTypes[0];
  return number >= 1 && number <= kCount ? &kTypes[number - 1] : nullptr;
}

size_t element_size(int32_t type) noexcept {
  constexpr size_t kVariantSize = 64, kResourceSize = 200;  // as TensorFlow's, opaque to plugins
  switch (type) {
    case TF_STRING: return sizeof(TF_TString);
    case TF_RESOURCE: return kResourceSize;
    case TF_VARIANT: return kVariantSize;
    default: {
      const DataTypeFacts* facts = find_data_type(type);
      return facts == nullptr ? 0 : facts->size;
    }
  }
}

const char* type_name(int32_t type) noexcept {
  const DataTypeFacts* facts = find_data_type(without_reference(type));
  if (facts != nullptr && !is_reference(type)) return facts->name;
  thread_local char text[40];
  if (facts != nullptr) {
    std::snprintf(text, sizeof text, "%s_ref", facts->name);
  } else {
    std::snprintf(text, sizeof text, "type %d", type);
  }
  return text;
}

}  // namespace mtf::kernels

size_t TF_DataTypeSize(TF_DataType type) {
  const auto* facts = mtf::kernels::find_data_type(static_cast<int32_t>(type));
  return facts == nullptr ? 0 : facts->size;
}
