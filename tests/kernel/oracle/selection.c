/* Which of several kernels the host selects. */
#include "probe.h"

static void compute_first(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  record("selected", "first");
  finish(context);
}
static void compute_second(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  record("selected", "second");
  finish(context);
}
static void compute_third(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  record("selected", "third");
  finish(context);
}
static void compute_default(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  record("selected", "default");
  finish(context);
}

typedef struct Offer {
  const char* device;
  ComputeKernel compute;
  int priority;
  const char* label; /* or NULL */
  struct {
    const char* attr;
    TF_DataType type;
  } constraints[3]; /* up to the first without an attribute */
} Offer;

static void offer(const char* op, Offer kernel) {
  TF_Status* status = TF_NewStatus();
  TF_KernelBuilder* builder = TF_NewKernelBuilder(op, kernel.device, NULL, kernel.compute, NULL);
  TF_KernelBuilder_Priority(builder, kernel.priority);
  if (kernel.label) TF_KernelBuilder_Label(builder, kernel.label);
  for (int i = 0; i < 3 && kernel.constraints[i].attr; ++i) {
    TF_KernelBuilder_TypeConstraint(builder, kernel.constraints[i].attr, kernel.constraints[i].type,
                                    status);
  }
  TF_RegisterKernelBuilder(text("%sKernel", op), builder, status);
  TF_DeleteStatus(status);
}

static void define(const char* op) {
  const char* const attrs[] = {"T: type = DT_FLOAT", "U: type = DT_FLOAT",
                               "L: list(type) >= 0 = []", "n: int = 1", NULL};
  const char* const none[] = {NULL};
  const char* const output[] = {"y: float", NULL};
  define_op(op, attrs, none, output);
}

static void register_priorities(void) {
  define("MtfProbePriority");
  offer("MtfProbePriority", (Offer){"CPU", compute_first, 1, NULL, {{0}}});
  offer("MtfProbePriority", (Offer){"CPU", compute_second, 5, NULL, {{0}}});
  offer("MtfProbePriority", (Offer){"CPU", compute_third, -1, NULL, {{0}}});
  offer("MtfProbePriority", (Offer){"DEFAULT", compute_default, 9, NULL, {{0}}});
  define("MtfProbeNegativePriority");
  offer("MtfProbeNegativePriority", (Offer){"CPU", compute_first, -5, NULL, {{0}}});
  offer("MtfProbeNegativePriority", (Offer){"CPU", compute_second, -2, NULL, {{0}}});
  define("MtfProbeTie");
  offer("MtfProbeTie", (Offer){"CPU", compute_first, 2, NULL, {{0}}});
  offer("MtfProbeTie", (Offer){"CPU", compute_second, 2, NULL, {{0}}});
  define("MtfProbeTieByConstraint");
  offer("MtfProbeTieByConstraint", (Offer){"CPU", compute_first, 0, NULL, {{"T", TF_FLOAT}}});
  offer("MtfProbeTieByConstraint", (Offer){"CPU", compute_second, 0, NULL, {{0}}});
}

static void register_defaults(void) {
  define("MtfProbeDefault");
  offer("MtfProbeDefault", (Offer){"DEFAULT", compute_default, 0, NULL, {{0}}});
  offer("MtfProbeDefault", (Offer){"CPU", compute_first, 0, NULL, {{"T", TF_DOUBLE}}});
  define("MtfProbeTwoDefaults");
  offer("MtfProbeTwoDefaults", (Offer){"DEFAULT", compute_first, 1, NULL, {{0}}});
  offer("MtfProbeTwoDefaults", (Offer){"DEFAULT", compute_second, 2, NULL, {{0}}});
  define("MtfProbeDefaultConstraint");
  offer("MtfProbeDefaultConstraint",
        (Offer){"DEFAULT", compute_default, 0, NULL, {{"T", TF_INT32}}});
  define("MtfProbeDefaultLabel");
  offer("MtfProbeDefaultLabel", (Offer){"DEFAULT", compute_default, 0, "fast", {{0}}});
  offer("MtfProbeDefaultLabel", (Offer){"CPU", compute_first, 0, NULL, {{0}}});
}

static void register_constraints(void) {
  define("MtfProbeConstraint");
  offer("MtfProbeConstraint", (Offer){"CPU", compute_first, 0, NULL, {{"T", TF_FLOAT}}});
  offer("MtfProbeConstraint", (Offer){"CPU", compute_second, 0, NULL, {{"T", TF_DOUBLE}}});
  offer("MtfProbeConstraint",
        (Offer){"CPU", compute_third, 0, NULL, {{"T", TF_INT32}, {"U", TF_INT64}}});
  define("MtfProbeContradiction");
  offer("MtfProbeContradiction",
        (Offer){"CPU", compute_first, 0, NULL, {{"T", TF_FLOAT}, {"T", TF_DOUBLE}}});
  define("MtfProbeSameTwice");
  offer("MtfProbeSameTwice",
        (Offer){"CPU", compute_first, 0, NULL, {{"T", TF_FLOAT}, {"T", TF_FLOAT}}});
  define("MtfProbeListConstraint");
  offer("MtfProbeListConstraint", (Offer){"CPU", compute_first, 0, NULL, {{"L", TF_FLOAT}}});
  define("MtfProbeMissingConstraint");
  offer("MtfProbeMissingConstraint", (Offer){"CPU", compute_first, 0, NULL, {{"Q", TF_FLOAT}}});
  offer("MtfProbeMissingConstraint", (Offer){"CPU", compute_second, 0, NULL, {{0}}});
  define("MtfProbeKindOfConstraint");
  offer("MtfProbeKindOfConstraint", (Offer){"CPU", compute_first, 0, NULL, {{"n", TF_FLOAT}}});
}

/* A constraint that is refused leaves the builder as it was. */
static void register_refused_constraint(void) {
  TF_Status* status = TF_NewStatus();
  define("MtfProbeRefusedConstraint");
  TF_KernelBuilder* builder =
      TF_NewKernelBuilder("MtfProbeRefusedConstraint", "CPU", NULL, compute_first, NULL);
  TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT8_E5M2, status);
  TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, status);
  TF_RegisterKernelBuilder("MtfProbeRefusedConstraintKernel", builder, status);
  TF_DeleteStatus(status);
}

static void register_keys(void) {
  define("MtfProbeLabel");
  offer("MtfProbeLabel", (Offer){"CPU", compute_first, 0, NULL, {{0}}});
  offer("MtfProbeLabel", (Offer){"CPU", compute_second, 0, "fast", {{0}}});
  define("MtfProbeLowerCase");
  offer("MtfProbeLowerCase", (Offer){"cpu", compute_first, 0, NULL, {{0}}});
  define("MtfProbeOtherDevice");
  offer("MtfProbeOtherDevice", (Offer){"MTF_PROBE", compute_first, 0, NULL, {{0}}});
  define("MtfProbeNoKernel");
  offer("MtfProbeNoDefinition", (Offer){"CPU", compute_first, 0, NULL, {{0}}});
}

void register_selection_probe(void) {
  register_priorities();
  register_defaults();
  register_constraints();
  register_refused_constraint();
  register_keys();
}
