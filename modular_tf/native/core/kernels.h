/* Kernels of plugins at work: registered ones, kernel objects, executions.
 *
 * The host runtime has the functions that plugins call, and what lies behind handles; here are the
 * calls into plugins. Functions that return `mtf_error*` return NULL on success. Those that return an
 * object return NULL on failure, and `mtf_take_error` on the same thread tells why. All functions may
 * run on any thread; one kernel object is used by several threads at once. */
#ifndef MODULAR_TF_CORE_KERNELS_H_
#define MODULAR_TF_CORE_KERNELS_H_

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

/* Calls TF_InitKernel, or another function without arguments, of a plugin. */
mtf_error* mtf_init_kernels(void* entry, const mtf_plugin* plugin);

/* -- what was registered in this process, in order; all of it lives as long as the process -- */

int64_t mtf_kernel_count(void);
const mtf_kernel_definition* mtf_kernel_at(int64_t index, mtf_kernel_facts* facts);
/* The name of the attribute and, in `type`, the number that it must have. */
const char* mtf_kernel_constraint_at(const mtf_kernel_definition* kernel, int32_t index,
                                     int32_t* type);
const char* mtf_kernel_host_arg_at(const mtf_kernel_definition* kernel, int32_t index);
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

/* Has a kernel compute. `stream` is NULL for sites on the host. `call` gets what `outputs` refer to; it
 * is the caller's to free. `is_over` is 0 where an asynchronous kernel goes on: then the inputs must
 * stay, and `mtf_kernel_wait` and `mtf_kernel_finish` follow. */
mtf_error* mtf_kernel_run(mtf_kernel* kernel, mtf_stream* stream, mtf_kernel_input* inputs,
                          int32_t n_inputs, mtf_kernel_output* outputs, mtf_kernel_call** call,
                          int32_t* is_over);
/* 1: the call is over; 0: the time is. */
int mtf_kernel_wait(mtf_kernel_call* call, uint64_t nanoseconds);
mtf_error* mtf_kernel_finish(mtf_kernel_call* call, mtf_kernel_input* inputs,
                             mtf_kernel_output* outputs);
void mtf_kernel_call_free(mtf_kernel_call* call);
/* Gives a hold on memory back that an output had. */
void mtf_kernel_buffer_free(void* buffer);
/* Numbers of inputs that no kernel keeps any more; at most `most`. */
int32_t mtf_kernel_take_released(uint64_t* keepers, int32_t most);
/* Memory that kernels gave back on this thread since the last question, while their queued work may use
 * it: one of them, of the caller's; NULL for no more. */
mtf_memory* mtf_kernel_take_deferred(void);

#ifdef __cplusplus
}
#endif
#endif
