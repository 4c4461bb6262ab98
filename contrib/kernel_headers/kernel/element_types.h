// The numbers of element types, and lists of types.
#pragma once

#include <cstdint>

#include "modular_tf/tensor.h"

namespace kernel {

template <class Element>
constexpr TF_DataType kNumberOf = TF_DataType{};  // 0 is no type
template <>
inline constexpr TF_DataType kNumberOf<bool> = TF_BOOL;
template <>
inline constexpr TF_DataType kNumberOf<float> = TF_FLOAT;
template <>
inline constexpr TF_DataType kNumberOf<double> = TF_DOUBLE;
template <>
inline constexpr TF_DataType kNumberOf<int8_t> = TF_INT8;
template <>
inline constexpr TF_DataType kNumberOf<int16_t> = TF_INT16;
template <>
inline constexpr TF_DataType kNumberOf<int32_t> = TF_INT32;
template <>
inline constexpr TF_DataType kNumberOf<int64_t> = TF_INT64;
template <>
inline constexpr TF_DataType kNumberOf<uint8_t> = TF_UINT8;
template <>
inline constexpr TF_DataType kNumberOf<uint16_t> = TF_UINT16;
template <>
inline constexpr TF_DataType kNumberOf<uint32_t> = TF_UINT32;
template <>
inline constexpr TF_DataType kNumberOf<uint64_t> = TF_UINT64;

template <class Element>
struct Type {
  using type = Element;
};

template <class... Elements>
struct Types {};

// Calls `function(Type<Element>())` for each.
template <class... Elements, class Function>
void for_each_type(Types<Elements...>, Function&& function) {
  (function(Type<Elements>()), ...);
}

template <class... Left, class... Right>
Types<Left..., Right...> joined(Types<Left...>, Types<Right...>);

// What the operation Add takes; AddV2, Relu, Sum and Max take all numbers.
using OldNumbers = Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t>;
using Numbers = decltype(joined(OldNumbers(), Types<uint16_t, uint32_t, uint64_t>()));
using NumbersAndBool = decltype(joined(Numbers(), Types<bool>()));

}  // namespace kernel
