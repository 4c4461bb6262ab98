#include "call.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "entry.h"

namespace mtf::kernels {
namespace {

std::atomic<int64_t> last_step{0};

// -- whether a kernel writes to inputs that it was only lent: what they hold is compared before and after --

constexpr size_t kBlock = 4096;
constexpr size_t kBlocks = 64;  // at most, of one input

uint64_t mixed(uint64_t sum, const char* data, size_t size) {
  for (size_t at = 0; at < size; at += sizeof sum) {
    uint64_t word = 0;
    std::memcpy(&word, data + at, std::min(size - at, sizeof word));
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 32;
  }
  return sum;
}

uint64_t checksum(const char* data, size_t size) {
  if (size <= kBlock * kBlocks) return mixed(size, data, size);
  const size_t step = (size - kBlock) / (kBlocks - 1);
  uint64_t sum = mixed(size, data + size - kBlock, kBlock);
  for (size_t block = 0; block < kBlocks - 1; ++block) sum = mixed(sum, data + block * step, kBlock);
  return sum;
}

bool overlap(const CallInput& one, const CallInput& other) {
  const auto* first = static_cast<const char*>(one.tensor.data());
  const auto* second = static_cast<const char*>(other.tensor.data());
  return first < second + other.tensor.size() && second < first + one.tensor.size();
}

bool is_watched(const mtf_kernel_call* call, const CallInput& input) {
  if (!input.tensor.buffer || !(input.is_on_host || call->place->is_host)) return false;
  return std::none_of(call->inputs.begin(), call->inputs.end(), [&](const CallInput& other) {
    return other.is_donated && other.tensor.buffer && overlap(input, other);
  });
}

uint64_t checksum_of(const mtf_kernel_call* call, const CallInput& input) {
  if (!is_watched(call, input)) return 0;
  return checksum(static_cast<const char*>(input.tensor.data()), input.tensor.size());
}

const char* name_of_input(const mtf_kernel_node* node, size_t index) {
  for (const Argument& argument : node->input_arguments) {
    if (static_cast<int>(index) < argument.stop) return argument.name.c_str();
  }
  return "";
}

// Checksums of the inputs of a call that the kernel must leave as they are. Inputs that are donated may
// become outputs; variables, and memory of a device that is not the host's, are not looked at. At most 256
// KiB of an input are read, in blocks from its first to its last byte.
std::vector<uint64_t> checksums_of_inputs(const mtf_kernel_call* call) {
  std::vector<uint64_t> sums;
  sums.reserve(call->inputs.size());
  for (const CallInput& input : call->inputs) sums.push_back(checksum_of(call, input));
  return sums;
}

// Fails a call whose inputs have other checksums than before. Does nothing where there are none.
void check_inputs(mtf_kernel_call* call, const std::vector<uint64_t>& before) {
  for (size_t index = 0; index < before.size(); ++index) {
    if (checksum_of(call, call->inputs[index]) == before[index]) continue;
    char text[480];
    std::snprintf(text, sizeof text,
                  "the kernel wrote to input %zu ('%s'), which was only lent to it: the array that was"
                  " given may hold other values now. Do not use that array any more, and disable the"
                  " plugin or report this to its authors; an input that is donated may be written to",
                  index, name_of_input(call->node, index));
    return set_failure(&call->failure, TF_INTERNAL, kRuleInputsUnchanged, text);
  }
}

// -- inputs and outputs --

CallInput input_of(const mtf_kernel_input& given) {
  CallInput input;
  input.tensor.type = given.type;
  input.tensor.dims = Dims(given.dims, given.rank);
  input.is_on_host = given.is_on_host != 0;
  input.is_donated = given.is_donated != 0;
  if (given.variable != nullptr) {
    auto* variable = static_cast<mtf_kernel_variable*>(given.variable);
    variable->retain();
    input.variable.reset(variable);
  }
  if (given.size == 0) return input;
  input.tensor.buffer = new_lent_buffer(given.data, given.size, input.is_on_host);
  if (!input.tensor.buffer) throw std::bad_alloc();
  return input;
}

void give_up(mtf_kernel_call* call) {
  if (call->holders.fetch_sub(1) == 1) delete call;
}

void end_context(mtf_kernel_call* call) {
  end_handle(std::exchange(call->handle, nullptr), HandleKind::kContext);
}

bool has_only_empty_inputs(const mtf_kernel_call* call) {
  if (call->inputs.empty()) return false;
  return std::all_of(call->inputs.begin(), call->inputs.end(),
                     [](const CallInput& input) { return input.tensor.size() == 0; });
}

// Counts the call among those of its variables that nobody waits for.
void count_abandoned(mtf_kernel_call* call, int change) {
  for (const CallInput& input : call->inputs) {
    if (input.variable != nullptr) input.variable->abandoned_calls.fetch_add(change);
  }
}

// Outputs that are references get the values of their variables.
void set_reference_outputs(mtf_kernel_call* call) {
  for (size_t index = 0; index < call->outputs.size(); ++index) {
    CallOutput& output = call->outputs[index];
    if (!is_reference(call->node->outputs[index].type) || output.variable == nullptr) continue;
    if (!lock_variable(output.variable.get(), &call->failure)) return;
    const LockGuard guard(output.variable->lock, std::adopt_lock);
    output.tensor = output.variable->tensor;
    output.is_set = true;
  }
}

// What is wrong with the outputs that a kernel has left.
void check_outputs(mtf_kernel_call* call) {
  char text[240];
  for (size_t index = 0; index < call->outputs.size(); ++index) {
    CallOutput& output = call->outputs[index];
    const int32_t expected = without_reference(call->node->outputs[index].type);
    if (output.is_set && output.tensor.type != expected) {
      std::snprintf(text, sizeof text, "output %zu: Type mismatch: actual %s vs. expect %s", index,
                    type_name(output.tensor.type), type_name(expected));
      return set_failure(&call->failure, TF_INVALID_ARGUMENT, kRuleOutputType, text);
    }
    if (output.is_set) continue;
    if (!has_only_empty_inputs(call)) {
      std::snprintf(text, sizeof text, "Missing %zu-th output from node %s", index,
                    call->node->name.c_str());
      return set_failure(&call->failure, TF_INTERNAL, kRuleOutputsSet, text);
    }
    const int64_t none = 0;
    output.tensor = Tensor{{}, expected, Dims(&none, 1)};
  }
}

int32_t input_with(const mtf_kernel_call* call, const Buffer* buffer) {
  if (buffer == nullptr) return -1;
  for (size_t index = 0; index < call->inputs.size(); ++index) {
    if (call->inputs[index].tensor.buffer.get() == buffer) return static_cast<int32_t>(index);
  }
  return -1;
}

// Hands the memory of an output over: what the place gave where nobody else has it, else a hold.
void hand_over(Tensor* tensor, mtf_kernel_output* output) {
  Buffer* buffer = tensor->buffer.get();
  if (buffer == nullptr) return;
  if (buffer->place != nullptr && !buffer->is_shared()) {
    output->owner = buffer->owner;
    delete tensor->buffer.release();  // but not the memory
  } else {
    output->buffer = tensor->buffer.release();
  }
}

void describe(mtf_kernel_call* call, size_t index, mtf_kernel_output* output) {
  CallOutput& from = call->outputs[index];
  Tensor& tensor = from.tensor;
  *output = {};
  output->data = tensor.data();
  output->size = tensor.size();
  output->dims = tensor.dims.data();
  output->rank = tensor.dims.rank();
  output->type = tensor.type;
  output->is_on_host = call->node->outputs[index].is_on_host;
  output->is_set = from.is_set;
  output->from_input = input_with(call, tensor.buffer.get());
  if (output->from_input >= 0) {
    tensor.buffer = {};  // the input has it
  } else {
    hand_over(&tensor, output);
  }
}

void keep_retained(mtf_kernel_call* call, mtf_kernel_input* inputs) {
  for (size_t index = 0; index < call->inputs.size(); ++index) {
    Buffer* buffer = call->inputs[index].tensor.buffer.get();
    inputs[index].keeper = 0;
    if (buffer != nullptr && buffer->is_shared()) {
      inputs[index].keeper = buffer->keeper = new_keeper();
    }
  }
}

}  // namespace

mtf_kernel_call* new_call(const mtf_kernel_node* node, const mtf_kernel_place* place, void* stream,
                          mtf_kernel_input* inputs, int32_t count, bool watches_inputs) {
  auto call = std::make_unique<mtf_kernel_call>();
  call->node = node;
  call->place = place;
  call->stream = stream;
  call->step = last_step.fetch_add(1) + 1;
  call->inputs.reserve(static_cast<size_t>(count));
  for (int32_t index = 0; index < count; ++index) call->inputs.push_back(input_of(inputs[index]));
  if (watches_inputs) call->input_checksums = checksums_of_inputs(call.get());
  call->outputs.resize(node->outputs.size());
  call->handle = new_handle(HandleKind::kContext, call.get());
  if (call->handle == nullptr) throw std::bad_alloc();
  return call.release();
}

int compute(const mtf_kernel_definition* kernel, void* object, mtf_kernel_call* call) {
  const MisuseRecord misuse;
  auto* context = static_cast<TF_OpKernelContext*>(call->handle);
  if (kernel->compute_async == nullptr) {
    kernel->compute(object, context);
    end_context(call);
    set_failure_of_misuse(&call->failure, misuse);
    return 1;
  }
  call->done_handle = new_handle(HandleKind::kDone, call);
  if (call->done_handle == nullptr) throw std::bad_alloc();
  call->holders.fetch_add(1);
  void* done = call->done_handle;
  try {
    kernel->compute_async(object, context, static_cast<TF_AsyncOpKernelDoneCallback*>(done));
  } catch (...) {  // the call is over, whatever the plugin does with `done` later
    if (end_handle(done, HandleKind::kDone) != nullptr) give_up(call);
    throw;
  }
  const LockGuard guard(call->lock);
  set_failure_of_misuse(&call->failure, misuse);
  return call->is_over;
}

int wait(mtf_kernel_call* call, uint64_t nanoseconds) {
  UniqueLock guard(call->lock);
  return call->ended.wait_for(guard, std::chrono::nanoseconds(nanoseconds),
                              [&] { return call->is_over; });
}

void take_failure(mtf_kernel_call* call, mtf_kernel_failure* failure) {
  *failure = std::exchange(call->failure, {});
}

void finish(mtf_kernel_call* call, mtf_kernel_input* inputs, mtf_kernel_output* outputs,
            mtf_kernel_failure* failure) {
  call->locks.clear();  // before variables are read
  set_reference_outputs(call);
  if (call->failure.code == TF_OK) check_inputs(call, call->input_checksums);
  if (call->failure.code == TF_OK) check_outputs(call);
  if (call->failure.code != TF_OK) {
    *failure = std::exchange(call->failure, {});
    call->outputs.clear();
  }
  for (size_t index = 0; index < call->outputs.size(); ++index) describe(call, index, outputs + index);
  keep_retained(call, inputs);
}

void abandon(mtf_kernel_call* call) {
  const LockGuard guard(call->lock);
  if (call->is_over) return;
  call->is_abandoned = true;
  count_abandoned(call, 1);
}

void free_call(mtf_kernel_call* call) {
  if (call != nullptr) give_up(call);
}

void drop_buffer(void* buffer) { const BufferRef dropped(static_cast<Buffer*>(buffer)); }

}  // namespace mtf::kernels

mtf_kernel_call::~mtf_kernel_call() {
  mtf::kernels::end_handle(handle, mtf::kernels::HandleKind::kContext);
  mtf::kernels::end_handle(done_handle, mtf::kernels::HandleKind::kDone);
  std::free(failure.message);
}

extern "C" void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback* done) {
  using namespace mtf::kernels;
  auto* call = static_cast<mtf_kernel_call*>(end_handle(done, HandleKind::kDone));
  if (call == nullptr) {
    return report_misuse_text(kRuleDoneOnce, "TF_RunAsyncOpKernelDoneCallback: `done` was run before, or never given");
  }
  end_context(call);
  call->locks.clear();  // also of a call that nobody waits for
  {
    const mtf::LockGuard guard(call->lock);
    call->is_over = true;
    if (call->is_abandoned) count_abandoned(call, -1);
    call->ended.notify_all();
  }
  give_up(call);
}
