// What a defect of the kernel fixture can change, and how one is written.
//
// The fixture has two kernels for floats, of Relu and of an operation of its own, DefectScale. They
// are as they should be, except for the one defect that the environment variable
// MODULAR_TF_FIXTURE_DEFECT names by the check that must find it. A file defects_GROUP.cc lists those
// of the checks of one group; a defect that replaces a function calls the one in `original`.
#pragma once

#include "chosen_defect.h"
#include "modular_tf/kernels.h"
#include "modular_tf/ops.h"

namespace defective {

struct Kernel {
  bool is_scale;
  float factor;
  int64_t elements;  // of the first call
};

struct Tables {
  void (*register_all)();
  void* (*create)(TF_OpKernelConstruction* construction);
  void (*compute)(void* kernel, TF_OpKernelContext* context);
  void (*destroy)(void* kernel);
};

// The functions of a fixture without a defect.
extern const Tables original;

class Status {
 public:
  Status() : status_(TF_NewStatus()) {}
  ~Status() { TF_DeleteStatus(status_); }
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;
  TF_Status* get() const { return status_; }
  bool ok() const { return TF_GetCode(status_) == TF_OK; }

 private:
  TF_Status* status_;
};

// Registers a kernel with the fixture's functions, constrained to a type unless `attr` is NULL.
void register_kernel(const char* op, const char* attr, int type, const char* host_arg = nullptr);

// Defines an operation of one input and one output.
void define_op(const char* name, const char* attr_spec);

}  // namespace defective
