/* Kernels that end after `compute` has returned. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "probe.h"

typedef struct Work {
  TF_OpKernelContext* context;
  TF_AsyncOpKernelDoneCallback* done;
} Work;

static void report_failure(TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, TF_DATA_LOSS, "an asynchronous failure");
  TF_OpKernelContext_Failure(context, status);
  TF_DeleteStatus(status);
}

static void* finish_late(void* argument) {
  Work work = *(Work*)argument;
  free(argument);
  usleep(20000);
  record("compute has returned", "the context is used");
  finish(work.context);
  TF_RunAsyncOpKernelDoneCallback(work.done);
  return NULL;
}

static void* fail_late(void* argument) {
  Work work = *(Work*)argument;
  free(argument);
  usleep(20000);
  report_failure(work.context);
  TF_RunAsyncOpKernelDoneCallback(work.done);
  return NULL;
}

static void start(void* (*function)(void*), Work work) {
  pthread_t thread;
  Work* copy = malloc(sizeof *copy);
  *copy = work;
  pthread_create(&thread, NULL, function, copy);
  pthread_detach(thread);
}

static void done_inside(Work work) {
  finish(work.context);
  TF_RunAsyncOpKernelDoneCallback(work.done);
}

static void done_on_thread(Work work) { start(finish_late, work); }

static void fails_inside(Work work) {
  report_failure(work.context);
  TF_RunAsyncOpKernelDoneCallback(work.done);
}

static void fails_on_thread(Work work) { start(fail_late, work); }

static void unset(Work work) { TF_RunAsyncOpKernelDoneCallback(work.done); }

typedef void (*RunWork)(Work);

static const ProbeCase kNames[] = {{"inside", NULL},
                                   {"thread", NULL},
                                   {"failure inside", NULL},
                                   {"failure on thread", NULL},
                                   {"unset", NULL},
                                   {NULL, NULL}};
static const RunWork kRuns[] = {done_inside, done_on_thread, fails_inside, fails_on_thread, unset};

static void* create(TF_OpKernelConstruction* node) { return find_case(node, kNames); }

static void compute(void* kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
  kRuns[(const ProbeCase*)kernel - kNames]((Work){context, done});
}

void register_async_probe(void) {
  const char* const attrs[] = {"case: string", NULL};
  const char* const none[] = {NULL};
  const char* const output[] = {"y: float", NULL};
  TF_Status* status = TF_NewStatus();
  define_op("MtfProbeAsync", attrs, none, output);
  TF_KernelBuilder* builder =
      TF_NewAsyncKernelBuilder("MtfProbeAsync", "CPU", create, compute, NULL);
  TF_RegisterKernelBuilder("MtfProbeAsyncKernel", builder, status);
  TF_DeleteStatus(status);
}
