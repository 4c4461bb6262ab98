/* The builder of op definitions in ops.h, driven from C. */
#include <pthread.h>
#include <stdint.h>

#include "cases.h"
#include "kernels/host_table.h"
#include "log_capture.h"
#include "modular_tf/ops.h"

static TF_OpDefinitionBuilder* add_builder(const char* name, const char* attr) {
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(name);
  CHECK(builder != NULL);
  TF_OpDefinitionBuilderAddAttr(builder, attr);
  TF_OpDefinitionBuilderAddInput(builder, "x: T");
  TF_OpDefinitionBuilderAddOutput(builder, "y: T");
  return builder;
}

static TF_Code register_it(TF_OpDefinitionBuilder* builder) {
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, TF_INTERNAL, "old");
  TF_RegisterOpDefinition(builder, status);
  const TF_Code code = TF_GetCode(status);
  TF_DeleteStatus(status);
  return code;
}

#define CHECK_RECORD(index, literal) check_record(index, literal, sizeof(literal) - 1)

static void check_record(int32_t index, const char* expected, size_t expected_size) {
  size_t size = 0;
  const char* record = mtf_kernel_host_table.op_definition_record(index, &size);
  CHECK(record != NULL && size == expected_size && memcmp(record, expected, size) == 0);
}

/* No shape function is run. */
static void infer_nothing(TF_ShapeInferenceContext* context, TF_Status* status) {
  (void)context;
  (void)status;
  CHECK(0);
}

CASE(a_definition_is_stored_as_it_was_given) {
  TF_OpDefinitionBuilder* builder = add_builder("Scale", "T: {float, half} = DT_FLOAT");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, infer_nothing);
  CHECK(mtf_kernel_host_table.count_op_definitions() == 0);
  CHECK(register_it(builder) == TF_OK);
  CHECK(mtf_kernel_host_table.count_op_definitions() == 1);
  CHECK_RECORD(0, "Scale\0\0aT: {float, half} = DT_FLOAT\0ix: T\0oy: T");
}

CASE(there_is_none_outside_of_the_list) {
  CHECK(register_it(add_builder("Scale", "T: type")) == TF_OK);
  for (int32_t index = -1; index < 2; index += 2) {
    size_t size = 1;
    CHECK(mtf_kernel_host_table.op_definition_record(index, &size) == NULL && size == 0);
  }
}

CASE(texts_are_copied_when_they_are_given) {
  char name[] = "Scale", spec[] = "T: type";
  TF_OpDefinitionBuilder* builder = add_builder(name, spec);
  memset(name, 'x', 5);
  memset(spec, 'x', 7);
  CHECK(register_it(builder) == TF_OK);
  CHECK_RECORD(0, "Scale\0\0aT: type\0ix: T\0oy: T");
}

CASE(flags_are_set_by_their_functions_whatever_the_value) {
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("Flagged");
  TF_OpDefinitionBuilderDeprecated(builder, 8, "use Other");
  TF_OpDefinitionBuilderSetAllowsUninitializedInput(builder, true);
  TF_OpDefinitionBuilderSetIsAggregate(builder, false);
  TF_OpDefinitionBuilderSetIsCommutative(builder, true);
  TF_OpDefinitionBuilderSetIsStateful(builder, false);
  TF_OpDefinitionBuilderSetIsStateful(builder, true);
  CHECK(register_it(builder) == TF_OK);
  CHECK_RECORD(0, "Flagged\0DUACSS");
}

CASE(whether_an_op_is_stateful_is_known_of_registered_ones) {
  TF_Status* status = TF_NewStatus();
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("Counter");
  TF_OpDefinitionBuilderSetIsStateful(builder, true);
  CHECK(register_it(builder) == TF_OK);
  CHECK(register_it(TF_NewOpDefinitionBuilder("Plain")) == TF_OK);
  CHECK(TF_OpIsStateful("Counter", status) == 1);
  CHECK_CODE(TF_OK, status);
  CHECK(TF_OpIsStateful("Plain", status) == 0);
  CHECK_CODE(TF_OK, status);
  CHECK(TF_OpIsStateful("Unknown", status) == 0);
  CHECK_CODE(TF_NOT_FOUND, status);
  CHECK(TF_OpIsStateful(NULL, status) == 0);
  CHECK_CODE(TF_NOT_FOUND, status);
  TF_DeleteStatus(status);
}

CASE(every_registration_is_stored_right_or_wrong) {
  CHECK(register_it(add_builder("Scale", "T: {float, half}")) == TF_OK);
  CHECK(register_it(add_builder("Scale", "T: {float}")) == TF_OK);
  CHECK(register_it(add_builder("", "T: quux")) == TF_OK);
  CHECK(mtf_kernel_host_table.count_op_definitions() == 3);
  CHECK_RECORD(1, "Scale\0\0aT: {float}\0ix: T\0oy: T");
  CHECK_RECORD(2, "\0\0aT: quux\0ix: T\0oy: T");
}

CASE(a_text_that_is_null_is_a_fault) {
  TF_Status* status = TF_NewStatus();
  TF_RegisterOpDefinition(TF_NewOpDefinitionBuilder(NULL), status);
  CHECK_CODE(TF_INVALID_ARGUMENT, status);
  TF_RegisterOpDefinition(add_builder("Scale", NULL), status);
  CHECK_CODE(TF_INVALID_ARGUMENT, status);
  CHECK_TEXT("op Scale: TF_OpDefinitionBuilderAddAttr was given NULL", TF_Message(status));
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("Scale");
  TF_OpDefinitionBuilderAddOutput(builder, NULL);
  CHECK(register_it(builder) == TF_INVALID_ARGUMENT);
  builder = TF_NewOpDefinitionBuilder("Scale");
  TF_OpDefinitionBuilderDeprecated(builder, 1, NULL);
  CHECK(register_it(builder) == TF_OK);
  TF_RegisterOpDefinition(TF_NewOpDefinitionBuilder("Other"), NULL);
  TF_DeleteStatus(status);
}

CASE(a_builder_is_gone_after_its_registration) {
  capture_log();
  TF_OpDefinitionBuilder* builder = add_builder("Scale", "T: type");
  CHECK(register_it(builder) == TF_OK);
  CHECK(logged_lines == 0);
  TF_OpDefinitionBuilderAddAttr(builder, "U: type");
  CHECK(logged_lines == 1);
  CHECK(strstr(last_logged, "TF_OpDefinitionBuilderAddAttr: ") == last_logged);
  CHECK(strstr(last_logged, "is no TF_OpDefinitionBuilder in use") != NULL);
  CHECK(register_it(builder) == TF_INVALID_ARGUMENT);
  CHECK(logged_lines == 2);
  TF_DeleteOpDefinitionBuilder(builder);
  CHECK(logged_lines == 3);
}

CASE(a_refused_builder_is_gone_too) {
  capture_log();
  TF_OpDefinitionBuilder* builder = add_builder("Scale", NULL);
  CHECK(register_it(builder) == TF_INVALID_ARGUMENT);
  TF_DeleteOpDefinitionBuilder(builder);
  CHECK(logged_lines == 1);
}

CASE(a_builder_is_deleted_once) {
  capture_log();
  TF_OpDefinitionBuilder* builder = add_builder("Scale", "T: type");
  TF_DeleteOpDefinitionBuilder(NULL);
  TF_DeleteOpDefinitionBuilder(builder);
  CHECK(logged_lines == 0);
  TF_DeleteOpDefinitionBuilder(builder);
  CHECK(logged_lines == 1);
}

CASE(what_is_no_builder_is_found_out) {
  capture_log();
  char other[64] = "";
  TF_OpDefinitionBuilder* no_builders[] = {NULL, (TF_OpDefinitionBuilder*)other,
                                           (TF_OpDefinitionBuilder*)(uintptr_t)0x4D54000000000010};
  for (int i = 0; i < 3; ++i) {
    TF_OpDefinitionBuilderAddAttr(no_builders[i], "T: type");
    TF_OpDefinitionBuilderAddInput(no_builders[i], "x: T");
    TF_OpDefinitionBuilderAddOutput(no_builders[i], "y: T");
    TF_OpDefinitionBuilderSetIsStateful(no_builders[i], true);
    TF_OpDefinitionBuilderSetShapeInferenceFunction(no_builders[i], infer_nothing);
    CHECK(register_it(no_builders[i]) == TF_INVALID_ARGUMENT);
    CHECK(logged_lines == 6 * (i + 1));
  }
}

CASE(what_shape_functions_call_names_itself) {
  capture_log();
  CHECK(TF_NewShapeHandle() == NULL);
  CHECK_TEXT("TF_NewShapeHandle: the host runs no shape functions (KN-100)", last_logged);
  CHECK(TF_NewDimensionHandle() == NULL);
  CHECK(TF_ShapeInferenceContextScalar(NULL) == NULL);
  CHECK(TF_ShapeInferenceContextVectorFromSize(NULL, 1) == NULL);
  CHECK(TF_ShapeInferenceContextNumInputs(NULL) == -1);
  CHECK(TF_ShapeInferenceContextRank(NULL, NULL) == -1);
  CHECK(TF_ShapeInferenceContextRankKnown(NULL, NULL) == 0);
  CHECK(TF_DimensionHandleValue(NULL) == -1 && TF_DimensionHandleValueKnown(NULL) == 0);
  TF_ShapeInferenceContextDim(NULL, NULL, 0, NULL);
  CHECK(logged_lines == 10);
  CHECK_TEXT("TF_ShapeInferenceContextDim: the host runs no shape functions (KN-100)", last_logged);
  TF_DeleteShapeHandle(NULL);
  TF_DeleteDimensionHandle(NULL);
  CHECK(logged_lines == 10);
}

/* Checks that a call sets a status that was OK. */
#define CHECK_SETS(call)                  \
  do {                                    \
    TF_SetStatus(status, TF_OK, "");      \
    call;                                 \
    CHECK_CODE(TF_UNIMPLEMENTED, status); \
  } while (0)

CASE(what_shape_functions_call_sets_its_status) {
  capture_log();
  TF_Status* status = TF_NewStatus();
  TF_DataType type;
  CHECK_SETS(TF_ShapeInferenceContextWithRank(NULL, NULL, 1, NULL, status));
  CHECK_SETS(TF_ShapeInferenceContextWithRankAtLeast(NULL, NULL, 1, NULL, status));
  CHECK_SETS(TF_ShapeInferenceContextWithRankAtMost(NULL, NULL, 1, NULL, status));
  CHECK_TEXT("TF_ShapeInferenceContextWithRankAtMost: the host runs no shape functions (rule KN-100)",
             TF_Message(status));
  CHECK_SETS(TF_ShapeInferenceContextSetUnknownShape(NULL, status));
  CHECK_SETS(TF_ShapeInferenceContextGetInput(NULL, 0, NULL, status));
  CHECK_SETS(TF_ShapeInferenceContextSetOutput(NULL, 0, NULL, status));
  CHECK_SETS(TF_ShapeInferenceContextSubshape(NULL, NULL, 0, 1, NULL, status));
  CHECK_SETS(TF_ShapeInferenceContextConcatenateShapes(NULL, NULL, NULL, NULL, status));
  CHECK_SETS(TF_ShapeInferenceContext_GetAttrType(NULL, "T", &type, status));
  CHECK(logged_lines == 0);
  TF_DeleteStatus(status);
}

enum { THREADS = 8, OPS = 200 };

static void* register_ops(void* argument) {
  const int thread = *(int*)argument;
  for (int i = 0; i < OPS; ++i) {
    char own[32], shared[32];
    snprintf(own, sizeof(own), "Own%dOf%d", i, thread);
    snprintf(shared, sizeof(shared), "Shared%d", i);
    CHECK(register_it(add_builder(own, "T: type")) == TF_OK);
    CHECK(register_it(add_builder(shared, "T: type")) == TF_OK);
    size_t size = 0;
    const char* last = mtf_kernel_host_table.op_definition_record(
        mtf_kernel_host_table.count_op_definitions() - 1, &size);
    CHECK(last != NULL && memcmp(last + size - 5, "\0oy: T" + 1, 5) == 0);
  }
  return NULL;
}

CASE(threads_register_at_once) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, register_ops, &numbers[i]) == 0);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  CHECK(mtf_kernel_host_table.count_op_definitions() == 2 * THREADS * OPS);
}

static void* register_same(void* builder) {
  return (void*)(intptr_t)register_it((TF_OpDefinitionBuilder*)builder);
}

CASE(two_threads_register_one_builder_and_one_of_them_does) {
  capture_log();
  for (int i = 0; i < OPS; ++i) {
    char name[32];
    snprintf(name, sizeof(name), "Contested%d", i);
    TF_OpDefinitionBuilder* builder = add_builder(name, "T: type");
    pthread_t other;
    void* others = NULL;
    CHECK(pthread_create(&other, NULL, register_same, builder) == 0);
    const TF_Code ours = register_it(builder);
    pthread_join(other, &others);
    CHECK((ours == TF_OK) + ((TF_Code)(intptr_t)others == TF_OK) == 1);
  }
  CHECK(mtf_kernel_host_table.count_op_definitions() == OPS);
}
