/* Tensors from protobuf's bytes, driven from C. */
#include "cases.h"
#include "modular_tf/tensor.h"

#define BYTES(text) text, sizeof(text) - 1

/* Reads bytes into a fresh tensor; the code of the status. */
static TF_Code parse(TF_Tensor** tensor, const char* bytes, size_t length) {
  const int64_t none[] = {0};
  TF_Status* status = TF_NewStatus();
  TF_Buffer* buffer = TF_NewBufferFromString(bytes, length);
  *tensor = TF_AllocateTensor(TF_FLOAT, none, 1, 0);
  TF_TensorFromProto(buffer, *tensor, status);
  const TF_Code code = TF_GetCode(status);
  TF_DeleteBuffer(buffer);
  TF_DeleteStatus(status);
  return code;
}

static void refused(const char* bytes, size_t length) {
  TF_Tensor* tensor = NULL;
  CHECK(parse(&tensor, bytes, length) == TF_INVALID_ARGUMENT);
  CHECK(TF_TensorType(tensor) == TF_FLOAT && TF_Dim(tensor, 0) == 0);
  TF_DeleteTensor(tensor);
}

CASE(content_is_the_elements) {
  TF_Tensor* tensor = NULL;
  /* int32, shape [2], content */
  CHECK(parse(&tensor, BYTES("\x08\x03\x12\x04\x12\x02\x08\x02\x22\x08\x01\0\0\0\x02\0\0\0")) == TF_OK);
  CHECK(TF_TensorType(tensor) == TF_INT32 && TF_NumDims(tensor) == 1 && TF_Dim(tensor, 0) == 2);
  const int32_t* values = TF_TensorData(tensor);
  CHECK(values[0] == 1 && values[1] == 2);
  TF_DeleteTensor(tensor);
}

CASE(packed_and_single_values_are_read) {
  TF_Tensor* tensor = NULL;
  /* int32, shape [3], int_val packed [5, -1], then single 7 */
  CHECK(parse(&tensor, BYTES("\x08\x03\x12\x04\x12\x02\x08\x03\x3a\x0b\x05\xff\xff\xff\xff\xff\xff"
                             "\xff\xff\xff\x01\x38\x07")) == TF_OK);
  const int32_t* values = TF_TensorData(tensor);
  CHECK(values[0] == 5 && values[1] == -1 && values[2] == 7);
  TF_DeleteTensor(tensor);
}

CASE(the_last_value_stands_for_the_rest) {
  TF_Tensor* tensor = NULL;
  /* float, shape [2, 2], float_val packed [1.5] */
  CHECK(parse(&tensor, BYTES("\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x02\x2a\x04\0\0\xc0\x3f")) ==
        TF_OK);
  const float* values = TF_TensorData(tensor);
  CHECK(TF_TensorElementCount(tensor) == 4);
  for (int index = 0; index < 4; ++index) CHECK(values[index] == 1.5f);
  TF_DeleteTensor(tensor);
}

CASE(no_value_is_zero_and_no_shape_is_a_scalar) {
  TF_Tensor* tensor = NULL;
  CHECK(parse(&tensor, BYTES("\x08\x02")) == TF_OK);
  CHECK(TF_TensorType(tensor) == TF_DOUBLE && TF_NumDims(tensor) == 0);
  CHECK(*(double*)TF_TensorData(tensor) == 0);
  TF_DeleteTensor(tensor);
}

CASE(bytes_that_are_no_tensor_are_refused) {
  refused(BYTES(""));                                              /* no type */
  refused(BYTES("\x08\x07"));                                      /* strings */
  refused(BYTES("\x08\x63"));                                      /* no such type */
  refused(BYTES("\x08\x01\x12\x02\x18\x01"));                      /* unknown rank */
  refused(BYTES("\x08\x01\x12\x04\x12\x02\x08\x02\x22\x01\x01"));  /* too little content */
  refused(BYTES("\x08\x01\x12\x7f"));                              /* cut off */
  refused(BYTES("\x08\x01\x0b"));                                  /* an old group */
  refused(BYTES("\x08\x01\x12\x0d\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));  /* -1 */
  refused(BYTES("\x08\x01\x12\x0c\x12\x0a\x08\x80\x80\x80\x80\x80\x80\x80\x80\x40"));  /* huge */
}
