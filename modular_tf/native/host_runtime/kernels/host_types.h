/* Values that the core and the kernels' side of the host runtime exchange. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_kernel_definition mtf_kernel_definition; /* lives as long as the process */
typedef struct mtf_kernel_node mtf_kernel_node;
typedef struct mtf_kernel_call mtf_kernel_call;
typedef struct mtf_kernel_variable mtf_kernel_variable;

/* A registered kernel. All of it lives as long as the process. */
typedef struct mtf_kernel_facts {
  const char* op;
  const char* device_type;
  const char* label;
  const char* name;
  int32_t priority;
  int32_t is_asynchronous;
  int32_t n_constraints;
  int32_t n_host_args;
  uintptr_t create;
  uintptr_t compute;
  uintptr_t delete_kernel;
} mtf_kernel_facts;

/* Where a kernel works. It outlives all that is made with it. */
typedef struct mtf_kernel_place mtf_kernel_place;
struct mtf_kernel_place {
  /* Memory on the device: its address, and what `free` gets. 0 and a message where there is none. */
  int (*allocate)(const mtf_kernel_place* place, uint64_t size, void** address, void** owner,
                  char* message, size_t message_size);
  /* `stream` is where work may be queued that uses the memory; NULL: nowhere. */
  void (*free)(const mtf_kernel_place* place, void* owner, void* stream);
  const char* device_name; /* TensorFlow's full name */
  int32_t ordinal;
  int32_t is_host;         /* 1: device memory is the host's, and there is no stream */
};

/* A tensor that goes into a call. */
typedef struct mtf_kernel_input {
  void* data;
  uint64_t size;          /* bytes */
  const int64_t* dims;
  int32_t rank;
  int32_t type;           /* TF_DataType */
  int32_t is_on_host;
  int32_t is_donated;     /* 1: the kernel may have an output in its memory */
  void* variable;         /* of a resource or reference: mtf_kernel_variable; else NULL */
  uint64_t keeper;        /* out: not 0 where the kernel keeps it, until the number is released */
} mtf_kernel_input;

/* A tensor that came out. */
typedef struct mtf_kernel_output {
  void* data;
  uint64_t size;
  const int64_t* dims;    /* until the call is freed */
  int32_t rank;
  int32_t type;
  int32_t is_on_host;
  int32_t from_input;     /* index of the input whose memory it is, else -1 */
  int32_t is_set;
  void* owner;            /* what the place's `allocate` gave, where nobody else has it: the caller's now */
  void* buffer;           /* else a hold on the memory, for `drop_buffer`; NULL for both: no memory */
} mtf_kernel_output;

/* Values of attributes, by kind; a shape of rank -1 is unknown. */
enum { MTF_ATTR_STRING = 0, MTF_ATTR_INT = 1, MTF_ATTR_FLOAT = 2, MTF_ATTR_BOOL = 3,
       MTF_ATTR_TYPE = 4, MTF_ATTR_SHAPE = 5, MTF_ATTR_TENSOR = 6, MTF_ATTR_FUNC = 8 };

#ifdef __cplusplus
}
#endif
