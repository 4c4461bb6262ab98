// Shape functions that throw.
#include <cstring>
#include <stdexcept>

#include "cases.h"
#include "kernels/host_table.h"

static void throw_error(TF_ShapeInferenceContext*, TF_Status*) {
  throw std::runtime_error("no memory today");
}

static void throw_number(TF_ShapeInferenceContext*, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  throw 7;
}

static TF_Status* infer(mtf_shape_function function) {
  const mtf_shape_request request = {nullptr, nullptr, nullptr, 0, 0, 0};
  TF_Status* status = TF_NewStatus();
  mtf_kernel_host_table.infer_shapes(function, &request, status);
  return status;
}

CASE(an_exception_is_a_status_with_its_text) {
  TF_Status* status = infer(throw_error);
  CHECK_CODE(TF_INTERNAL, status);
  CHECK_TEXT("the shape function threw: no memory today", TF_Message(status));
  TF_DeleteStatus(status);
}

CASE(whatever_is_thrown_is_caught) {
  TF_Status* status = infer(throw_number);
  CHECK_CODE(TF_INTERNAL, status);
  CHECK_TEXT("the shape function threw an exception of an unknown type", TF_Message(status));
  TF_DeleteStatus(status);
}
