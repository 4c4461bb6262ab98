// Tensors in protobuf's form: TensorProto.
#pragma once

#include <string>
#include <string_view>

#include "tensor.h"

namespace mtf::kernels {

// Reads a tensor of numbers into host memory; false and the reason where the bytes are none.
bool read_tensor_proto(std::string_view bytes, Tensor* tensor, std::string* why);
std::string write_tensor_proto(const Tensor& tensor);

}  // namespace mtf::kernels
