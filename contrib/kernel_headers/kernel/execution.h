// One execution of a kernel: its inputs, its outputs and the stream that its work goes to.
#pragma once

#include "kernel/status.h"
#include "kernel/tensor.h"
#include "modular_tf/kernels.h"

namespace kernel {

// Valid within `compute`. All functions throw Failed.
class Execution {
 public:
  explicit Execution(TF_OpKernelContext* raw) : raw_(raw) {}

  Tensor input(int index) const {
    TF_Tensor* tensor = nullptr;
    Status status;
    TF_GetInput(raw_, index, &tensor, status.get());
    return owned(tensor, status);
  }

  // New memory for an output, not cleared; it has the type that the operation says.
  Tensor output(int index, const Shape& shape) const {
    Status status;
    TF_Tensor* tensor =
        TF_AllocateOutput(raw_, index, TF_ExpectedOutputDataType(raw_, index), shape.data(),
                          static_cast<int>(shape.size()), bytes(index, shape), status.get());
    return owned(tensor, status);
  }

  // The same; in the memory of the input where nobody else uses it. Hold no handle on the input: it
  // would be a user.
  Tensor output_over(int input, int index, const Shape& shape) const {
    Status status;
    TF_Tensor* tensor = TF_ForwardInputOrAllocateOutput(raw_, &input, 1, index, shape.data(),
                                                        static_cast<int>(shape.size()), nullptr,
                                                        status.get());
    return owned(tensor, status);
  }

  // NULL on a device without streams, such as TensorFlow's own CPU.
  SP_Stream stream() const {
    Status status;
    SP_Stream stream = TF_GetStream(raw_, status.get());
    return TF_GetCode(status.get()) == TF_OK ? stream : nullptr;
  }

 private:
  static Tensor owned(TF_Tensor* raw, const Status& status) {
    Tensor tensor(raw);
    status.check();
    if (raw == nullptr) throw Failed(TF_INTERNAL, "the host gave no tensor");
    return tensor;
  }

  size_t bytes(int index, const Shape& shape) const {
    return static_cast<size_t>(n_elements(shape)) *
           TF_DataTypeSize(TF_ExpectedOutputDataType(raw_, index));
  }

  TF_OpKernelContext* const raw_;
};

}  // namespace kernel
