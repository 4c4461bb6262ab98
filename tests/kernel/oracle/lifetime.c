/* How many kernel objects the host makes, and what becomes of them. */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "probe.h"

static int created;

static void* create(TF_OpKernelConstruction* node) {
  (void)node;
  return (void*)(intptr_t)__atomic_add_fetch(&created, 1, __ATOMIC_SEQ_CST);
}

static void compute(void* kernel, TF_OpKernelContext* context) {
  record("kernel object", "%d", (int)(intptr_t)kernel);
  finish(context);
}

static void delete_kernel(void* kernel) {
  record(text("deleted kernel object %d", (int)(intptr_t)kernel), "once");
}

/* -- construction that fails -- */

static void fail(TF_OpKernelConstruction* node, TF_Code code, const char* message) {
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, code, message);
  TF_OpKernelConstruction_Failure(node, status);
  TF_DeleteStatus(status);
}

static void* create_and_fail(TF_OpKernelConstruction* node) {
  static int object;
  fail(node, TF_DATA_LOSS, "the first failure of create");
  fail(node, TF_INTERNAL, "the second failure of create");
  fail(node, TF_OK, "");
  record("create", "failed and returned an object");
  return &object;
}

static void* create_and_fail_with_ok(TF_OpKernelConstruction* node) {
  fail(node, TF_OK, "");
  return NULL;
}

static void compute_nothing(void* kernel, TF_OpKernelContext* context) {
  record("compute", "%s", kernel ? "an object" : "NULL");
  finish(context);
}

static void delete_failed(void* kernel) {
  record("delete", "%s", kernel ? "an object" : "NULL");
}

/* -- one object in two threads -- */

static int running;
static int most;

static void compute_together(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  const int now = __atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 400 && __atomic_load_n(&running, __ATOMIC_SEQ_CST) < 2; ++i) usleep(5000);
  if (now > most) most = now;
  usleep(20000);
  if (now == 2) record("computations at once", "%d", most);
  finish(context);
}

void register_lifetime_probe(void) {
  const char* const attrs[] = {"T: type", "number: int = 1", NULL};
  const char* const none[] = {NULL};
  const char* const input[] = {"x: T", NULL};
  const char* const output[] = {"y: float", NULL};
  define_op("MtfProbeObject", attrs, input, output);
  register_kernel("MtfProbeObject", create, compute, delete_kernel);
  define_op("MtfProbeFailingCreate", none, none, output);
  register_kernel("MtfProbeFailingCreate", create_and_fail, compute_nothing, delete_failed);
  define_op("MtfProbeFailingCreateWithOk", none, none, output);
  register_kernel("MtfProbeFailingCreateWithOk", create_and_fail_with_ok, compute_nothing,
                  delete_failed);
  define_op("MtfProbeTogether", none, none, output);
  register_kernel("MtfProbeTogether", NULL, compute_together, NULL);
}
