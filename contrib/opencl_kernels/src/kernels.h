// The kernels. Each function registers one for each of its element types, and throws kernel::Failed.
#pragma once

namespace opencl_kernels {

void register_elementwise(const char* device_type);  // Add, AddV2, Cast, Relu
void register_matmul(const char* device_type);       // MatMul

}  // namespace opencl_kernels
