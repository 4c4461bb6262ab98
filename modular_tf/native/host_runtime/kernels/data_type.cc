#include "data_type.h"

#include <cstdio>

namespace mtf::kernels {
namespace {

struct TypeFacts {
  const char* name;
  size_t size;  // of plain elements
};

constexpr TypeFacts kTypes[] = {
    {nullptr, 0},        {"float", 4},         {"double", 8},        {"int32", 4},
    {"uint8", 1},        {"int16", 2},         {"int8", 1},          {"string", 0},
    {"complex64", 8},    {"int64", 8},         {"bool", 1},          {"qint8", 1},
    {"quint8", 1},       {"qint32", 4},        {"bfloat16", 2},      {"qint16", 2},
    {"quint16", 2},      {"uint16", 2},        {"complex128", 16},   {"half", 2},
    {"resource", 0},     {"variant", 0},       {"uint32", 4},        {"uint64", 8},
    {"float8_e5m2", 1},  {"float8_e4m3fn", 1}, {"float8_e4m3fnuz", 1}, {"float8_e4m3b11fnuz", 1},
    {"float8_e5m2fnuz", 1}, {"int4", 1},       {"uint4", 1},         {"int2", 1},
    {"uint2", 1},        {"float4_e2m1fn", 1},
};
constexpr int32_t kNumTypes = sizeof kTypes / sizeof kTypes[0];

const TypeFacts* facts_of(int32_t type) {
  return type > 0 && type < kNumTypes ? &kTypes[type] : nullptr;
}

}  // namespace

size_t element_size(int32_t type) {
  switch (type) {
    case TF_STRING: return kStringSize;
    case TF_RESOURCE: return kResourceSize;
    case TF_VARIANT: return kVariantSize;
    default: {
      const TypeFacts* facts = facts_of(type);
      return facts == nullptr ? 0 : facts->size;
    }
  }
}

const char* type_name(int32_t type) {
  const TypeFacts* facts = facts_of(without_reference(type));
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

extern "C" size_t TF_DataTypeSize(TF_DataType type) {
  const auto number = static_cast<int32_t>(type);
  return mtf::kernels::is_object(number) ? 0 : mtf::kernels::element_size(number);
}
