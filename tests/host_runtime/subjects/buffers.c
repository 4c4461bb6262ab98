/* Buffers, the version and the sizes of types, driven from C. */
#include "cases.h"
#include "modular_tf/ops.h"

static size_t freed_bytes;

static void count_freed(void* data, size_t length) {
  (void)data;
  freed_bytes += length;
}

CASE(a_new_buffer_is_empty) {
  TF_Buffer* buffer = TF_NewBuffer();
  CHECK(buffer->data == NULL && buffer->length == 0 && buffer->data_deallocator == NULL);
  TF_DeleteBuffer(buffer);
}

CASE(a_buffer_from_a_string_is_a_copy) {
  char bytes[] = "a\0b";
  TF_Buffer* buffer = TF_NewBufferFromString(bytes, 4);
  bytes[0] = 'x';
  const TF_Buffer found = TF_GetBuffer(buffer);
  CHECK(found.length == 4 && memcmp(found.data, "a\0b", 4) == 0);
  CHECK(found.data == buffer->data);
  TF_DeleteBuffer(buffer);
}

CASE(nothing_makes_an_empty_buffer) {
  TF_Buffer* buffer = TF_NewBufferFromString(NULL, 4);
  CHECK(buffer->data == NULL && buffer->length == 0);
  TF_DeleteBuffer(buffer);
  buffer = TF_NewBufferFromString("a", 0);
  CHECK(buffer->length == 0);
  TF_DeleteBuffer(buffer);
}

CASE(a_buffer_s_own_function_frees_its_bytes_once) {
  TF_Buffer* buffer = TF_NewBuffer();
  *buffer = (TF_Buffer){"seven b", 7, count_freed};
  TF_DeleteBuffer(buffer);
  CHECK(freed_bytes == 7);
}

CASE(a_buffer_that_is_null_is_empty) {
  TF_DeleteBuffer(NULL);
  CHECK(TF_GetBuffer(NULL).length == 0);
}

CASE(without_memory_there_is_no_buffer) { CHECK(TF_NewBufferFromString("a", SIZE_MAX / 2) == NULL); }

CASE(the_lists_of_ops_and_kernels_are_empty_and_the_caller_s) {
  TF_Status* status = TF_NewStatus();
  TF_Buffer* ops = TF_GetAllOpList();
  CHECK(ops->length == 0);
  TF_DeleteBuffer(ops);
  TF_SetStatus(status, TF_INTERNAL, "old");
  TF_Buffer* kernels = TF_GetRegisteredKernelsForOp("MatMul", status);
  CHECK_CODE(TF_OK, status);
  CHECK(kernels->length == 0);
  TF_DeleteBuffer(kernels);
  TF_DeleteStatus(status);
}

CASE(the_version_is_the_one_whose_interface_is_offered) { CHECK_TEXT("2.21.0", TF_Version()); }

CASE(types_have_the_sizes_of_their_elements) {
  static const struct {
    TF_DataType type;
    size_t size;
  } expected[] = {{TF_FLOAT, 4},      {TF_DOUBLE, 8},   {TF_INT64, 8},     {TF_BOOL, 1},
                  {TF_COMPLEX128, 16}, {TF_COMPLEX64, 8}, {TF_HALF, 2},     {TF_BFLOAT16, 2},
                  {TF_QINT32, 4},     {TF_QUINT16, 2},  {TF_FLOAT8_E5M2, 1}, {TF_INT4, 1},
                  {TF_STRING, 0},     {TF_RESOURCE, 0}, {TF_VARIANT, 0}};
  for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); ++i) {
    CHECK(TF_DataTypeSize(expected[i].type) == expected[i].size);
  }
}

CASE(numbers_that_no_type_has_have_no_size) {
  const int numbers[] = {0, -1, 34, 99, 101, 1 << 30};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); ++i) {
    CHECK(TF_DataTypeSize((TF_DataType)numbers[i]) == 0);
  }
}
