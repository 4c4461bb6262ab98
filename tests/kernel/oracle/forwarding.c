/* When an output gets the memory of an input. */
#include "probe.h"

static const int64_t kTwoByThree[] = {2, 3};

static void no_deallocation(void* data, size_t length, void* argument) {
  (void)data;
  (void)length;
  (void)argument;
}

static void fill(TF_Tensor* tensor, float value) {
  float* data = TF_TensorData(tensor);
  for (int64_t i = 0; i < TF_TensorElementCount(tensor); ++i) data[i] = value;
}

/* -- where an input comes from -- */

static void give(TF_OpKernelContext* context, TF_Tensor* tensor) {
  TF_Status* status = TF_NewStatus();
  fill(tensor, 1);
  TF_SetOutput(context, 0, tensor, status);
  TF_DeleteTensor(tensor);
  TF_DeleteStatus(status);
}

static void give_output(TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* made = TF_AllocateOutput(context, 0, TF_FLOAT, kTwoByThree, 2, 24, status);
  fill(made, 1);
  TF_DeleteTensor(made);
  TF_DeleteStatus(status);
}

static void give_temporary(TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  give(context, TF_AllocateTemp(context, TF_FLOAT, kTwoByThree, 2, NULL, status));
  TF_DeleteStatus(status);
}

static void give_allocated(TF_OpKernelContext* context) {
  give(context, TF_AllocateTensor(TF_FLOAT, kTwoByThree, 2, 24));
}

static void give_new(TF_OpKernelContext* context) {
  _Alignas(64) static char memory[64];
  give(context,
       TF_NewTensor(TF_FLOAT, kTwoByThree, 2, memory, 24, no_deallocation, NULL));
}

static void give_copied(TF_OpKernelContext* context) {
  _Alignas(64) static char memory[64];
  give(context,
       TF_NewTensor(TF_FLOAT, kTwoByThree, 2, memory + 4, 24, no_deallocation, NULL));
}

static const ProbeCase kSources[] = {{"output", give_output},
                                     {"temporary", give_temporary},
                                     {"allocated", give_allocated},
                                     {"new", give_new},
                                     {"copied", give_copied},
                                     {NULL, NULL}};

static void* create_source(TF_OpKernelConstruction* node) { return find_case(node, kSources); }

/* -- what becomes of it -- */

enum { kNothing = -77 };

static void* data_of_input(TF_OpKernelContext* context, int index) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* input = NULL;
  TF_GetInput(context, index, &input, status);
  void* data = TF_TensorData(input);
  TF_DeleteTensor(input);
  TF_DeleteStatus(status);
  return data;
}

static void forward_to(TF_OpKernelContext* context, int output_index, const int* candidates,
                       int count, const int64_t* dims, int rank) {
  int forwarded = kNothing;
  TF_Status* status = earlier_failure();
  void* inputs[] = {data_of_input(context, 0), data_of_input(context, 1)};
  TF_Tensor* made = TF_ForwardInputOrAllocateOutput(context, candidates, count, output_index, dims,
                                                    rank, &forwarded, status);
  const void* data = made ? TF_TensorData(made) : NULL;
  const char* where = !made               ? "none"
                      : data == inputs[0] ? "input 0"
                      : data == inputs[1] ? "input 1"
                                          : "new";
  record_status("TF_ForwardInputOrAllocateOutput", status, "%s; forwarded=%d memory=%s",
                described(made), forwarded, where);
  if (made) fill(made, 7);
  TF_DeleteTensor(made);
  TF_DeleteStatus(status);
}

static void forward(TF_OpKernelContext* context, const int* candidates, int count,
                    const int64_t* dims, int rank) {
  forward_to(context, 0, candidates, count, dims, rank);
}

static void forward_first(TF_OpKernelContext* context) {
  forward(context, (const int[]){0}, 1, kTwoByThree, 2);
}

static void forward_either(TF_OpKernelContext* context) {
  forward(context, (const int[]){1, 0}, 2, kTwoByThree, 2);
}

static void forward_reshaped(TF_OpKernelContext* context) {
  forward(context, (const int[]){0}, 1, (const int64_t[]){6}, 1);
}

static void forward_fewer_elements(TF_OpKernelContext* context) {
  forward(context, (const int[]){0}, 1, (const int64_t[]){5}, 1);
}

static void forward_other_type_first(TF_OpKernelContext* context) {
  forward(context, (const int[]){2, 0}, 2, kTwoByThree, 2);
}

static void forward_nothing(TF_OpKernelContext* context) {
  forward(context, NULL, 0, kTwoByThree, 2);
}

static void forward_held(TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* held = NULL;
  TF_GetInput(context, 0, &held, status);
  forward_first(context);
  TF_DeleteTensor(held);
  TF_DeleteStatus(status);
}

static void forward_without_answer(TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* made = TF_ForwardInputOrAllocateOutput(context, (const int[]){0}, 1, 0, kTwoByThree, 2,
                                                    NULL, status);
  record_status("TF_ForwardInputOrAllocateOutput NULL", status, "%s", described(made));
  if (made) fill(made, 7);
  TF_DeleteTensor(made);
  TF_DeleteStatus(status);
}

static void forward_to_other_output(TF_OpKernelContext* context) {
  forward_to(context, 1, (const int[]){0}, 1, kTwoByThree, 2);
  finish(context);
}

static void forward_to_negative_output(TF_OpKernelContext* context) {
  forward_to(context, -1, (const int[]){0}, 1, kTwoByThree, 2);
  finish(context);
}

static void forward_outside(TF_OpKernelContext* context) {
  forward(context, (const int[]){3}, 1, kTwoByThree, 2);
}

static void forward_negative(TF_OpKernelContext* context) {
  forward(context, (const int[]){-1}, 1, kTwoByThree, 2);
}

static void forward_allocated(TF_OpKernelContext* context) {
  finish(context);
  forward_first(context);
}

static const ProbeCase kCases[] = {
    {"first", forward_first},
    {"either", forward_either},
    {"reshaped", forward_reshaped},
    {"fewer elements", forward_fewer_elements},
    {"other type first", forward_other_type_first},
    {"nothing", forward_nothing},
    {"held", forward_held},
    {"without answer", forward_without_answer},
    {"other output", forward_to_other_output},
    {"negative output", forward_to_negative_output},
    {"outside", forward_outside},
    {"negative", forward_negative},
    {"allocated", forward_allocated},
    {NULL, NULL},
};

static void* create(TF_OpKernelConstruction* node) { return find_case(node, kCases); }

void register_forwarding_probe(void) {
  const char* const attrs[] = {"case: string", NULL};
  const char* const none[] = {NULL};
  const char* const inputs[] = {"a: float", "b: float", "i: int32", NULL};
  const char* const output[] = {"y: float", NULL};
  define_op("MtfProbeSource", attrs, none, output);
  register_kernel("MtfProbeSource", create_source, compute_case, NULL);
  define_op("MtfProbeForward", attrs, inputs, output);
  register_kernel("MtfProbeForward", create, compute_case, NULL);
}
