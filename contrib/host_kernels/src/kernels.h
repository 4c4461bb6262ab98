// The kernels by operation. Each function registers one for each of its element types, and throws
// kernel::Failed.
#pragma once

namespace host_kernels {

void register_add(const char* device_type);         // Add, AddV2: with broadcasting
void register_cast(const char* device_type);        // Cast
void register_matmul(const char* device_type);      // MatMul
void register_reductions(const char* device_type);  // Max, Sum
void register_relu(const char* device_type);        // Relu

}  // namespace host_kernels
