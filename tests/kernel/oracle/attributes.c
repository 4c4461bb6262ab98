/* What the functions of construction answer for attributes of every kind. */
#include <string.h>

#include "probe.h"

enum { kMost = 4 }; /* elements that the getters of lists ask for */

typedef struct Question {
  TF_OpKernelConstruction* node;
  const char* attr;
  TF_Status* status;
  const char* key;
} Question;

static void get_size(const Question* ask) {
  int32_t list_size = -7;
  int32_t total_size = -7;
  TF_OpKernelConstruction_GetAttrSize(ask->node, ask->attr, &list_size, &total_size, ask->status);
  record_status(ask->key, ask->status, "list=%d total=%d", list_size, total_size);
}

static void get_type(const Question* ask) {
  TF_DataType value = (TF_DataType)77;
  TF_OpKernelConstruction_GetAttrType(ask->node, ask->attr, &value, ask->status);
  record_status(ask->key, ask->status, "%d", value);
}

static void get_int32(const Question* ask) {
  int32_t value = -7;
  TF_OpKernelConstruction_GetAttrInt32(ask->node, ask->attr, &value, ask->status);
  record_status(ask->key, ask->status, "%d", value);
}

static void get_int64(const Question* ask) {
  int64_t value = -7;
  TF_OpKernelConstruction_GetAttrInt64(ask->node, ask->attr, &value, ask->status);
  record_status(ask->key, ask->status, "%lld", (long long)value);
}

static void get_float(const Question* ask) {
  float value = -7;
  TF_OpKernelConstruction_GetAttrFloat(ask->node, ask->attr, &value, ask->status);
  record_status(ask->key, ask->status, "%g", value);
}

static void get_bool(const Question* ask) {
  unsigned char value = 77;
  TF_OpKernelConstruction_GetAttrBool(ask->node, ask->attr, &value, ask->status);
  record_status(ask->key, ask->status, "%d", value);
}

static void get_string_of(const Question* ask, size_t most) {
  char value[64];
  memset(value, '~', sizeof value);
  TF_OpKernelConstruction_GetAttrString(ask->node, ask->attr, value, most, ask->status);
  record_status(ask->key, ask->status, "%.12s", value);
}

static void get_string(const Question* ask) { get_string_of(ask, 40); }
static void get_string_cut(const Question* ask) { get_string_of(ask, 2); }
static void get_string_nothing(const Question* ask) { get_string_of(ask, 0); }

static void get_types_of(const Question* ask, int most) {
  TF_DataType is[kMost] = {77, 77, 77, 77};
  TF_OpKernelConstruction_GetAttrTypeList(ask->node, ask->attr, is, most, ask->status);
  record_status(ask->key, ask->status, "%d %d %d %d", is[0], is[1], is[2], is[3]);
}

static void get_int32s_of(const Question* ask, int most) {
  int32_t is[kMost] = {-7, -7, -7, -7};
  TF_OpKernelConstruction_GetAttrInt32List(ask->node, ask->attr, is, most, ask->status);
  record_status(ask->key, ask->status, "%d %d %d %d", is[0], is[1], is[2], is[3]);
}

static void get_int64s_of(const Question* ask, int most) {
  int64_t is[kMost] = {-7, -7, -7, -7};
  TF_OpKernelConstruction_GetAttrInt64List(ask->node, ask->attr, is, most, ask->status);
  record_status(ask->key, ask->status, "%lld %lld %lld %lld", (long long)is[0], (long long)is[1],
                (long long)is[2], (long long)is[3]);
}

static void get_floats_of(const Question* ask, int most) {
  float is[kMost] = {-7, -7, -7, -7};
  TF_OpKernelConstruction_GetAttrFloatList(ask->node, ask->attr, is, most, ask->status);
  record_status(ask->key, ask->status, "%g %g %g %g", is[0], is[1], is[2], is[3]);
}

static void get_bools_of(const Question* ask, int most) {
  unsigned char is[kMost] = {77, 77, 77, 77};
  TF_OpKernelConstruction_GetAttrBoolList(ask->node, ask->attr, is, most, ask->status);
  record_status(ask->key, ask->status, "%d %d %d %d", is[0], is[1], is[2], is[3]);
}

static void get_types(const Question* ask) { get_types_of(ask, kMost); }
static void get_int32s(const Question* ask) { get_int32s_of(ask, kMost); }
static void get_int64s(const Question* ask) { get_int64s_of(ask, kMost); }
static void get_floats(const Question* ask) { get_floats_of(ask, kMost); }
static void get_bools(const Question* ask) { get_bools_of(ask, kMost); }
static void get_types_cut(const Question* ask) { get_types_of(ask, 1); }
static void get_int32s_cut(const Question* ask) { get_int32s_of(ask, 1); }
static void get_int64s_cut(const Question* ask) { get_int64s_of(ask, 1); }
static void get_floats_cut(const Question* ask) { get_floats_of(ask, 1); }
static void get_bools_cut(const Question* ask) { get_bools_of(ask, 1); }
static void get_int64s_nothing(const Question* ask) { get_int64s_of(ask, 0); }

/* What each of the strings is, and where in the storage it lies. */
static void get_strings_of(const Question* ask, int most, size_t storage_size) {
  char storage[64];
  char* values[kMost] = {NULL, NULL, NULL, NULL};
  size_t lengths[kMost] = {7, 7, 7, 7};
  char answer[256] = "";
  memset(storage, '~', sizeof storage);
  TF_OpKernelConstruction_GetAttrStringList(ask->node, ask->attr, values, lengths, most, storage,
                                            storage_size, ask->status);
  for (int i = 0; i < kMost && values[i]; ++i) {
    const char* one = text("%.*s@%d ", (int)lengths[i], values[i], (int)(values[i] - storage));
    strncat(answer, one, sizeof answer - strlen(answer) - 1);
  }
  record_status(ask->key, ask->status, "%sstorage=%.12s", answer, storage);
}

static void get_strings(const Question* ask) { get_strings_of(ask, kMost, 40); }
static void get_strings_cut(const Question* ask) { get_strings_of(ask, 1, 40); }
static void get_strings_little_storage(const Question* ask) { get_strings_of(ask, kMost, 4); }

static void get_shape_of(const Question* ask, size_t rank) {
  int64_t dims[kMost] = {-7, -7, -7, -7};
  TF_OpKernelConstruction_GetAttrTensorShape(ask->node, ask->attr, dims, rank, ask->status);
  record_status(ask->key, ask->status, "%lld %lld %lld", (long long)dims[0], (long long)dims[1],
                (long long)dims[2]);
}

static void get_shape(const Question* ask) {
  if (TF_OpKernelConstruction_GetAttrTensorShape) get_shape_of(ask, 2);
}
static void get_shape_of_other_rank(const Question* ask) {
  if (TF_OpKernelConstruction_GetAttrTensorShape) get_shape_of(ask, 3);
}

static void get_tensor(const Question* ask) {
  TF_Tensor* value = (TF_Tensor*)ask;
  TF_OpKernelConstruction_GetAttrTensor(ask->node, ask->attr, &value, ask->status);
  const bool untouched = value == (TF_Tensor*)ask;
  record_status(ask->key, ask->status, "%s", untouched ? "untouched" : described(value));
  if (!untouched) TF_DeleteTensor(value);
}

static void get_tensors(const Question* ask) {
  TF_Tensor* values[kMost] = {NULL, NULL, NULL, NULL};
  TF_OpKernelConstruction_GetAttrTensorList(ask->node, ask->attr, values, kMost, ask->status);
  record_status(ask->key, ask->status, "%s; %s", described(values[0]), described(values[1]));
  for (int i = 0; i < kMost; ++i) TF_DeleteTensor(values[i]);
}

static void get_function(const Question* ask) {
  TF_Buffer* value = TF_OpKernelConstruction_GetAttrFunction(ask->node, ask->attr, ask->status);
  record_status(ask->key, ask->status, "%s", value ? "a buffer" : "NULL");
  TF_DeleteBuffer(value);
}

static void has_attr(const Question* ask) {
  const bool has = TF_OpKernelConstruction_HasAttr(ask->node, ask->attr, ask->status);
  record_status(ask->key, ask->status, "%d", has);
}

typedef struct Getter {
  const char* name;
  void (*ask)(const Question*);
  const char* attr; /* one that it can read */
} Getter;

static const Getter kGetters[] = {
    {"GetAttrSize", get_size, "numbers"},
    {"GetAttrType", get_type, "kind"},
    {"GetAttrInt32", get_int32, "number"},
    {"GetAttrInt64", get_int64, "number"},
    {"GetAttrFloat", get_float, "ratio"},
    {"GetAttrBool", get_bool, "flag"},
    {"GetAttrString", get_string, "word"},
    {"GetAttrTypeList", get_types, "kinds"},
    {"GetAttrInt32List", get_int32s, "numbers"},
    {"GetAttrInt64List", get_int64s, "numbers"},
    {"GetAttrFloatList", get_floats, "ratios"},
    {"GetAttrBoolList", get_bools, "flags"},
    {"GetAttrStringList", get_strings, "strings"},
    {"GetAttrTensorShape", get_shape, "form"},
    {"GetAttrTensor", get_tensor, NULL},
    {"GetAttrTensorList", get_tensors, NULL},
    {"GetAttrFunction", get_function, NULL},
    {"HasAttr", has_attr, "number"},
};

static const Getter kLimitedGetters[] = {
    {"GetAttrString of 2 bytes", get_string_cut, "word"},
    {"GetAttrString of 0 bytes", get_string_nothing, "word"},
    {"GetAttrTypeList of 1", get_types_cut, "kinds"},
    {"GetAttrInt32List of 1", get_int32s_cut, "numbers"},
    {"GetAttrInt64List of 1", get_int64s_cut, "numbers"},
    {"GetAttrInt64List of 0", get_int64s_nothing, "numbers"},
    {"GetAttrFloatList of 1", get_floats_cut, "ratios"},
    {"GetAttrBoolList of 1", get_bools_cut, "flags"},
    {"GetAttrStringList of 1", get_strings_cut, "strings"},
    {"GetAttrStringList with 4 bytes", get_strings_little_storage, "strings"},
    {"GetAttrTensorShape of other rank", get_shape_of_other_rank, "form"},
};

/* What each getter is asked for; one of its own kind comes with a status that has failed before. */
static const char* const kAttrs[] = {
    "word", "number", "big_number", "unknown_form", "strings", "numbers", "big_numbers",
    "no_numbers", "no_strings", "default_number", "default_strings", "missing"};
static const char* const kRareAttrs[] = {"tensor", "tensors", "function", "functions"};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static void ask_with(TF_OpKernelConstruction* node, const Getter* getter, const char* attr,
                     TF_Status* status, const char* when) {
  const Question ask = {node, attr, status, text("%s %s%s", getter->name, attr, when)};
  getter->ask(&ask);
  TF_DeleteStatus(status);
}

static void ask_all(TF_OpKernelConstruction* node, const char* attr) {
  for (int i = 0; i < COUNT(kGetters); ++i) {
    ask_with(node, &kGetters[i], attr, TF_NewStatus(), "");
  }
}

/* Which of them set the status, and which leave it as it was. */
static void ask_after_failures(TF_OpKernelConstruction* node) {
  for (int i = 0; i < COUNT(kGetters); ++i) {
    if (!kGetters[i].attr) continue;
    ask_with(node, &kGetters[i], kGetters[i].attr, earlier_failure(), " after a failure");
    ask_with(node, &kGetters[i], "missing", earlier_failure(), " after a failure");
  }
}

static void probe_node_definition(TF_OpKernelConstruction* node) {
  TF_Status* status = TF_NewStatus();
  TF_Buffer* definition = TF_OpKernelConstruction_GetNodeDef(node, status);
  record_status("GetNodeDef", status, "%s", definition && definition->length ? "bytes" : "none");
  TF_DeleteBuffer(definition);
  TF_DeleteStatus(status);
}

static void* create_attributes(TF_OpKernelConstruction* node) {
  for (int i = 0; i < COUNT(kAttrs); ++i) ask_all(node, kAttrs[i]);
  for (int i = 0; i < COUNT(kLimitedGetters); ++i) {
    ask_with(node, &kLimitedGetters[i], kLimitedGetters[i].attr, TF_NewStatus(), "");
  }
  ask_after_failures(node);
  TF_StringView name = TF_OpKernelConstruction_GetName(node);
  record("GetName", "%.*s", (int)name.len, name.data);
  probe_node_definition(node);
  return NULL;
}

static void* create_rare_attributes(TF_OpKernelConstruction* node) {
  for (int i = 0; i < COUNT(kRareAttrs); ++i) ask_all(node, kRareAttrs[i]);
  return NULL;
}

static void* create_inferred(TF_OpKernelConstruction* node) {
  static const char* const kInferred[] = {"T", "N", "L"};
  for (int i = 0; i < COUNT(kInferred); ++i) {
    ask_with(node, &kGetters[0], kInferred[i], TF_NewStatus(), "");
    ask_with(node, &kGetters[1], kInferred[i], TF_NewStatus(), "");
    ask_with(node, &kGetters[3], kInferred[i], TF_NewStatus(), "");
    ask_with(node, &kGetters[7], kInferred[i], TF_NewStatus(), "");
    ask_with(node, &kGetters[COUNT(kGetters) - 1], kInferred[i], TF_NewStatus(), "");
  }
  return NULL;
}

static void compute(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  finish(context);
}

static void define_attributes(void) {
  const char* const attrs[] = {"word: string",
                               "number: int",
                               "big_number: int",
                               "ratio: float",
                               "flag: bool",
                               "kind: type",
                               "form: shape",
                               "unknown_form: shape",
                               "strings: list(string)",
                               "numbers: list(int)",
                               "big_numbers: list(int)",
                               "ratios: list(float)",
                               "flags: list(bool)",
                               "kinds: list(type)",
                               "forms: list(shape)",
                               "no_numbers: list(int)",
                               "no_strings: list(string)",
                               "default_number: int = 42",
                               "default_strings: list(string) = ['a', 'bc']",
                               NULL};
  const char* const none[] = {NULL};
  const char* const output[] = {"y: float", NULL};
  define_op("MtfProbeAttributes", attrs, none, output);
  register_kernel("MtfProbeAttributes", create_attributes, compute, NULL);
}

void register_attribute_probe(void) {
  const char* const rare[] = {"tensor: tensor", "tensors: list(tensor)", "function: func",
                              "functions: list(func)", NULL};
  const char* const inferred[] = {"T: type", "N: int", "L: list(type)", NULL};
  const char* const inputs[] = {"one: T", "several: N * T", "any: L", NULL};
  const char* const none[] = {NULL};
  const char* const output[] = {"y: float", NULL};
  define_attributes();
  define_op("MtfProbeRareAttributes", rare, none, output);
  register_kernel("MtfProbeRareAttributes", create_rare_attributes, compute, NULL);
  define_op("MtfProbeInferred", inferred, inputs, output);
  register_kernel("MtfProbeInferred", create_inferred, compute, NULL);
}
