/* What the functions answer that registers kernels. */
#include "probe.h"

static void compute_nothing(void* kernel, TF_OpKernelContext* context) {
  record("kernel", "%s", kernel ? "an object" : "NULL");
  finish(context);
}

static void delete_nothing(void* kernel) { (void)kernel; }

static void* create_something(TF_OpKernelConstruction* construction) {
  (void)construction;
  static int object;
  return &object;
}

static void probe_type_constraints(void) {
  static const int kTypes[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,  11,  12,  13,  14,
                               15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,  28,  29,  32,  33,
                               34, 100, 101, 120, 200};
  TF_Status* status = TF_NewStatus();
  TF_KernelBuilder* builder =
      TF_NewKernelBuilder("MtfProbeNoSuchOp", "CPU", NULL, compute_nothing, NULL);
  for (size_t i = 0; i < sizeof kTypes / sizeof *kTypes; ++i) {
    TF_KernelBuilder_TypeConstraint(builder, "T", (TF_DataType)kTypes[i], status);
    record_status(text("TF_KernelBuilder_TypeConstraint type %d", kTypes[i]), status, "%s", "");
  }
  TF_Status* earlier = earlier_failure();
  TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, earlier);
  record_status("TF_KernelBuilder_TypeConstraint after a failure", earlier, "%s", "");
  TF_DeleteStatus(earlier);
  TF_DeleteKernelBuilder(builder);
  record("TF_DeleteKernelBuilder", "returned");
  TF_DeleteKernelBuilder(NULL);
  record("TF_DeleteKernelBuilder NULL", "returned");
  TF_DeleteStatus(status);
}

static void probe_register(const char* key, const char* op, const char* device, const char* attr,
                           const char* arg) {
  TF_Status* status = earlier_failure();
  TF_KernelBuilder* builder = TF_NewKernelBuilder(op, device, NULL, compute_nothing, NULL);
  if (attr) TF_KernelBuilder_TypeConstraint(builder, attr, TF_FLOAT, status);
  if (arg) TF_KernelBuilder_HostMemory(builder, arg);
  TF_RegisterKernelBuilder("MtfProbeRegistered", builder, status);
  record_status(text("TF_RegisterKernelBuilder %s", key), status, "%s", "");
  TF_DeleteStatus(status);
}

static void probe_type_sizes(void) {
  for (int type = 0; type <= 34; ++type) {
    record(text("TF_DataTypeSize %d", type), "%zu", TF_DataTypeSize((TF_DataType)type));
  }
  record("TF_DataTypeSize 101", "%zu", TF_DataTypeSize((TF_DataType)101));
  record("TF_TensorDefaultAlignment", "%zu", TF_TensorDefaultAlignment());
  record("TF_Version", "%s", TF_Version());
}

/* The functions of definitions that no other op of the probe uses. */
static void probe_definition(void) {
  TF_Status* status = earlier_failure();
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("MtfProbeDefined");
  TF_OpDefinitionBuilderAddInput(builder, "x: float");
  TF_OpDefinitionBuilderSetIsCommutative(builder, true);
  TF_OpDefinitionBuilderSetIsAggregate(builder, true);
  TF_OpDefinitionBuilderSetAllowsUninitializedInput(builder, true);
  TF_OpDefinitionBuilderDeprecated(builder, 9999, "for the probe");
  TF_RegisterOpDefinition(builder, status);
  record_status("TF_RegisterOpDefinition after a failure", status, "%s", "");
  TF_DeleteOpDefinitionBuilder(TF_NewOpDefinitionBuilder("MtfProbeNeverDefined"));
  record("TF_DeleteOpDefinitionBuilder", "returned");
  TF_DeleteStatus(status);
}

void register_registration_probe(void) {
  const char* const none[] = {NULL};
  const char* const output[] = {"y: float", NULL};
  const char* const input[] = {"x: float", NULL};
  probe_type_sizes();
  probe_type_constraints();
  probe_definition();
  probe_register("unknown op", "MtfProbeNoSuchOp", "CPU", NULL, NULL);
  probe_register("unknown device", "MtfProbeNoSuchOp", "MtfProbeNoSuchDevice", NULL, NULL);
  define_op("MtfProbeTwice", none, none, output);
  probe_register("first", "MtfProbeTwice", "CPU", NULL, NULL);
  probe_register("second of the same", "MtfProbeTwice", "CPU", NULL, NULL);
  define_op("MtfProbeUnknownAttr", none, none, output);
  probe_register("unknown attr", "MtfProbeUnknownAttr", "CPU", "Q", NULL);
  define_op("MtfProbeUnknownArg", none, input, output);
  probe_register("unknown host arg", "MtfProbeUnknownArg", "CPU", NULL, "no_such_arg");
  define_op("MtfProbeWithoutCreate", none, none, output);
  register_kernel("MtfProbeWithoutCreate", NULL, compute_nothing, delete_nothing);
  define_op("MtfProbeWithoutDelete", none, none, output);
  register_kernel("MtfProbeWithoutDelete", create_something, compute_nothing, NULL);
}
