// What OpenCL C calls the element types.
#pragma once

#include "kernel/element_types.h"

namespace opencl_kernels {

inline const char* name_of(TF_DataType type) {
  switch (type) {
    case TF_FLOAT:
      return "float";
    case TF_DOUBLE:
      return "double";
    case TF_INT8:
      return "char";
    case TF_INT16:
      return "short";
    case TF_INT32:
      return "int";
    case TF_INT64:
      return "long";
    case TF_UINT16:
      return "ushort";
    case TF_UINT32:
      return "uint";
    case TF_UINT64:
      return "ulong";
    default:
      return "uchar";  // TF_BOOL too: bool itself has no fixed size there
  }
}

}  // namespace opencl_kernels
