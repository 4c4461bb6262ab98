#include "kernel_host.h"

#include <atomic>
#include <cstdlib>
#include <utility>

#include "executor_call.h"
#include "kernel_site.h"
#include "kernels.h"

using mtf::Error;
using mtf::error_of;
using mtf::guarded;
using mtf::kernel_host;

namespace {

std::atomic<const mtf_kernel_host*> attached{nullptr};

const void* plugin_of_this_thread() {
  const mtf::CallUnderWay* const call = mtf::CallUnderWay::of_this_thread();
  return call == nullptr ? nullptr : call->plugin;
}

void run_as_call(const void* plugin, const char* operation, void (*body)(void*), void* argument) {
  const mtf::CallUnderWay under_way(static_cast<const mtf_plugin*>(plugin), operation);
  body(argument);
}

constexpr mtf_plugin_calls kPluginCalls = {plugin_of_this_thread, run_as_call};

constexpr int32_t kFirstKernelRule = 1000;  // of mtf_error.rule, for KN-nnn

}  // namespace

const mtf_kernel_host& mtf::kernel_host() { return *attached.load(std::memory_order_acquire); }

Error mtf::error_of(mtf_kernel_failure* failure) {
  if (failure->code == TF_OK) return nullptr;
  const int32_t rule = failure->rule == 0 ? 0 : kFirstKernelRule + failure->rule;
  Error error = make_error_of(failure->code, rule, failure->message);
  std::free(failure->message);
  return error;
}

void mtf::drop_temporaries_of(const mtf_kernel_site* site) {
  if (attached.load() != nullptr) kernel_host().drop_temporaries(&site->place);
}

extern "C" {

void mtf_kernels_attach(const void* table) {
  static_cast<const mtf_kernel_host*>(table)->attach_calls(&kPluginCalls);
  attached.store(static_cast<const mtf_kernel_host*>(table), std::memory_order_release);
}

mtf_error* mtf_init_kernels(void* entry, const mtf_plugin* plugin) {
  const auto init = reinterpret_cast<void (*)()>(entry);
  mtf_kernel_failure misuse = {};
  Error error = guarded({plugin, "TF_InitKernel"}, [&](TF_Status*) {
    kernel_host().init_kernels(init, &misuse);
  });
  Error misused = error_of(&misuse);
  return (error ? std::move(error) : std::move(misused)).release();
}

int64_t mtf_kernel_count(void) { return kernel_host().count_kernels(); }

const mtf_kernel_definition* mtf_kernel_at(int64_t index, mtf_kernel_facts* facts) {
  return kernel_host().kernel_at(index, facts);
}

const char* mtf_kernel_constraint_at(const mtf_kernel_definition* kernel, int32_t index,
                                     int32_t* type) {
  return kernel_host().constraint_at(kernel, index, type);
}

const char* mtf_kernel_host_arg_at(const mtf_kernel_definition* kernel, int32_t index) {
  return kernel_host().host_arg_at(kernel, index);
}

void* mtf_absent_function(const char* name, const char* library) {
  return kernel_host().make_absent_function(name, library);
}

int32_t mtf_op_definition_count(void) { return kernel_host().count_op_definitions(); }

const char* mtf_op_definition_at(int32_t index) { return kernel_host().op_definition_line(index); }

int64_t mtf_kernel_tensor_handles(void) {
  return attached.load() == nullptr ? 0 : kernel_host().count_handles(1);
}

mtf_kernel_node* mtf_kernel_node_new(const char* name, const char* op) {
  return kernel_host().new_node(name, op);
}

void mtf_kernel_node_free(mtf_kernel_node* node) { kernel_host().free_node(node); }

mtf_error* mtf_kernel_node_set_attr(mtf_kernel_node* node, const char* name, int32_t kind,
                                    int32_t is_list, const void* data, const int64_t* sizes,
                                    int64_t count) {
  kernel_host().set_attr(node, name, kind, is_list, data, sizes, count);
  return nullptr;
}

mtf_error* mtf_kernel_node_add_tensor_attr(mtf_kernel_node* node, const char* name, int32_t is_list,
                                           int32_t type, const int64_t* dims, int32_t rank,
                                           const void* data, uint64_t size) {
  kernel_host().add_tensor_attr(node, name, is_list, type, dims, rank, data, size);
  return nullptr;
}

mtf_error* mtf_kernel_node_add_input(mtf_kernel_node* node, const char* name, const int32_t* types,
                                     int32_t count, int32_t is_on_host) {
  kernel_host().add_input(node, name, types, count, is_on_host);
  return nullptr;
}

mtf_error* mtf_kernel_node_add_output(mtf_kernel_node* node, const char* name, const int32_t* types,
                                      int32_t count, int32_t is_on_host) {
  kernel_host().add_output(node, name, types, count, is_on_host);
  return nullptr;
}

}  // extern "C"
