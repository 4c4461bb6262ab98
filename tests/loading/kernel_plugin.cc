// A plugin that registers kernels, and misbehaves as macros say.

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <stdexcept>

#include "modular_tf/kernels.h"
#include "modular_tf/ops.h"

#ifndef INIT
#define INIT TF_InitKernel
#endif
#ifndef DEVICE_TYPE
#define DEVICE_TYPE "CPU"
#endif

[[maybe_unused]] static void compute(void*, TF_OpKernelContext*) {}

[[maybe_unused]] static void register_kernel(const char* name, int32_t priority) {
  TF_KernelBuilder* builder =
      TF_NewKernelBuilder("FixtureOp", DEVICE_TYPE, nullptr, &compute, nullptr);
  TF_Status* status = TF_NewStatus();
  TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, status);
  TF_KernelBuilder_HostMemory(builder, "x");
  TF_KernelBuilder_Priority(builder, priority);
  TF_RegisterKernelBuilder(name, builder, status);
  TF_DeleteStatus(status);
}

[[maybe_unused]] static void register_op() {
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("FixtureOp");
  TF_OpDefinitionBuilderAddAttr(builder, "T: {float, int32}");
  TF_OpDefinitionBuilderAddInput(builder, "x: T");
  TF_OpDefinitionBuilderAddOutput(builder, "y: T");
  TF_Status* status = TF_NewStatus();
  TF_RegisterOpDefinition(builder, status);
  TF_DeleteStatus(status);
}

#ifdef IN_CONSTRUCTOR
__attribute__((constructor)) static void register_at_once() {
  register_op();
  register_kernel("Early", 1);
}
#endif

extern "C" __attribute__((visibility("default"))) void INIT() {
  static int calls = 0;
  if (++calls > 1) abort();
#if defined(THROWS)
  register_kernel("BeforeTheThrow", 1);
  throw std::runtime_error("no kernels today");
#elif defined(EXITS)
  exit(3);
#elif defined(CRASHES)
  *(volatile int*)nullptr = 1;
#elif defined(HANGS)
  for (;;) pause();
#elif defined(PYTHON_EXITS)
  auto run = (int (*)(const char*))dlsym(RTLD_DEFAULT, "PyRun_SimpleString");
  auto ensure = (int (*)())dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
  auto release = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
  int state = ensure();
  run("try:\n    raise SystemExit(7)\nexcept SystemExit:\n    pass");
  release(state);
#endif
#if defined(PRINTS)
  puts("printed by TF_InitKernel");
  fflush(stdout);
#endif
#if !defined(NOTHING) && !defined(IN_CONSTRUCTOR)
  register_op();
  register_kernel("First", 1);
  register_kernel("Second", 2);
#endif
#if defined(TWICE)
  register_kernel("Second", 2);
#endif
}
