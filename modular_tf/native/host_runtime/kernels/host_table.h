/* What the core calls of the kernels' side of the host runtime: a table of functions, since the runtime
 * is mapped late and not linked. */
#pragma once

#include <stdbool.h>

#include "host_types.h"
#include "modular_tf/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MTF_MOST_DIMENSIONS = 254 };

typedef struct mtf_kernel_failure {
  int32_t code;           /* TF_Code; 0: none */
  int32_t rule;           /* nnn of KN-nnn; 0: none */
  char* message;          /* malloc; NULL means "" */
} mtf_kernel_failure;

/* What the core has for the host runtime: calls into plugins that begin there. */
typedef struct mtf_plugin_calls {
  /* The plugin whose call this thread is in; NULL: none, or it is not known. */
  const void* (*plugin_of_this_thread)(void);
  /* Runs `body(argument)`, which throws nothing, as a call of a plugin, for crash reports. */
  void (*run)(const void* plugin, const char* operation, void (*body)(void*), void* argument);
} mtf_plugin_calls;

typedef struct mtf_kernel_host {
  size_t struct_size;
  /* Once, before all else; `calls` lives as long as the process. */
  void (*attach_calls)(const mtf_plugin_calls* calls);

  /* -- what was registered in this process, in order -- */
  int64_t (*count_kernels)(void);
  const mtf_kernel_definition* (*kernel_at)(int64_t index, mtf_kernel_facts* facts);
  const char* (*constraint_at)(const mtf_kernel_definition* kernel, int32_t index, int32_t* type);
  const char* (*host_arg_at)(const mtf_kernel_definition* kernel, int32_t index);
  int32_t (*count_op_definitions)(void);
  const char* (*op_definition_record)(int32_t index, size_t* size);
  void* (*make_absent_function)(const char* name, const char* library);
  int64_t (*count_handles)(int32_t kind);

  /* -- nodes -- */
  mtf_kernel_node* (*new_node)(const char* name, const char* op);
  void (*free_node)(mtf_kernel_node* node);
  /* `data`: int64_t for ints, types and bools; float for floats; for strings and funcs, the bytes of all.
   * `sizes`: of strings; ranks of shapes, whose sizes `data` has; ranks of tensors. */
  void (*set_attr)(mtf_kernel_node* node, const char* name, int32_t kind, int32_t is_list,
                   const void* data, const int64_t* sizes, int64_t count);
  void (*add_tensor_attr)(mtf_kernel_node* node, const char* name, int32_t is_list, int32_t type,
                          const int64_t* dims, int32_t rank, const void* data, uint64_t size);
  void (*add_input)(mtf_kernel_node* node, const char* name, const int32_t* types, int32_t count,
                    int32_t is_on_host);
  void (*add_output)(mtf_kernel_node* node, const char* name, const int32_t* types, int32_t count,
                     int32_t is_on_host);

  size_t (*count_outputs)(const mtf_kernel_node* node);

  /* -- kernels and calls; they call the plugin, and its exceptions leave them -- */
  void (*create)(const mtf_kernel_definition* kernel, const mtf_kernel_node* node, void** object,
                 mtf_kernel_failure* failure);
  void (*delete_object)(const mtf_kernel_definition* kernel, void* object);
  /* With `watches_inputs`, the call fails where the kernel writes to inputs that are only lent to it (call.cc). */
  mtf_kernel_call* (*new_call)(const mtf_kernel_node* node, const mtf_kernel_place* place,
                               void* stream, mtf_kernel_input* inputs, int32_t count,
                               bool watches_inputs);
  /* 1: the call is over; 0: an asynchronous kernel has not run `done` yet. */
  int (*compute)(const mtf_kernel_definition* kernel, void* object, mtf_kernel_call* call);
  int (*wait)(mtf_kernel_call* call, uint64_t nanoseconds);
  /* What a call that ended by an exception had said before; code 0 for nothing. */
  void (*take_failure)(mtf_kernel_call* call, mtf_kernel_failure* failure);
  /* The result of a call that is over; outputs as many as the node has. */
  void (*finish)(mtf_kernel_call* call, mtf_kernel_input* inputs, mtf_kernel_output* outputs,
                 mtf_kernel_failure* failure);
  /* The caller was interrupted, and waits no more for a call that may be under way. */
  void (*abandon)(mtf_kernel_call* call);
  void (*free_call)(mtf_kernel_call* call);
  void (*drop_buffer)(void* buffer);
  mtf_kernel_variable* (*new_variable)(void);
  void (*free_variable)(mtf_kernel_variable* variable);
  void (*set_variable)(mtf_kernel_variable* variable, const mtf_kernel_place* place, void* data,
                       uint64_t size, void* owner, int32_t type, const int64_t* dims, int32_t rank,
                       mtf_kernel_failure* failure);
  /* `dims` has room for MTF_MOST_DIMENSIONS. */
  void (*read_variable)(mtf_kernel_variable* variable, mtf_kernel_output* output, int64_t* dims,
                        mtf_kernel_failure* failure);
  /* Ends the temporary variables that kernels have left on a device. */
  void (*drop_temporaries)(const mtf_kernel_place* place);
  int32_t (*take_released)(uint64_t* keepers, int32_t most);
  /* Calls TF_InitKernel; the first misuse is given back, and all of them are logged. */
  void (*init_kernels)(void (*init)(void), mtf_kernel_failure* misuse);
} mtf_kernel_host;

/* How many functions can be told apart. */
enum { MTF_ABSENT_FUNCTIONS_MOST = 1024 };

/* The function that replaces `name` for `library`, which are copied; the same for the same two. It
 * accepts any arguments and returns 0, after it has reported that it was called: the call into the
 * plugin that is under way fails (KN-100), or the log has a line. Once there are
 * MTF_ABSENT_FUNCTIONS_MOST, further ones share a function that cannot say which it is.
 * [any thread] */
void* mtf_make_absent_function(const char* name, const char* library);

/* Looked up by name. */
extern __attribute__((visibility("default"))) const mtf_kernel_host mtf_kernel_host_table;

#ifdef __cplusplus
}
#endif
