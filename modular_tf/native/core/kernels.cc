#include "kernels.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor_arena.h"
#include "executor_call.h"
#include "fork_lock.h"
#include "kernels/host_table.h"

namespace {

std::atomic<const mtf_kernel_host*> attached{nullptr};

const mtf_kernel_host& host() { return *attached.load(std::memory_order_acquire); }

constexpr int32_t kFirstKernelRule = 1000;  // of mtf_error.rule, for KN-nnn

// What this thread's kernels gave back while their work was queued.
thread_local std::vector<mtf_memory*> deferred;

mtf::Error error_of(mtf_kernel_failure* failure) {
  if (failure->code == 0) return nullptr;
  const int32_t rule = failure->rule == 0 ? 0 : kFirstKernelRule + failure->rule;
  mtf::Error error = mtf::make_error_of(failure->code, rule, failure->message);
  std::free(failure->message);
  return error;
}

}  // namespace

struct mtf_kernel_site {
  mtf_kernel_place place = {};  // first: the host runtime knows no more
  mtf_executor* executor = nullptr;
  mtf_arena* arena = nullptr;
  std::string device_name;
  std::atomic<int> references{1};

  ~mtf_kernel_site() {
    if (arena != nullptr) mtf_arena_release(arena);
    executor->release();
  }
  void release() {
    if (references.fetch_sub(1) == 1) delete this;
  }
};

struct mtf_kernel {
  const mtf_kernel_definition* definition;
  mtf_kernel_node* node;
  mtf_kernel_site* site;
  const mtf_plugin* plugin;
  std::string subject;  // for crash reports: which kernel, and where
  void* object = nullptr;
  // Another object, for calls with inputs that have no elements. Kernels return early then, and some
  // leave their object in a state in which it computes nothing in the next call either.
  void* object_of_empty = nullptr;
  bool has_object_of_empty = false;
  mtf::Lock lock;  // of these two

  ~mtf_kernel() {
    host().free_node(node);
    site->release();
  }
};

namespace {

mtf_kernel_site* site_of(const mtf_kernel_place* place) {
  return const_cast<mtf_kernel_site*>(reinterpret_cast<const mtf_kernel_site*>(place));
}

int allocate(const mtf_kernel_place* place, uint64_t size, void** address, void** owner,
             char* message, size_t message_size) {
  mtf_kernel_site* site = site_of(place);
  const mtf::PartOfCall of_execution(site->executor);
  mtf_memory* memory = site->arena == nullptr
                           ? mtf_memory_new(site->executor, MTF_DEVICE_MEMORY, size)
                           : mtf_arena_memory_new(site->executor, site->arena, MTF_DEVICE_MEMORY, size);
  if (memory == nullptr) {
    const mtf::Error error(mtf_take_error());
    std::snprintf(message, message_size, "%s", error.message());
    return 0;
  }
  site->references.fetch_add(1);
  *address = reinterpret_cast<void*>(mtf_memory_address(memory));
  *owner = memory;
  return 1;
}

void free_memory(const mtf_kernel_place* place, void* owner) {
  mtf_kernel_site* site = site_of(place);
  auto* memory = static_cast<mtf_memory*>(owner);
  if (place->is_host == 0 && mtf::CallUnderWay::of_this_thread() != nullptr) {
    deferred.push_back(memory);  // queued work may use it
  } else {
    mtf_memory_free(memory);
  }
  site->release();
}

// Runs code of a plugin that has no status.
template <class Call>
mtf::Error call_plugin(const mtf_kernel* kernel, const char* operation, Call&& call) {
  return mtf::guarded({kernel->plugin, operation, kernel->subject.c_str()},
                      [&](TF_Status*) { call(); });
}

mtf::Error create_object(const mtf_kernel* kernel, void** object) {
  mtf_kernel_failure failure = {};
  mtf::Error error = call_plugin(kernel, "create", [&] {
    host().create(kernel->definition, kernel->node, object, &failure);
  });
  return error ? std::move(error) : error_of(&failure);
}

void delete_object(const mtf_kernel* kernel, void* object) {
  mtf::drop(call_plugin(kernel, "delete", [&] { host().delete_object(kernel->definition, object); }));
}

bool has_no_elements(const mtf_kernel_input& input) {
  return input.variable == nullptr && std::find(input.dims, input.dims + input.rank, 0) != input.dims + input.rank;
}

// The object that computes for these inputs.
mtf::Error object_for(mtf_kernel* kernel, const mtf_kernel_input* inputs, int32_t count,
                      void** object) {
  *object = kernel->object;
  if (std::none_of(inputs, inputs + count, has_no_elements)) return nullptr;
  const mtf::LockGuard guard(kernel->lock);
  if (!kernel->has_object_of_empty) {
    void* made = nullptr;
    if (mtf::Error error = create_object(kernel, &made)) {
      delete_object(kernel, made);
      return error;
    }
    kernel->object_of_empty = made;
    kernel->has_object_of_empty = true;
  }
  *object = kernel->object_of_empty;
  return nullptr;
}

// The error of a call that an exception ended: what the kernel had reported before counts more.
mtf::Error thrown_in(mtf_kernel_call* call, mtf::Error thrown) {
  mtf_kernel_failure failure = {};
  host().take_failure(call, &failure);
  mtf::Error reported = error_of(&failure);
  return reported ? std::move(reported) : std::move(thrown);
}

}  // namespace

struct mtf_kernel_result {
  // Of a value that is there without an execution.
  explicit mtf_kernel_result(mtf_kernel_site* its_site) : site(its_site), outputs(1), is_over(true) {
    its_site->references.fetch_add(1);
  }
  mtf_kernel_result(mtf_kernel* kernel, int32_t n_inputs)
      : site(kernel->site),
        use(std::in_place, kernel->site->executor),
        inputs(static_cast<size_t>(n_inputs)),
        outputs(host().count_outputs(kernel->node)) {
    site.get()->references.fetch_add(1);
  }
  ~mtf_kernel_result() {
    for (mtf_kernel_output& output : outputs) {
      if (output.owner != nullptr) mtf_memory_free(static_cast<mtf_memory*>(output.owner));
      if (output.buffer != nullptr) host().drop_buffer(output.buffer);
    }
    if (call != nullptr) host().free_call(call);
  }
  mtf::Error finish() {
    mtf_kernel_failure failure = {};
    host().finish(call, inputs.data(), outputs.data(), &failure);
    is_over = true;
    use.reset();
    return error_of(&failure);
  }

  struct Release {
    void operator()(mtf_kernel_site* site) const { site->release(); }
  };
  std::unique_ptr<mtf_kernel_site, Release> site;  // keeps the executor
  std::optional<mtf::ExecutorUse> use;  // the device stays open until the execution is over
  mtf_kernel_call* call = nullptr;
  std::vector<mtf_kernel_input> inputs;  // for what the kernel keeps of them
  std::vector<mtf_kernel_output> outputs;
  std::vector<int64_t> dims;  // of a variable's value
  bool is_over = false;
};

extern "C" {

void mtf_kernels_attach(const void* table) {
  attached.store(static_cast<const mtf_kernel_host*>(table), std::memory_order_release);
}

mtf_error* mtf_init_kernels(void* entry, const mtf_plugin* plugin) {
  const auto init = reinterpret_cast<void (*)()>(entry);
  return mtf::guarded({plugin, "TF_InitKernel"}, [&](TF_Status*) { init(); });
}

int64_t mtf_kernel_count(void) { return host().count_kernels(); }

const mtf_kernel_definition* mtf_kernel_at(int64_t index, mtf_kernel_facts* facts) {
  return host().kernel_at(index, facts);
}

const char* mtf_kernel_constraint_at(const mtf_kernel_definition* kernel, int32_t index,
                                     int32_t* type) {
  return host().constraint_at(kernel, index, type);
}

const char* mtf_kernel_host_arg_at(const mtf_kernel_definition* kernel, int32_t index) {
  return host().host_arg_at(kernel, index);
}

void* mtf_absent_function(const char* name, const char* library) {
  return host().make_absent_function(name, library);
}

int32_t mtf_op_definition_count(void) { return host().count_op_definitions(); }

const char* mtf_op_definition_at(int32_t index) { return host().op_definition_line(index); }

int64_t mtf_kernel_tensor_handles(void) {
  return attached.load() == nullptr ? 0 : host().count_handles(1);
}

mtf_kernel_node* mtf_kernel_node_new(const char* name, const char* op) {
  return host().new_node(name, op);
}

void mtf_kernel_node_free(mtf_kernel_node* node) { host().free_node(node); }

mtf_error* mtf_kernel_node_set_attr(mtf_kernel_node* node, const char* name, int32_t kind,
                                    int32_t is_list, const void* data, const int64_t* sizes,
                                    int64_t count) {
  host().set_attr(node, name, kind, is_list, data, sizes, count);
  return nullptr;
}

mtf_error* mtf_kernel_node_add_tensor_attr(mtf_kernel_node* node, const char* name, int32_t is_list,
                                           int32_t type, const int64_t* dims, int32_t rank,
                                           const void* data, uint64_t size) {
  host().add_tensor_attr(node, name, is_list, type, dims, rank, data, size);
  return nullptr;
}

mtf_error* mtf_kernel_node_add_input(mtf_kernel_node* node, const char* name, const int32_t* types,
                                     int32_t count, int32_t is_on_host) {
  host().add_input(node, name, types, count, is_on_host);
  return nullptr;
}

mtf_error* mtf_kernel_node_add_output(mtf_kernel_node* node, const char* name, const int32_t* types,
                                      int32_t count, int32_t is_on_host) {
  host().add_output(node, name, types, count, is_on_host);
  return nullptr;
}

mtf_kernel_site* mtf_kernel_site_new(mtf_executor* executor, mtf_arena* arena,
                                     const char* device_name, int32_t ordinal, int32_t is_host) {
  auto site = std::make_unique<mtf_kernel_site>();
  site->device_name = device_name;
  executor->retain();
  site->executor = executor;
  if (arena != nullptr) mtf_arena_retain(arena);
  site->arena = arena;
  site->place = {allocate, free_memory, site->device_name.c_str(), ordinal, is_host};
  return site.release();
}

void mtf_kernel_site_free(mtf_kernel_site* site) {
  if (site != nullptr) site->release();
}

mtf_kernel* mtf_kernel_new(const mtf_kernel_definition* definition, mtf_kernel_node* node,
                           mtf_kernel_site* site, const mtf_plugin* plugin, const char* subject) {
  site->references.fetch_add(1);
  std::unique_ptr<mtf_kernel> kernel(new mtf_kernel{definition, node, site, plugin, subject});
  mtf::ExecutorUse use(site->executor);
  if (!use) return mtf::fail_with(mtf::closed_executor_error(site->executor).release());
  mtf::Error error = create_object(kernel.get(), &kernel->object);
  if (!error) return kernel.release();
  mtf_kernel_free(kernel.release());
  return mtf::fail_with(error.release());
}

void mtf_kernel_free(mtf_kernel* kernel) {
  if (kernel == nullptr) return;
  if (!kernel->site->executor->is_foreign()) {  // else it is the parent's
    delete_object(kernel, kernel->object);
    if (kernel->has_object_of_empty) delete_object(kernel, kernel->object_of_empty);
  }
  delete kernel;
}

mtf_kernel_result* mtf_kernel_run(mtf_kernel* kernel, mtf_stream* stream, mtf_kernel_input* inputs,
                                  int32_t n_inputs) {
  auto result = std::make_unique<mtf_kernel_result>(kernel, n_inputs);
  if (!*result->use) {
    return mtf::fail_with(mtf::closed_executor_error(kernel->site->executor).release());
  }
  void* object = nullptr;
  if (mtf::Error error = object_for(kernel, inputs, n_inputs, &object)) {
    return mtf::fail_with(error.release());
  }
  void* handle = stream == nullptr ? nullptr : stream->handle;
  result->call = host().new_call(kernel->node, &kernel->site->place, handle, inputs, n_inputs);
  bool is_over = true;
  mtf::Error error = call_plugin(kernel, "compute", [&] {
    is_over = host().compute(kernel->definition, object, result->call);
  });
  if (error) {
    error = thrown_in(result->call, std::move(error));
  } else if (is_over) {
    error = result->finish();
  }
  if (error) return mtf::fail_with(error.release());
  return result.release();
}

const mtf_kernel_output* mtf_kernel_outputs(const mtf_kernel_result* result) {
  return result->is_over ? result->outputs.data() : nullptr;
}

int mtf_kernel_wait(mtf_kernel_result* result, uint64_t nanoseconds) {
  return host().wait(result->call, nanoseconds);
}

mtf_error* mtf_kernel_finish(mtf_kernel_result* result) { return result->finish().release(); }

mtf_memory* mtf_kernel_take_memory(mtf_kernel_result* result, int32_t output) {
  void*& owner = result->outputs[static_cast<size_t>(output)].owner;
  return static_cast<mtf_memory*>(std::exchange(owner, nullptr));
}

void* mtf_kernel_take_buffer(mtf_kernel_result* result, int32_t output) {
  return std::exchange(result->outputs[static_cast<size_t>(output)].buffer, nullptr);
}

void mtf_kernel_buffer_free(void* buffer) { host().drop_buffer(buffer); }

uint64_t mtf_kernel_keeper(const mtf_kernel_result* result, int32_t input) {
  return result->inputs[static_cast<size_t>(input)].keeper;
}

void mtf_kernel_result_free(mtf_kernel_result* result) { delete result; }

mtf_kernel_variable* mtf_kernel_variable_new(void) { return host().new_variable(); }

void mtf_kernel_variable_free(mtf_kernel_variable* variable) { host().free_variable(variable); }

mtf_error* mtf_kernel_variable_set(mtf_kernel_variable* variable, mtf_kernel_site* site,
                                   mtf_memory* memory, int32_t type, const int64_t* dims,
                                   int32_t rank) {
  void* address = nullptr;
  uint64_t size = 0;
  if (memory != nullptr) {
    address = memory->base.opaque;
    size = memory->base.size;
    site->references.fetch_add(1);  // until the memory is given back
  }
  host().set_variable(variable, &site->place, address, size, memory, type, dims, rank);
  return nullptr;
}

mtf_kernel_result* mtf_kernel_variable_read(mtf_kernel_variable* variable, mtf_kernel_site* site) {
  auto result = std::make_unique<mtf_kernel_result>(site);
  if (!host().read_variable(variable, result->outputs.data())) {
    return mtf::fail_with(mtf::make_error(9, "the variable has no value yet").release());
  }
  const mtf_kernel_output& output = result->outputs[0];
  result->dims.assign(output.dims, output.dims + output.rank);
  result->outputs[0].dims = result->dims.data();
  return result.release();
}

int32_t mtf_kernel_take_released(uint64_t* keepers, int32_t most) {
  return host().take_released(keepers, most);
}

mtf_memory* mtf_kernel_take_deferred(void) {
  if (deferred.empty()) return nullptr;
  mtf_memory* memory = deferred.back();
  deferred.pop_back();
  return memory;
}

}  // extern "C"
