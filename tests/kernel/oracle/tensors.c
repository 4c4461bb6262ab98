/* What the functions of tensors answer; they need no kernel. */
#include <stdlib.h>
#include <string.h>

#include "probe.h"

static int deallocations;

static void count_deallocation(void* data, size_t length, void* argument) {
  (void)data;
  (void)length;
  (void)argument;
  ++deallocations;
}

static const int64_t kTwoByThree[] = {2, 3};

_Alignas(64) static char memory[256];

static void probe_new_of(const char* key, TF_DataType type, int offset, size_t length) {
  deallocations = 0;
  TF_Tensor* made = TF_NewTensor(type, kTwoByThree, 2, memory + offset, length, count_deallocation,
                                 NULL);
  const char* where = made && TF_TensorData(made) == memory + offset ? "in place" : "elsewhere";
  record(text("TF_NewTensor %s", key), "%s; %s; deallocated=%d", described(made),
         made ? where : "none", deallocations);
  TF_Tensor* moved = made ? TF_TensorMaybeMove(made) : NULL;
  if (made) record(text("TF_TensorMaybeMove of new, %s", key), "%s", moved ? "moved" : "NULL");
  TF_DeleteTensor(made);
  record(text("TF_DeleteTensor of new, %s", key), "deallocated=%d", deallocations);
}

static void probe_new(TF_OpKernelContext* context) {
  probe_new_of("aligned", TF_FLOAT, 0, 24);
  probe_new_of("unaligned by 4", TF_FLOAT, 4, 24);
  probe_new_of("aligned to 32", TF_FLOAT, 32, 24);
  probe_new_of("aligned to 8, bytes", TF_UINT8, 8, 6);
  probe_new_of("too little", TF_FLOAT, 0, 23);
  probe_new_of("too little, unaligned", TF_FLOAT, 4, 23);
  probe_new_of("too much", TF_FLOAT, 0, 64);
  probe_new_of("too much, unaligned", TF_FLOAT, 4, 64);
  probe_new_of("bfloat16", TF_BFLOAT16, 0, 12);
  probe_new_of("complex128", TF_COMPLEX128, 0, 96);
  probe_new_of("float8", TF_FLOAT8_E5M2, 0, 6);
  probe_new_of("int4", TF_INT4, 0, 6);
  finish(context);
}

static void probe_dims(TF_OpKernelContext* context) {
  const int64_t empty[] = {0, 3};
  TF_Tensor* scalar = TF_AllocateTensor(TF_FLOAT, NULL, 0, 4);
  record("TF_AllocateTensor scalar", "%s", described(scalar));
  TF_Tensor* nothing = TF_AllocateTensor(TF_FLOAT, empty, 2, 0);
  record("TF_AllocateTensor empty", "%s", described(nothing));
  TF_Tensor* none = TF_NewTensor(TF_FLOAT, empty, 2, NULL, 0, count_deallocation, NULL);
  record("TF_NewTensor empty of NULL", "%s", described(none));
  TF_Tensor* matrix = TF_AllocateTensor(TF_FLOAT, kTwoByThree, 2, 24);
  record("TF_AllocateTensor", "%s", described(matrix));
  const int64_t other[] = {6, 1, 1};
  TF_SetShape(matrix, other, 3);
  record("TF_SetShape", "%s", described(matrix));
  TF_DeleteTensor(scalar);
  TF_DeleteTensor(nothing);
  TF_DeleteTensor(none);
  TF_DeleteTensor(matrix);
  TF_DeleteTensor(NULL);
  record("TF_DeleteTensor NULL", "returned");
  finish(context);
}

static void probe_allocate_of(const char* key, TF_DataType type, size_t length) {
  TF_Tensor* made = TF_AllocateTensor(type, kTwoByThree, 2, length);
  record(text("TF_AllocateTensor %s", key), "%s", described(made));
  TF_Tensor* moved = made ? TF_TensorMaybeMove(made) : NULL;
  if (made) {
    record(text("TF_TensorMaybeMove of allocated, %s", key), "%s",
           moved == made ? "the same" : moved ? "another" : "NULL");
  }
  TF_DeleteTensor(moved ? moved : made);
}

/* The strings are the caller's to initialize. */
static void probe_allocate_strings(void) {
  TF_Tensor* made = TF_AllocateTensor(TF_STRING, kTwoByThree, 2, 6 * sizeof(TF_TString));
  for (int i = 0; i < 6; ++i) TF_StringInit((TF_TString*)TF_TensorData(made) + i);
  record("TF_AllocateTensor string", "%s", described(made));
  record("TF_TensorMaybeMove of allocated, string", "%s",
         TF_TensorMaybeMove(made) ? "moved" : "NULL");
  TF_DeleteTensor(made);
}

static void probe_allocate(TF_OpKernelContext* context) {
  probe_allocate_of("float", TF_FLOAT, 24);
  probe_allocate_of("float, too little", TF_FLOAT, 4);
  probe_allocate_of("float, too much", TF_FLOAT, 100);
  probe_allocate_of("double", TF_DOUBLE, 48);
  probe_allocate_of("bool", TF_BOOL, 6);
  probe_allocate_of("half", TF_HALF, 12);
  probe_allocate_of("qint8", TF_QINT8, 6);
  probe_allocate_strings();
  finish(context);
}

static void bitcast(const char* key, TF_DataType from_type, TF_DataType type, const int64_t* dims,
                    int count) {
  TF_Status* status = earlier_failure();
  TF_Tensor* from = TF_AllocateTensor(from_type, kTwoByThree, 2, 6 * TF_DataTypeSize(from_type));
  TF_Tensor* to = TF_AllocateTensor(TF_UINT8, NULL, 0, 1);
  TF_TensorBitcastFrom(from, type, to, dims, count, status);
  const bool shared = TF_TensorData(to) == TF_TensorData(from);
  record_status(text("TF_TensorBitcastFrom %s", key), status, "%s shared=%d", described(to),
                shared);
  record(text("TF_TensorMaybeMove after bitcast, %s", key), "%s",
         TF_TensorMaybeMove(to) ? "moved" : "NULL");
  TF_DeleteTensor(to);
  TF_DeleteTensor(from);
  TF_DeleteStatus(status);
}

static void probe_bitcast(TF_OpKernelContext* context) {
  const int64_t six[] = {6};
  const int64_t three[] = {3};
  const int64_t seven[] = {7};
  bitcast("same type", TF_FLOAT, TF_FLOAT, six, 1);
  bitcast("same size", TF_FLOAT, TF_INT32, kTwoByThree, 2);
  bitcast("larger elements", TF_FLOAT, TF_DOUBLE, three, 1);
  bitcast("other bytes", TF_FLOAT, TF_FLOAT, seven, 1);
  bitcast("other bytes of another type", TF_FLOAT, TF_DOUBLE, six, 1);
  bitcast("to string", TF_FLOAT, TF_STRING, three, 1);
  bitcast("to resource", TF_FLOAT, TF_RESOURCE, three, 1);
  bitcast("to qint8", TF_FLOAT, TF_QINT8, (const int64_t[]){24}, 1);
  finish(context);
}

static void probe_negative_dims(TF_OpKernelContext* context) {
  const int64_t dims[] = {-1};
  record("TF_AllocateTensor -1", "%s", described(TF_AllocateTensor(TF_FLOAT, dims, 1, 4)));
  finish(context);
}

static void probe_dim_outside(TF_OpKernelContext* context) {
  TF_Tensor* made = TF_AllocateTensor(TF_FLOAT, kTwoByThree, 2, 24);
  record("TF_Dim 2 of 2", "%lld", (long long)TF_Dim(made, 2));
  TF_DeleteTensor(made);
  finish(context);
}

static void probe_strings(TF_OpKernelContext* context) {
  const char* const long_text = "a text of more than twenty-two bytes";
  TF_TString string;
  TF_StringInit(&string);
  record("TF_StringInit", "size=%zu type=%d", TF_StringGetSize(&string), TF_StringGetType(&string));
  for (size_t size = 21; size <= 24; ++size) {
    TF_StringCopy(&string, long_text, size);
    record(text("TF_StringCopy %zu", size), "size=%zu type=%d capacity=%zu text=%.*s",
           TF_StringGetSize(&string), TF_StringGetType(&string), TF_StringGetCapacity(&string),
           (int)size, TF_StringGetDataPointer(&string));
  }
  TF_StringAssignView(&string, long_text, 5);
  record("TF_StringAssignView", "size=%zu type=%d same=%d", TF_StringGetSize(&string),
         TF_StringGetType(&string), TF_StringGetDataPointer(&string) == long_text);
  TF_StringDealloc(&string);
  record("TF_StringDealloc", "size=%zu type=%d", TF_StringGetSize(&string),
         TF_StringGetType(&string));
  finish(context);
}

static void probe_buffers(TF_OpKernelContext* context) {
  TF_Buffer* empty = TF_NewBuffer();
  record("TF_NewBuffer", "data=%s length=%zu deallocator=%s", empty->data ? "yes" : "NULL",
         empty->length, empty->data_deallocator ? "yes" : "NULL");
  TF_DeleteBuffer(empty);
  TF_Buffer* copy = TF_NewBufferFromString("abc", 3);
  TF_Buffer same = TF_GetBuffer(copy);
  record("TF_NewBufferFromString", "%.3s length=%zu deallocator=%s same=%d",
         (const char*)copy->data, copy->length, copy->data_deallocator ? "yes" : "NULL",
         same.data == copy->data);
  TF_DeleteBuffer(copy);
  finish(context);
}

static const ProbeCase kCases[] = {
    {"new", probe_new},           {"allocate", probe_allocate},
    {"dims", probe_dims},         {"bitcast", probe_bitcast},
    {"strings", probe_strings},   {"buffers", probe_buffers},
    {"negative", probe_negative_dims}, {"dim outside", probe_dim_outside},
    {NULL, NULL},
};

static void* create(TF_OpKernelConstruction* node) { return find_case(node, kCases); }

void register_tensor_probe(void) {
  const char* const attrs[] = {"case: string", NULL};
  const char* const none[] = {NULL};
  const char* const output[] = {"y: float", NULL};
  define_op("MtfProbeTensors", attrs, none, output);
  register_kernel("MtfProbeTensors", create, compute_case, NULL);
}
