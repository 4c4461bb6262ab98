// The kernels that plugins have registered in this process, in order.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "host_table.h"

struct mtf_kernel_definition {
  std::string op, device_type, label, name;
  std::vector<std::pair<std::string, int32_t>> constraints;
  std::vector<std::string> host_args;
  int32_t priority = 0;
  void* (*create)(TF_OpKernelConstruction*) = nullptr;
  void (*compute)(void*, TF_OpKernelContext*) = nullptr;
  void (*compute_async)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*) = nullptr;
  void (*delete_kernel)(void*) = nullptr;
};

namespace mtf::kernels {

// Keeps a definition for the life of the process.
void register_kernel(mtf_kernel_definition* definition);
int64_t count_kernels();
const mtf_kernel_definition* kernel_at(int64_t index, mtf_kernel_facts* facts);
// Calls TF_InitKernel; what it throws leaves this.
void init_kernels(void (*init)(void), mtf_kernel_failure* misuse);
const char* constraint_at(const mtf_kernel_definition* kernel, int32_t index, int32_t* type);
const char* host_arg_at(const mtf_kernel_definition* kernel, int32_t index);

}  // namespace mtf::kernels
