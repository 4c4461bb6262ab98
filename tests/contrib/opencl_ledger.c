/* OpenCL's functions for LD_PRELOAD: counts who takes and gives back, and fails on demand.
 *
 * OPENCL_FAIL=FUNCTION=ERROR        each call of the function fails
 * OPENCL_FAIL_LATER=FUNCTION=ERROR  each command of the function is accepted, and fails then
 * OPENCL_PCI=1                      devices tell where on the bus they are: 0001:02:03.4
 * OPENCL_LEDGER=FILE                at the end, a line "KIND TAKEN GIVEN" for each kind of object */
#pragma GCC visibility push(default)
#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include <CL/cl_ext.h>
#pragma GCC visibility pop

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { CONTEXT, QUEUE, BUFFER, EVENT, SHARED, MAPPING, KINDS };
static const char* const names[KINDS] = {"context", "queue", "buffer", "event", "shared", "mapping"};
static long taken[KINDS];
static long given[KINDS];

static void take(enum kind kind) { __atomic_add_fetch(&taken[kind], 1, __ATOMIC_RELAXED); }
static void give(enum kind kind) { __atomic_add_fetch(&given[kind], 1, __ATOMIC_RELAXED); }

__attribute__((destructor)) static void write_ledger(void) {
  const char* path = getenv("OPENCL_LEDGER");
  FILE* file = path == NULL ? NULL : fopen(path, "w");
  if (file == NULL) return;
  for (int kind = 0; kind < KINDS; ++kind) {
    fprintf(file, "%s %ld %ld\n", names[kind], taken[kind], given[kind]);
  }
  fclose(file);
}

/* The error that the variable asks for, or CL_SUCCESS. */
static cl_int wished(const char* variable, const char* function) {
  const char* wish = getenv(variable);
  const size_t length = strlen(function);
  if (wish == NULL || strncmp(wish, function, length) != 0 || wish[length] != '=') {
    return CL_SUCCESS;
  }
  return atoi(wish + length + 1);
}

static void* real(const char* name) {
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  return dlsym(library, name);
}

#define REAL(function) ((__typeof__(&function))real(#function))
#define FAIL(function) wished("OPENCL_FAIL", #function)

/* -- references -- */

#define REFERENCES(Object, handle, KIND)                   \
  cl_int clRetain##Object(handle object) {                 \
    take(KIND);                                            \
    return REAL(clRetain##Object)(object);                 \
  }                                                        \
  cl_int clRelease##Object(handle object) {                \
    give(KIND);                                            \
    return REAL(clRelease##Object)(object);                \
  }
REFERENCES(Context, cl_context, CONTEXT)
REFERENCES(CommandQueue, cl_command_queue, QUEUE)
REFERENCES(MemObject, cl_mem, BUFFER)
REFERENCES(Event, cl_event, EVENT)

/* -- what makes objects -- */

#define MAKES(KIND, function, arguments)       \
  *error = FAIL(function);                     \
  if (*error != CL_SUCCESS) return NULL;       \
  void* made = (void*)REAL(function) arguments; \
  if (made != NULL) take(KIND);                \
  return made;

cl_context clCreateContext(const cl_context_properties* properties, cl_uint count,
                           const cl_device_id* devices,
                           void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*),
                           void* data, cl_int* error) {
  MAKES(CONTEXT, clCreateContext, (properties, count, devices, notify, data, error))
}

cl_command_queue clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                    const cl_queue_properties* properties,
                                                    cl_int* error) {
  MAKES(QUEUE, clCreateCommandQueueWithProperties, (context, device, properties, error))
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void* host,
                      cl_int* error) {
  MAKES(BUFFER, clCreateBuffer, (context, flags, size, host, error))
}

cl_event clCreateUserEvent(cl_context context, cl_int* error) {
  MAKES(EVENT, clCreateUserEvent, (context, error))
}

void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                         cl_map_flags flags, size_t offset, size_t size, cl_uint count,
                         const cl_event* awaited, cl_event* event, cl_int* error) {
  MAKES(MAPPING, clEnqueueMapBuffer,
        (queue, buffer, blocking, flags, offset, size, count, awaited, event, error))
}

cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory, void* mapped, cl_uint count,
                               const cl_event* awaited, cl_event* event) {
  give(MAPPING);
  return REAL(clEnqueueUnmapMemObject)(queue, memory, mapped, count, awaited, event);
}

void* clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment) {
  if (FAIL(clSVMAlloc) != CL_SUCCESS) return NULL;
  void* made = REAL(clSVMAlloc)(context, flags, size, alignment);
  if (made != NULL) take(SHARED);
  return made;
}

void clSVMFree(cl_context context, void* memory) {
  give(SHARED);
  REAL(clSVMFree)(context, memory);
}

/* -- commands -- */

/* An event that has failed already, in place of a command's. */
static cl_int fail_later(cl_command_queue queue, cl_int with, cl_event* event) {
  cl_context context = NULL;
  cl_int error =
      REAL(clGetCommandQueueInfo)(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, NULL);
  if (error != CL_SUCCESS) return error;
  *event = REAL(clCreateUserEvent)(context, &error);
  take(EVENT);
  return REAL(clSetUserEventStatus)(*event, with);
}

#define COMMAND(function, arguments)                                   \
  const cl_int now = FAIL(function);                                   \
  if (now != CL_SUCCESS) return now;                                   \
  const cl_int later = wished("OPENCL_FAIL_LATER", #function);         \
  if (later != CL_SUCCESS) return fail_later(queue, later, event);     \
  const cl_int done = REAL(function) arguments;                        \
  if (done == CL_SUCCESS && event != NULL) take(EVENT);                \
  return done;

cl_int clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void* target,
                          const void* source, size_t size, cl_uint count, const cl_event* awaited,
                          cl_event* event) {
  COMMAND(clEnqueueSVMMemcpy, (queue, blocking, target, source, size, count, awaited, event))
}

cl_int clEnqueueSVMMemFill(cl_command_queue queue, void* target, const void* pattern,
                           size_t pattern_size, size_t size, cl_uint count,
                           const cl_event* awaited, cl_event* event) {
  COMMAND(clEnqueueSVMMemFill,
          (queue, target, pattern, pattern_size, size, count, awaited, event))
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint count, const cl_event* awaited,
                                   cl_event* event) {
  COMMAND(clEnqueueMarkerWithWaitList, (queue, count, awaited, event))
}

cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint count,
                                    const cl_event* awaited, cl_event* event) {
  COMMAND(clEnqueueBarrierWithWaitList, (queue, count, awaited, event))
}

/* -- questions and waiting -- */

#define CALL(function, arguments)                \
  const cl_int error = FAIL(function);           \
  return error != CL_SUCCESS ? error : REAL(function) arguments;

cl_int clFlush(cl_command_queue queue) { CALL(clFlush, (queue)) }

cl_int clWaitForEvents(cl_uint count, const cl_event* events) {
  CALL(clWaitForEvents, (count, events))
}

cl_int clSetEventCallback(cl_event event, cl_int status,
                          void(CL_CALLBACK* notify)(cl_event, cl_int, void*), void* data) {
  CALL(clSetEventCallback, (event, status, notify, data))
}

cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t size, void* value,
                      size_t* needed) {
  CALL(clGetEventInfo, (event, what, size, value, needed))
}

cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t size, void* value,
                               size_t* needed) {
  CALL(clGetEventProfilingInfo, (event, what, size, value, needed))
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room,
                      cl_device_id* devices, cl_uint* count) {
  CALL(clGetDeviceIDs, (platform, type, room, devices, count))
}

static cl_int answer(const void* value, size_t length, size_t room, void* target, size_t* needed) {
  if (needed != NULL) *needed = length;
  if (target != NULL && room >= length) memcpy(target, value, length);
  return CL_SUCCESS;
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size, void* value,
                       size_t* needed) {
  static const char extensions[] = "cl_khr_other cl_khr_pci_bus_info";
  static const cl_device_pci_bus_info_khr place = {1, 2, 3, 4};
  const int on_bus = getenv("OPENCL_PCI") != NULL;
  if (on_bus && what == CL_DEVICE_EXTENSIONS) {
    return answer(extensions, sizeof(extensions), size, value, needed);
  }
  if (on_bus && what == CL_DEVICE_PCI_BUS_INFO_KHR) {
    return answer(&place, sizeof(place), size, value, needed);
  }
  CALL(clGetDeviceInfo, (device, what, size, value, needed))
}
