#include "kernels.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor.h"
#include "executor_state.h"
#include "fork_lock.h"
#include "kernels/host_table.h"

using mtf::Error;
using mtf::guarded;

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

// The attached table of the host runtime, which has the functions that kernels call; there is one before
// all other use.
const mtf_kernel_host& kernel_host() { return *attached.load(std::memory_order_acquire); }

// The error that the host runtime reports, whose message is freed here; none where it reports none.
mtf::Error error_of(mtf_kernel_failure* failure) {
  if (failure->code == TF_OK) return nullptr;
  const int32_t rule = failure->rule == 0 ? 0 : kFirstKernelRule + failure->rule;
  mtf::Error error = mtf::make_error_of(failure->code, rule, failure->message);
  std::free(failure->message);
  return error;
}

}  // namespace

// Where kernels work, and when the memory that they give back is freed.
struct mtf_kernel_site {
  mtf_kernel_place place = {};  // first: the host runtime knows no more
  mtf_executor* executor = nullptr;
  mtf_arena* arena = nullptr;
  std::string device_name;
  std::atomic<int> references{1};
  mtf::Lock lock;  // of what follows
  mtf_memory* deferred = nullptr;  // given back by threads of plugins, as asynchronous kernels have

  ~mtf_kernel_site() {
    while (deferred != nullptr) mtf_memory_free(std::exchange(deferred, deferred->next_deferred));
    if (arena != nullptr) mtf_arena_release(arena);
    if (executor != nullptr) executor->release();
  }
  mtf_kernel_site* retain() {
    references.fetch_add(1);
    return this;
  }
  void release() {
    if (references.fetch_sub(1) == 1) delete this;
  }
};

// Held by its owner and by executions. One that is freed before it is over holds it for ever: the plugin
// may be using the object, the node and the site.
struct mtf_kernel {
  // What `create` has made.
  struct Object {
    void* pointer = nullptr;
    // Whether a call of it has succeeded, and left the inputs as they were: later ones are not watched.
    std::atomic<bool> leaves_inputs{false};
  };

  mtf_kernel(const mtf_kernel_definition* its_definition, mtf_kernel_node* its_node,
             mtf_kernel_site* its_site, const mtf_plugin* its_plugin, const char* its_subject)
      : definition(its_definition), node(its_node), site(its_site), plugin(its_plugin),
        subject(its_subject) {}

  const mtf_kernel_definition* definition;
  mtf_kernel_node* node;
  mtf_kernel_site* site;
  const mtf_plugin* plugin;
  std::string subject;  // for crash reports: which kernel, and where
  Object object;
  // Another object, for calls with inputs that have no elements. Kernels return early then, and some
  // leave their object in a state in which it computes nothing in the next call either.
  Object object_of_empty;
  bool has_object_of_empty = false;
  mtf::Lock lock;  // of these two
  std::atomic<int> references{1};

  ~mtf_kernel() {
    kernel_host().free_node(node);
    site->release();
  }
};

namespace {

// -- memory for kernels --

// What this thread's kernels gave back while they queued work. A list through the memory itself: there
// may be no memory for another one.
struct Deferred {
  bool is_queueing;
  mtf_memory* first;
};
thread_local Deferred deferred = {false, nullptr};

// For as long as this thread may queue work of a kernel on a stream.
class Queueing {
 public:
  explicit Queueing(bool has_stream) : outer_(std::exchange(deferred.is_queueing, has_stream)) {}
  ~Queueing() { deferred.is_queueing = outer_; }
  Queueing(const Queueing&) = delete;
  Queueing& operator=(const Queueing&) = delete;

 private:
  const bool outer_;
};

// Frees memory; while this thread queues work, which may use it, it is kept for mtf_kernel_take_deferred.
void free_after_queueing(mtf_memory* memory) {
  if (!deferred.is_queueing) return mtf_memory_free(memory);
  memory->next_deferred = std::exchange(deferred.first, memory);
}

mtf_kernel_site* site_of(const mtf_kernel_place* place) {
  return const_cast<mtf_kernel_site*>(reinterpret_cast<const mtf_kernel_site*>(place));
}

int allocate(const mtf_kernel_place* place, uint64_t size, void** address, void** owner,
             char* message, size_t message_size) {
  mtf_kernel_site* site = site_of(place);
  const mtf::NestedCall of_execution(site->executor);
  mtf_memory* memory = site->arena == nullptr
                           ? mtf_memory_new(site->executor, MTF_DEVICE_MEMORY, size)
                           : mtf_arena_memory_new(site->executor, site->arena, MTF_DEVICE_MEMORY, size);
  if (memory == nullptr) {
    const mtf::Error error(mtf_take_error());
    std::snprintf(message, message_size, "%s", error.message());
    return 0;
  }
  site->retain();
  *address = reinterpret_cast<void*>(mtf_memory_address(memory));
  *owner = memory;
  return 1;
}

void free_memory(const mtf_kernel_place* place, void* owner, void* stream) {
  mtf_kernel_site* site = site_of(place);
  auto* memory = static_cast<mtf_memory*>(owner);
  if (deferred.is_queueing || stream == nullptr) {
    free_after_queueing(memory);
  } else {
    const mtf::LockGuard guard(site->lock);
    memory->deferred_stream = stream;
    memory->next_deferred = std::exchange(site->deferred, memory);
  }
  site->release();
}

// Takes one of those from the site that the stream's queued work may use; NULL for no more.
mtf_memory* take_deferred_of(mtf_kernel_site* site, const void* stream) {
  const mtf::LockGuard guard(site->lock);
  for (mtf_memory** link = &site->deferred; *link != nullptr; link = &(*link)->next_deferred) {
    if ((*link)->deferred_stream != stream) continue;
    return std::exchange(*link, (*link)->next_deferred);
  }
  return nullptr;
}

// -- kernel objects and executions --

// Runs code of a plugin that has no status.
template <class Call>
mtf::Error call_plugin(const mtf_kernel* kernel, const char* operation, Call&& call) {
  return mtf::guarded({kernel->plugin, operation, kernel->subject.c_str()},
                      [&](TF_Status*) { call(); });
}

mtf::Error create_object(const mtf_kernel* kernel, void** object) {
  mtf_kernel_failure failure = {};
  mtf::Error error = call_plugin(kernel, "create", [&] {
    kernel_host().create(kernel->definition, kernel->node, object, &failure);
  });
  return error ? std::move(error) : error_of(&failure);
}

void delete_object(const mtf_kernel* kernel, void* object) {
  mtf::drop(call_plugin(kernel, "delete", [&] { kernel_host().delete_object(kernel->definition, object); }));
}

void release_kernel(mtf_kernel* kernel) {
  if (kernel->references.fetch_sub(1) != 1) return;
  if (!kernel->site->executor->is_foreign()) {  // else it is the parent's
    delete_object(kernel, kernel->object.pointer);
    if (kernel->has_object_of_empty) delete_object(kernel, kernel->object_of_empty.pointer);
  }
  delete kernel;
}

bool has_no_elements(const mtf_kernel_input& input) {
  const int64_t* const end = input.dims + input.rank;
  return input.variable == nullptr && std::find(input.dims, end, 0) != end;
}

// The object that computes for these inputs.
mtf::Error object_for(mtf_kernel* kernel, const mtf_kernel_input* inputs, int32_t count,
                      mtf_kernel::Object** object) {
  *object = &kernel->object;
  if (std::none_of(inputs, inputs + count, has_no_elements)) return nullptr;
  const mtf::LockGuard guard(kernel->lock);
  if (!kernel->has_object_of_empty) {
    void* made = nullptr;
    if (mtf::Error error = create_object(kernel, &made)) {
      delete_object(kernel, made);
      return error;
    }
    kernel->object_of_empty.pointer = made;
    kernel->has_object_of_empty = true;
  }
  *object = &kernel->object_of_empty;
  return nullptr;
}

}  // namespace

struct mtf_kernel_result {
  // Of a value that is there without an execution.
  explicit mtf_kernel_result(mtf_kernel_site* its_site)
      : site(its_site->retain()), outputs(1), is_over(true) {}
  mtf_kernel_result(mtf_kernel* its_kernel, const mtf_kernel_input* its_inputs, int32_t n_inputs)
      : site(its_kernel->site->retain()),
        use(std::in_place, its_kernel->site->executor),
        inputs(its_inputs, its_inputs + n_inputs),
        outputs(kernel_host().count_outputs(its_kernel->node)),
        kernel(its_kernel) {
    kernel->references.fetch_add(1);
  }
  ~mtf_kernel_result() {
    for (mtf_kernel_output& output : outputs) {
      if (output.owner != nullptr) free_after_queueing(static_cast<mtf_memory*>(output.owner));
      if (output.buffer != nullptr) kernel_host().drop_buffer(output.buffer);
    }
    if (call != nullptr) kernel_host().free_call(call);
    if (kernel != nullptr && (is_over || call == nullptr)) release_kernel(kernel);
  }
  mtf::Error finish() {
    mtf_kernel_failure failure = {};
    kernel_host().finish(call, inputs.data(), outputs.data(), &failure);
    mtf::Error error = error_of(&failure);
    if (!error && site->place.is_host) error = copy_kept_inputs();
    for (const mtf_kernel_output& output : outputs) {
      if (output.owner != nullptr) site->release();  // which memory needs that plugins have
    }
    if (!error && object != nullptr && !object->leaves_inputs) object->leaves_inputs = true;
    is_over = true;
    use.reset();
    return error;
  }
  // Outputs that are inputs become copies: arrays that callers have do not change by themselves.
  mtf::Error copy_kept_inputs() {
    for (mtf_kernel_output& output : outputs) {
      const int32_t from = output.from_input;
      if (from < 0 || inputs[static_cast<size_t>(from)].is_donated) continue;
      char why[256] = "";
      void* copy = nullptr;
      const mtf_kernel_place* place = &site->place;
      if (!place->allocate(place, output.size, &copy, &output.owner, why, sizeof why)) {
        return mtf::make_error(TF_RESOURCE_EXHAUSTED, why);
      }
      output.data = std::memcpy(copy, output.data, output.size);
      output.from_input = -1;
    }
    return nullptr;
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
  mtf_kernel* kernel = nullptr;
  mtf_kernel::Object* object = nullptr;  // of the kernel
  bool is_over = false;
  mtf_kernel_result* next = nullptr;  // of those that were given up
};

namespace {

// Executions that nobody waits for and that were not over when they were given up. What they use stays.
struct Abandoned {
  mtf::Lock lock;
  mtf_kernel_result* first = nullptr;
};

Abandoned& abandoned() {
  static auto* const made = new Abandoned;  // never destroyed: plugins' threads outlive destructors
  return *made;
}

bool is_done(mtf_kernel_result* result) { return kernel_host().wait(result->call, 0) != 0; }

// Takes one that is over; NULL for none. `left` counts those of an executor that are not.
mtf_kernel_result* take_done(const mtf_executor* executor, int64_t* left) {
  const mtf::LockGuard guard(abandoned().lock);
  *left = 0;
  for (mtf_kernel_result** link = &abandoned().first; *link != nullptr; link = &(*link)->next) {
    mtf_kernel_result* const result = *link;
    if (result->site->executor->is_foreign()) continue;  // it goes on in the parent
    if (is_done(result)) {
      *link = result->next;
      return result;
    }
    if (result->site->executor == executor) ++*left;
  }
  return nullptr;
}

// The last result of this thread whose kernel failed and keeps inputs, for who lent them.
thread_local mtf_kernel_result* failed = nullptr;

// The error of a call that an exception ended: what the kernel had reported before counts more.
mtf::Error thrown_in(mtf_kernel_result* result, mtf::Error thrown) {
  mtf_kernel_failure failure = {};
  kernel_host().take_failure(result->call, &failure);
  mtf::Error reported = error_of(&failure);
  mtf::drop(result->finish());  // nobody gets the outputs; the kernel may keep inputs
  return reported ? std::move(reported) : std::move(thrown);
}

void keep_failed(std::unique_ptr<mtf_kernel_result> result) {
  const bool is_needed = std::any_of(result->inputs.begin(), result->inputs.end(),
                                     [](const mtf_kernel_input& input) { return input.keeper != 0; });
  if (is_needed) delete std::exchange(failed, result.release());
}

}  // namespace

int64_t mtf::end_abandoned_executions(const mtf_executor* executor) {
  int64_t left = 0;
  while (mtf_kernel_result* result = take_done(executor, &left)) {
    mtf::drop(result->finish());  // nobody gets the outputs
    delete result;
  }
  return left;
}

extern "C" {

// -- the host runtime's part --

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

const char* mtf_op_definition_at(int32_t index, size_t* size) {
  return kernel_host().op_definition_record(index, size);
}

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

// -- sites --

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
  if (site == nullptr) return;
  // Ends the temporary variables that kernels have left there.
  if (attached.load() != nullptr) kernel_host().drop_temporaries(&site->place);
  site->release();
}

mtf_memory* mtf_kernel_take_deferred(mtf_kernel_site* site, const mtf_stream* stream) {
  mtf_memory* memory = deferred.first;
  if (memory == nullptr) return take_deferred_of(site, stream->handle);
  deferred.first = std::exchange(memory->next_deferred, nullptr);
  return memory;
}

// -- kernel objects and executions --

mtf_kernel* mtf_kernel_new(const mtf_kernel_definition* definition, mtf_kernel_node* node,
                           mtf_kernel_site* site, const mtf_plugin* plugin, const char* subject) {
  struct FreeNode {
    void operator()(mtf_kernel_node* its) const { kernel_host().free_node(its); }
  };
  std::unique_ptr<mtf_kernel_node, FreeNode> taken_over(node);
  auto kernel = std::make_unique<mtf_kernel>(definition, node, site, plugin, subject);
  taken_over.release();
  site->retain();
  mtf::ExecutorUse use(site->executor);
  if (!use) return mtf::fail_with(mtf::closed_executor_error(site->executor).release());
  mtf::Error error = create_object(kernel.get(), &kernel->object.pointer);
  if (!error) return kernel.release();
  mtf_kernel_free(kernel.release());
  return mtf::fail_with(error.release());
}

void mtf_kernel_free(mtf_kernel* kernel) {
  if (kernel != nullptr) release_kernel(kernel);
}

mtf_kernel_result* mtf_kernel_run(mtf_kernel* kernel, mtf_stream* stream, mtf_kernel_input* inputs,
                                  int32_t n_inputs) {
  const Queueing queueing(stream != nullptr);
  auto result = std::make_unique<mtf_kernel_result>(kernel, inputs, n_inputs);
  if (!*result->use) {
    return mtf::fail_with(mtf::closed_executor_error(kernel->site->executor).release());
  }
  if (mtf::Error error = object_for(kernel, inputs, n_inputs, &result->object)) {
    return mtf::fail_with(error.release());
  }
  void* handle = stream == nullptr ? nullptr : stream->handle;
  const bool watches_inputs = !result->object->leaves_inputs;
  result->call = kernel_host().new_call(kernel->node, &kernel->site->place, handle, inputs, n_inputs,
                                 watches_inputs);
  bool is_over = true;
  mtf::Error error = call_plugin(kernel, "compute", [&] {
    is_over = kernel_host().compute(kernel->definition, result->object->pointer, result->call);
  });
  if (error) {
    error = thrown_in(result.get(), std::move(error));
  } else if (is_over) {
    error = result->finish();
  }
  if (!error) return result.release();
  keep_failed(std::move(result));
  return mtf::fail_with(error.release());
}

mtf_kernel_result* mtf_kernel_take_failed(void) { return std::exchange(failed, nullptr); }

const mtf_kernel_output* mtf_kernel_outputs(const mtf_kernel_result* result) {
  static const mtf_kernel_output kNone = {};  // of a vector without elements there is no address
  if (!result->is_over) return nullptr;
  return result->outputs.empty() ? &kNone : result->outputs.data();
}

int mtf_kernel_wait(mtf_kernel_result* result, uint64_t nanoseconds) {
  return kernel_host().wait(result->call, nanoseconds);
}

mtf_error* mtf_kernel_finish(mtf_kernel_result* result) { return result->finish().release(); }

mtf_memory* mtf_kernel_take_memory(mtf_kernel_result* result, int32_t output) {
  void*& owner = result->outputs[static_cast<size_t>(output)].owner;
  return static_cast<mtf_memory*>(std::exchange(owner, nullptr));
}

void* mtf_kernel_take_buffer(mtf_kernel_result* result, int32_t output) {
  return std::exchange(result->outputs[static_cast<size_t>(output)].buffer, nullptr);
}

void mtf_kernel_buffer_free(void* buffer) { kernel_host().drop_buffer(buffer); }

uint64_t mtf_kernel_keeper(const mtf_kernel_result* result, int32_t input) {
  return result->inputs[static_cast<size_t>(input)].keeper;
}

void mtf_kernel_result_free(mtf_kernel_result* result) {
  if (result == nullptr || result->call == nullptr || result->is_over) return delete result;
  kernel_host().abandon(result->call);
  {
    const mtf::LockGuard guard(abandoned().lock);
    result->next = std::exchange(abandoned().first, result);
  }
  mtf::end_abandoned_executions(nullptr);
}

mtf_kernel_variable* mtf_kernel_variable_new(void) { return kernel_host().new_variable(); }

void mtf_kernel_variable_free(mtf_kernel_variable* variable) { kernel_host().free_variable(variable); }

mtf_error* mtf_kernel_variable_set(mtf_kernel_variable* variable, mtf_kernel_site* site,
                                   mtf_memory* memory, int32_t type, const int64_t* dims,
                                   int32_t rank) {
  void* address = nullptr;
  uint64_t size = 0;
  if (memory != nullptr) {
    address = memory->base.opaque;
    size = memory->base.size;
    site->retain();  // until the memory is given back
  }
  mtf_kernel_failure failure = {};
  try {
    kernel_host().set_variable(variable, &site->place, address, size, memory, type, dims, rank, &failure);
  } catch (...) {
    if (memory != nullptr) site->place.free(&site->place, memory, nullptr);
    throw;
  }
  return error_of(&failure).release();
}

mtf_kernel_result* mtf_kernel_variable_read(mtf_kernel_variable* variable, mtf_kernel_site* site) {
  auto result = std::make_unique<mtf_kernel_result>(site);
  result->dims.resize(MTF_MOST_DIMENSIONS);
  mtf_kernel_failure failure = {};
  kernel_host().read_variable(variable, result->outputs.data(), result->dims.data(), &failure);
  mtf::Error error = error_of(&failure);
  return error ? mtf::fail_with(error.release()) : result.release();
}

int32_t mtf_kernel_take_released(uint64_t* keepers, int32_t most) {
  return kernel_host().take_released(keepers, most);
}

}  // extern "C"
