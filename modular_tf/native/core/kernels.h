/* Kernels of plugins at work: registered ones, kernel objects, executions.
 *
 * The host runtime has the functions that plugins call, and what lies behind handles; here are the
 * calls into plugins. Functions that return `mtf_error*` return NULL on success. Those that return an
 * object return NULL on failure, and `mtf_take_error` on the same thread tells why. All functions may
 * run on any thread; one kernel object is used by several threads at once. */
#pragma once

#include "arena.h"
#include "error.h"
#include "executor.h"
#include "plugin_call.h"
#include "host_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Has the functions here use a table of the host runtime, whose address this is. [before all other use] */
void mtf_kernels_attach(const void* table);

/* Calls TF_InitKernel, or another function without arguments, of a plugin. An error with a rule KN-nnn is
 * the first misuse of the host by a function that has returned. */
mtf_error* mtf_init_kernels(void* entry, const mtf_plugin* plugin);

/* The function that replaces `name`, which the host runtime does not offer, for the plugin `library`
 * (host_table.h). */
void* mtf_absent_function(const char* name, const char* library);

/* -- what was registered in this process, in order; all of it lives as long as the process -- */

int64_t mtf_kernel_count(void);
const mtf_kernel_definition* mtf_kernel_at(int64_t index, mtf_kernel_facts* facts);
/* The name of the attribute and, in `type`, the number that it must have. */
const char* mtf_kernel_constraint_at(const mtf_kernel_definition* kernel, int32_t index,
                                     int32_t* type);
const char* mtf_kernel_host_arg_at(const mtf_kernel_definition* kernel, int32_t index);
/* Definitions of operations, each as a record (`modular_tf.kernel.op_grammar`); NULL past the last. */
int32_t mtf_op_definition_count(void);
const char* mtf_op_definition_at(int32_t index, size_t* size);
/* How many handles of tensors plugins have in this process now. */
int64_t mtf_kernel_tensor_handles(void);

/* -- nodes: see host_table.h -- */

mtf_kernel_node* mtf_kernel_node_new(const char* name, const char* op);
void mtf_kernel_node_free(mtf_kernel_node* node);
mtf_error* mtf_kernel_node_set_attr(mtf_kernel_node* node, const char* name, int32_t kind,
                                    int32_t is_list, const void* data, const int64_t* sizes,
                                    int64_t count);
mtf_error* mtf_kernel_node_add_tensor_attr(mtf_kernel_node* node, const char* name, int32_t is_list,
                                           int32_t type, const int64_t* dims, int32_t rank,
                                           const void* data, uint64_t size);
mtf_error* mtf_kernel_node_add_input(mtf_kernel_node* node, const char* name, const int32_t* types,
                                     int32_t count, int32_t is_on_host);
mtf_error* mtf_kernel_node_add_output(mtf_kernel_node* node, const char* name, const int32_t* types,
                                      int32_t count, int32_t is_on_host);

/* -- kernel objects -- */

/* Where kernels work: a device. It keeps the executor and the arena, which may be NULL. `device_name` is
 * TensorFlow's full name and is copied; `is_host` says that device memory is the host's. */
typedef struct mtf_kernel_site mtf_kernel_site;
mtf_kernel_site* mtf_kernel_site_new(mtf_executor* executor, mtf_arena* arena,
                                     const char* device_name, int32_t ordinal, int32_t is_host);
void mtf_kernel_site_free(mtf_kernel_site* site);

/* Calls `create`. The kernel takes the node over, also on failure, and keeps the site. `subject`, which is
 * copied, says for crash reports which kernel it is and where. */
typedef struct mtf_kernel mtf_kernel;
mtf_kernel* mtf_kernel_new(const mtf_kernel_definition* definition, mtf_kernel_node* node,
                           mtf_kernel_site* site, const mtf_plugin* plugin, const char* subject);
/* Calls `delete`; no call of it may be under way. */
void mtf_kernel_free(mtf_kernel* kernel);

/* -- executions -- */

/* What came of an execution: outputs, and what they refer to. It keeps what nobody has taken. */
typedef struct mtf_kernel_result mtf_kernel_result;

/* Has a kernel compute; the caller owns the result. `stream` is NULL for sites on the host. While an
 * asynchronous kernel goes on, the result has no outputs, and the memory of the inputs must stay. Until a
 * call of the kernel has succeeded, one that wrote to inputs in host memory which were not donated fails
 * (KN-093). */
mtf_kernel_result* mtf_kernel_run(mtf_kernel* kernel, mtf_stream* stream, mtf_kernel_input* inputs,
                                  int32_t n_inputs);
/* After a failure of mtf_kernel_run on this thread: the result, the caller's, where the kernel keeps
 * inputs (mtf_kernel_keeper); else NULL. */
mtf_kernel_result* mtf_kernel_take_failed(void);
/* All outputs; NULL while the execution goes on. */
const mtf_kernel_output* mtf_kernel_outputs(const mtf_kernel_result* result);
/* Waits for an execution that goes on: 1 when it is over, 0 when the time is. */
int mtf_kernel_wait(mtf_kernel_result* result, uint64_t nanoseconds);
/* Makes the outputs of an execution that was waited for. */
mtf_error* mtf_kernel_finish(mtf_kernel_result* result);
/* The device memory of an output, the caller's from now on. */
mtf_memory* mtf_kernel_take_memory(mtf_kernel_result* result, int32_t output);
/* A hold on the memory of an output, the caller's from now on, for mtf_kernel_buffer_free. */
void* mtf_kernel_take_buffer(mtf_kernel_result* result, int32_t output);
void mtf_kernel_buffer_free(void* buffer);
/* Not 0 where the kernel keeps an input: until this number is released. */
uint64_t mtf_kernel_keeper(const mtf_kernel_result* result, int32_t input);
/* Frees what was not taken. An execution that goes on keeps its own part, not the inputs. */
void mtf_kernel_result_free(mtf_kernel_result* result);
/* -- variables: tensors that outlive executions, which inputs of type resource or reference name -- */

mtf_kernel_variable* mtf_kernel_variable_new(void);
void mtf_kernel_variable_free(mtf_kernel_variable* variable);
/* Gives it a value in device memory, which it takes over also on failure; NULL for no elements. */
mtf_error* mtf_kernel_variable_set(mtf_kernel_variable* variable, mtf_kernel_site* site,
                                   mtf_memory* memory, int32_t type, const int64_t* dims,
                                   int32_t rank);
/* The value as a result with one output; NULL and FAILED_PRECONDITION where it has none. */
mtf_kernel_result* mtf_kernel_variable_read(mtf_kernel_variable* variable, mtf_kernel_site* site);

/* Numbers of inputs that no kernel keeps any more; at most `most`. */
int32_t mtf_kernel_take_released(uint64_t* keepers, int32_t most);
/* Memory that kernels gave back since the last question, while their queued work may use it: one of them,
 * of the caller's; NULL for no more. Kernels gave it back on this thread, or on threads of their own after
 * work on the stream. */
mtf_memory* mtf_kernel_take_deferred(mtf_kernel_site* site, const mtf_stream* stream);

#ifdef __cplusplus
}
#endif
