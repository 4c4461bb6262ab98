/* Shape functions, driven from C. */
#include "kernels/host_table.h"

#include <pthread.h>

#include "cases.h"
#include "log_capture.h"
#include "modular_tf/ops.h"

static const int64_t two_three[] = {2, 3}, unknown_four[] = {-1, 4};
static const mtf_known_shape inputs[] = {{2, two_three}, {-1, NULL}, {2, unknown_four}, {0, NULL}};
static const mtf_type_attr type_attrs[] = {{"T", TF_HALF}};
static mtf_inferred_shape outputs[2];

static const mtf_shape_request request = {
    .inputs = inputs,
    .type_attrs = type_attrs,
    .outputs = outputs,
    .num_inputs = 4,
    .num_type_attrs = 1,
    .num_outputs = 2,
};

static char message[512];

static TF_Code infer(mtf_shape_function function) {
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, TF_INTERNAL, "old");
  mtf_kernel_host_table.infer_shapes(function, &request, status);
  const TF_Code code = TF_GetCode(status);
  snprintf(message, sizeof(message), "%s", TF_Message(status));
  TF_DeleteStatus(status);
  return code;
}

static TF_ShapeHandle* input(TF_ShapeInferenceContext* context, int index) {
  TF_Status* status = TF_NewStatus();
  TF_ShapeHandle* shape = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(context, index, shape, status);
  CHECK_CODE(TF_OK, status);
  TF_DeleteStatus(status);
  return shape;
}

static int has_shape(TF_ShapeInferenceContext* context, TF_ShapeHandle* shape, int64_t rank,
                     int64_t first, int64_t last) {
  TF_DimensionHandle* size = TF_NewDimensionHandle();
  int is_same = TF_ShapeInferenceContextRank(context, shape) == rank;
  if (rank > 0) {
    TF_ShapeInferenceContextDim(context, shape, 0, size);
    is_same = is_same && TF_DimensionHandleValue(size) == first;
    TF_ShapeInferenceContextDim(context, shape, -1, size);
    is_same = is_same && TF_DimensionHandleValue(size) == last;
  }
  TF_DeleteDimensionHandle(size);
  return is_same;
}

static void copy_first_two(TF_ShapeInferenceContext* context, TF_Status* status) {
  CHECK(TF_ShapeInferenceContextNumInputs(context) == 4);
  for (int i = 0; i < 2; ++i) {
    TF_ShapeHandle* shape = input(context, i);
    TF_ShapeInferenceContextSetOutput(context, i, shape, status);
    TF_DeleteShapeHandle(shape);
  }
}

CASE(outputs_are_what_the_function_sets) {
  CHECK(infer(copy_first_two) == TF_OK);
  CHECK(outputs[0].rank == 2 && outputs[0].dims[0] == 2 && outputs[0].dims[1] == 3);
  CHECK(outputs[1].rank == -1);
}

static void set_nothing(TF_ShapeInferenceContext* context, TF_Status* status) {
  (void)context;
  (void)status;
}

CASE(an_output_that_is_not_set_is_unknown) {
  outputs[0].rank = outputs[1].rank = 7;
  CHECK(infer(set_nothing) == TF_OK);
  CHECK(outputs[0].rank == -1 && outputs[1].rank == -1);
}

static void set_and_forget(TF_ShapeInferenceContext* context, TF_Status* status) {
  copy_first_two(context, status);
  TF_ShapeInferenceContextSetUnknownShape(context, status);
  CHECK_CODE(TF_OK, status);
}

CASE(all_outputs_are_made_unknown) {
  CHECK(infer(set_and_forget) == TF_OK);
  CHECK(outputs[0].rank == -1 && outputs[1].rank == -1);
}

static void set_made(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeHandle* scalar = TF_ShapeInferenceContextScalar(context);
  TF_ShapeHandle* vector = TF_ShapeInferenceContextVectorFromSize(context, 5);
  TF_ShapeInferenceContextSetOutput(context, 0, scalar, status);
  TF_ShapeInferenceContextSetOutput(context, 1, vector, status);
  TF_DeleteShapeHandle(scalar);
  TF_DeleteShapeHandle(vector);
}

CASE(scalars_and_vectors_are_made) {
  CHECK(infer(set_made) == TF_OK);
  CHECK(outputs[0].rank == 0);
  CHECK(outputs[1].rank == 1 && outputs[1].dims[0] == 5);
}

static void use_wrong_indices(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeHandle* shape = TF_NewShapeHandle();
  const int wrong[] = {-1, 4, 1 << 30};
  for (int i = 0; i < 3; ++i) {
    TF_ShapeInferenceContextGetInput(context, wrong[i], shape, status);
    CHECK_CODE(TF_INVALID_ARGUMENT, status);
    TF_ShapeInferenceContextSetOutput(context, wrong[i], shape, status);
    CHECK_CODE(TF_INVALID_ARGUMENT, status);
  }
  TF_ShapeInferenceContextSetOutput(context, 2, shape, status);
  TF_DeleteShapeHandle(shape);
}

CASE(an_index_outside_is_an_invalid_argument) {
  CHECK(infer(use_wrong_indices) == TF_INVALID_ARGUMENT);
  CHECK_TEXT("output index 2 out of range: there are 2", message);
}

static void read_ranks(TF_ShapeInferenceContext* context, TF_Status* status) {
  (void)status;
  const int64_t ranks[] = {2, -1, 2, 0};
  for (int i = 0; i < 4; ++i) {
    TF_ShapeHandle* shape = input(context, i);
    CHECK(TF_ShapeInferenceContextRank(context, shape) == ranks[i]);
    CHECK(TF_ShapeInferenceContextRankKnown(context, shape) == (ranks[i] >= 0));
    TF_DeleteShapeHandle(shape);
  }
  TF_ShapeHandle* fresh = TF_NewShapeHandle();
  CHECK(TF_ShapeInferenceContextRank(context, fresh) == -1);
  TF_DeleteShapeHandle(fresh);
}

CASE(the_rank_of_an_unknown_shape_is_minus_1) { CHECK(infer(read_ranks) == TF_OK); }

static void read_dimensions(TF_ShapeInferenceContext* context, TF_Status* status) {
  (void)status;
  static const struct {
    int input;
    int64_t index, size;
  } expected[] = {{0, 0, 2},  {0, 1, 3},   {0, -1, 3}, {0, -2, 2}, {0, 2, -1}, {0, -3, -1},
                  {1, 0, -1}, {2, 0, -1},  {2, 1, 4},  {3, 0, -1}, {3, -1, -1},
                  {0, INT64_MIN, -1}, {0, INT64_MAX, -1}};
  TF_DimensionHandle* size = TF_NewDimensionHandle();
  CHECK(TF_DimensionHandleValueKnown(size) == 0 && TF_DimensionHandleValue(size) == -1);
  for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); ++i) {
    TF_ShapeHandle* shape = input(context, expected[i].input);
    TF_ShapeInferenceContextDim(context, shape, expected[i].index, size);
    CHECK(TF_DimensionHandleValue(size) == expected[i].size);
    CHECK(TF_DimensionHandleValueKnown(size) == (expected[i].size >= 0));
    TF_DeleteShapeHandle(shape);
  }
  TF_DeleteDimensionHandle(size);
}

CASE(dimensions_count_from_both_ends_and_are_unknown_outside) {
  CHECK(infer(read_dimensions) == TF_OK);
}

typedef void (*rank_function)(TF_ShapeInferenceContext*, TF_ShapeHandle*, int64_t, TF_ShapeHandle*,
                              TF_Status*);

static void check_ranks(TF_ShapeInferenceContext* context, TF_Status* status) {
  static const struct {
    rank_function function;
    int input;
    int64_t rank, found;
    const char* error;
  } expected[] = {
      {TF_ShapeInferenceContextWithRank, 0, 2, 2, ""},
      {TF_ShapeInferenceContextWithRank, 0, 3, -1, "Shape must be rank 3 but is rank 2"},
      {TF_ShapeInferenceContextWithRank, 1, 3, 3, ""},
      {TF_ShapeInferenceContextWithRank, 1, -1, -1, "a rank of -1 does not exist"},
      {TF_ShapeInferenceContextWithRank, 1, INT64_MAX, -1, "Rank cannot exceed 254"},
      {TF_ShapeInferenceContextWithRankAtLeast, 0, 2, 2, ""},
      {TF_ShapeInferenceContextWithRankAtLeast, 0, 3, -1,
       "Shape must be at least rank 3 but is rank 2"},
      {TF_ShapeInferenceContextWithRankAtLeast, 1, 3, -1, ""},
      {TF_ShapeInferenceContextWithRankAtMost, 0, 2, 2, ""},
      {TF_ShapeInferenceContextWithRankAtMost, 0, 1, -1,
       "Shape must be at most rank 1 but is rank 2"},
      {TF_ShapeInferenceContextWithRankAtMost, 1, 1, -1, ""},
      {TF_ShapeInferenceContextWithRankAtMost, 0, INT64_MAX, 2, ""},
  };
  for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); ++i) {
    TF_ShapeHandle* shape = input(context, expected[i].input);
    expected[i].function(context, shape, expected[i].rank, shape, status);
    CHECK_TEXT(expected[i].error, TF_Message(status));
    CHECK_CODE(*expected[i].error == '\0' ? TF_OK : TF_INVALID_ARGUMENT, status);
    CHECK(TF_ShapeInferenceContextRank(context, shape) == expected[i].found);
    TF_DeleteShapeHandle(shape);
  }
}

CASE(ranks_are_held_against_what_is_asked) { CHECK(infer(check_ranks) == TF_OK); }

static void take_parts(TF_ShapeInferenceContext* context, TF_Status* status) {
  static const struct {
    int64_t start, end, rank, first, last;
  } expected[] = {{0, 2, 2, 2, 3},          {0, INT64_MAX, 2, 2, 3}, {1, 2, 1, 3, 3},
                  {0, -1, 1, 2, 2},         {-1, 2, 1, 3, 3},        {1, 1, 0, 0, 0},
                  {5, INT64_MAX, 0, 0, 0},  {-2, -1, 1, 2, 2}};
  for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); ++i) {
    TF_ShapeHandle* shape = input(context, 0);
    TF_ShapeInferenceContextSubshape(context, shape, expected[i].start, expected[i].end, shape,
                                     status);
    CHECK_CODE(TF_OK, status);
    CHECK(has_shape(context, shape, expected[i].rank, expected[i].first, expected[i].last));
    TF_DeleteShapeHandle(shape);
  }
}

CASE(a_part_of_a_shape_is_taken) { CHECK(infer(take_parts) == TF_OK); }

static void take_wrong_parts(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeHandle* shape = input(context, 0);
  TF_ShapeHandle* part = TF_NewShapeHandle();
  TF_ShapeInferenceContextSubshape(context, shape, -3, 2, part, status);
  CHECK_TEXT("Subshape start out of bounds: -3, for shape with rank 2", TF_Message(status));
  TF_ShapeInferenceContextSubshape(context, shape, 0, INT64_MIN, part, status);
  CHECK_CODE(TF_INVALID_ARGUMENT, status);
  TF_ShapeInferenceContextSubshape(context, shape, 2, 1, part, status);
  CHECK_CODE(TF_INVALID_ARGUMENT, status);
  CHECK(TF_ShapeInferenceContextRank(context, part) == -1);
  TF_ShapeHandle* unknown = input(context, 1);
  TF_ShapeInferenceContextSubshape(context, unknown, 2, 1, part, status);
  CHECK_CODE(TF_OK, status);
  CHECK(TF_ShapeInferenceContextRank(context, part) == -1);
  TF_DeleteShapeHandle(unknown);
  TF_DeleteShapeHandle(part);
  TF_DeleteShapeHandle(shape);
}

CASE(a_part_outside_is_an_invalid_argument) { CHECK(infer(take_wrong_parts) == TF_OK); }

static void join_shapes(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeHandle *front = input(context, 0), *behind = input(context, 2), *none = input(context, 1);
  TF_ShapeInferenceContextConcatenateShapes(context, front, behind, behind, status);
  CHECK_CODE(TF_OK, status);
  CHECK(has_shape(context, behind, 4, 2, 4));
  TF_ShapeInferenceContextConcatenateShapes(context, behind, behind, behind, status);
  CHECK(has_shape(context, behind, 8, 2, 4));
  TF_ShapeInferenceContextConcatenateShapes(context, front, none, front, status);
  CHECK_CODE(TF_OK, status);
  CHECK(TF_ShapeInferenceContextRank(context, front) == -1);
  for (int i = 0; i < 5; ++i) {
    TF_ShapeInferenceContextConcatenateShapes(context, behind, behind, behind, status);
  }
  CHECK(TF_ShapeInferenceContextRank(context, behind) == -1);
  CHECK_TEXT("Rank cannot exceed 254", TF_Message(status));
  TF_SetStatus(status, TF_OK, "");
  TF_DeleteShapeHandle(front);
  TF_DeleteShapeHandle(behind);
  TF_DeleteShapeHandle(none);
}

CASE(shapes_are_joined) { CHECK(infer(join_shapes) == TF_OK); }

static void read_types(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_DataType type = TF_FLOAT;
  TF_ShapeInferenceContext_GetAttrType(context, "T", &type, status);
  CHECK_CODE(TF_OK, status);
  CHECK(type == TF_HALF);
  TF_ShapeInferenceContext_GetAttrType(context, NULL, &type, status);
  CHECK_CODE(TF_NOT_FOUND, status);
  TF_ShapeInferenceContext_GetAttrType(context, "U", &type, status);
  CHECK(type == TF_HALF);
}

CASE(type_attributes_are_read) {
  CHECK(infer(read_types) == TF_NOT_FOUND);
  CHECK_TEXT("No attr named 'U' in NodeDef", message);
}

static void fail(TF_ShapeInferenceContext* context, TF_Status* status) {
  copy_first_two(context, status);
  TF_SetStatus(status, TF_INVALID_ARGUMENT, "no such shape");
}

CASE(a_status_is_told) {
  outputs[0].rank = 7;
  CHECK(infer(fail) == TF_INVALID_ARGUMENT);
  CHECK_TEXT("no such shape", message);
  CHECK(outputs[0].rank == 7);
}

static TF_ShapeInferenceContext* kept_context;
static TF_ShapeHandle* kept_shape;

static void keep_context(TF_ShapeInferenceContext* context, TF_Status* status) {
  (void)status;
  kept_context = context;
}

CASE(a_context_is_gone_after_its_call) {
  capture_log();
  CHECK(infer(keep_context) == TF_OK);
  CHECK(TF_ShapeInferenceContextNumInputs(kept_context) == 0);
  CHECK(logged_lines == 1);
  CHECK(TF_ShapeInferenceContextScalar(kept_context) == NULL);
  CHECK(TF_ShapeInferenceContextVectorFromSize(kept_context, 1) == NULL);
  CHECK(logged_lines == 3);
  CHECK(strstr(last_logged, "is no TF_ShapeInferenceContext in use") != NULL);
}

static void use_deleted_shape(TF_ShapeInferenceContext* context, TF_Status* status) {
  kept_shape = input(context, 0);
  TF_DeleteShapeHandle(kept_shape);
  TF_ShapeInferenceContextSetOutput(context, 0, kept_shape, status);
  TF_SetStatus(status, TF_OK, "");
}

CASE(misuse_fails_the_call_that_seems_to_succeed) {
  capture_log();
  CHECK(infer(use_deleted_shape) == TF_INVALID_ARGUMENT);
  CHECK(strstr(message, "TF_ShapeInferenceContextSetOutput: ") == message);
  CHECK(strstr(message, "(KN-101)") != NULL);
  CHECK(logged_lines == 0);
}

CASE(handles_are_deleted_once) {
  capture_log();
  TF_ShapeHandle* shape = TF_NewShapeHandle();
  TF_DimensionHandle* size = TF_NewDimensionHandle();
  TF_DeleteShapeHandle(NULL);
  TF_DeleteDimensionHandle(NULL);
  TF_DeleteShapeHandle(shape);
  TF_DeleteDimensionHandle(size);
  CHECK(logged_lines == 0);
  TF_DeleteShapeHandle(shape);
  TF_DeleteDimensionHandle(size);
  TF_DeleteShapeHandle((TF_ShapeHandle*)size);
  CHECK(logged_lines == 3);
}

static void* use_null(void* unused) {
  TF_Status* status = TF_NewStatus();
  (void)unused;
  CHECK(TF_ShapeInferenceContextNumInputs(NULL) == 0);
  CHECK(TF_ShapeInferenceContextRank(NULL, NULL) == -1);
  CHECK(TF_ShapeInferenceContextRankKnown(NULL, NULL) == 0);
  CHECK(TF_DimensionHandleValue(NULL) == -1 && TF_DimensionHandleValueKnown(NULL) == 0);
  TF_ShapeInferenceContextDim(NULL, NULL, 0, NULL);
  TF_ShapeInferenceContextSetUnknownShape(NULL, status);
  CHECK_CODE(TF_INVALID_ARGUMENT, status);
  TF_SetStatus(status, TF_OK, "");
  TF_ShapeInferenceContextConcatenateShapes(NULL, NULL, NULL, NULL, status);
  CHECK_CODE(TF_INVALID_ARGUMENT, status);
  TF_SetStatus(status, TF_OK, "");
  TF_ShapeInferenceContextWithRank(NULL, NULL, 1, NULL, status);
  CHECK_CODE(TF_INVALID_ARGUMENT, status);
  TF_DeleteStatus(status);
  return NULL;
}

CASE(null_is_no_handle) {
  capture_log();
  use_null(NULL);
  CHECK(logged_lines > 0);
}

static void* infer_often(void* unused) {
  (void)unused;
  for (int i = 0; i < 1000; ++i) {
    mtf_inferred_shape own[2];
    mtf_shape_request mine = request;
    TF_Status* status = TF_NewStatus();
    mine.outputs = own;
    mtf_kernel_host_table.infer_shapes(copy_first_two, &mine, status);
    CHECK_CODE(TF_OK, status);
    CHECK(own[0].rank == 2 && own[0].dims[1] == 3 && own[1].rank == -1);
    TF_DeleteStatus(status);
  }
  return NULL;
}

CASE(threads_infer_at_once) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, infer_often, NULL) == 0);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
}
