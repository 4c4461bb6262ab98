// Temporary variables: test_temporary_variables.py. No caller in Python can pass one to a kernel, so this
// program makes calls of the host runtime as the core does. The argument is the case; the process ends
// with 0, or by abort().
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "call.h"
#include "host_table.h"
#include "modular_tf/kernels_experimental.h"

namespace {

const mtf_kernel_host& host = mtf_kernel_host_table;
constexpr int32_t kFloatReference = 101;
constexpr int64_t kDims[] = {3};
int64_t blocks = 0;  // of memory of the place that are in use

#define CHECK(holds) ((holds) ? void() : (std::fprintf(stderr, "line %d\n", __LINE__), std::abort()))

int allocate_block(const mtf_kernel_place*, uint64_t size, void** address, void** owner, char*, size_t) {
  ++blocks;
  *address = *owner = std::aligned_alloc(64, (size + 63) / 64 * 64);
  return 1;
}

void free_block(const mtf_kernel_place*, void* owner, void*) {
  --blocks;
  std::free(owner);
}

const mtf_kernel_place place = {allocate_block, free_block, "/job:localhost/device:CPU:0", 0, 1};

// A call with the variable as its input where there is one, and with one output.
struct Call {
  explicit Call(mtf_kernel_variable* variable, int32_t output_type) : node(host.new_node("node", "Op")) {
    const int32_t reference = kFloatReference;
    if (variable != nullptr) host.add_input(node, "x", &reference, 1, 0);
    host.add_output(node, "y", &output_type, 1, 0);
    input.variable = variable;
    call = host.new_call(node, &place, nullptr, &input, variable != nullptr ? 1 : 0, false);
  }
  ~Call() {
    host.free_call(call);
    host.free_node(node);
    TF_DeleteStatus(status);
  }
  TF_OpKernelContext* context() const { return static_cast<TF_OpKernelContext*>(call->handle); }

  mtf_kernel_node* node;
  mtf_kernel_input input = {};
  mtf_kernel_call* call;
  TF_Status* status = TF_NewStatus();
};

TF_StringView name = {"temporary", 9};

void copy(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*) {}

void fill(TF_OpKernelContext* context, TF_Tensor* tensor, TF_DataType type, const int64_t* dims, int rank,
          TF_Status* status) {
  TF_Tensor* made = TF_AllocateTemp(context, type, dims, rank, nullptr, status);
  for (int index = 0; index < 3; ++index) static_cast<float*>(TF_TensorData(made))[index] = 7;
  TF_TensorBitcastFrom(made, type, tensor, dims, rank, status);
  TF_DeleteTensor(made);
}

TF_Code make(Call& call) {
  TF_TemporaryVariable(call.context(), TF_FLOAT, kDims, 1, &name, fill, call.status);
  return TF_GetCode(call.status);
}

TF_Code end(Call& call) {
  TF_DestroyTemporaryVariable(call.context(), 0, &name, call.status);
  return TF_GetCode(call.status);
}

void its_value_comes_out_and_its_memory_ends_with_that() {
  {
    Call maker(nullptr, kFloatReference);
    CHECK(make(maker) == TF_OK);
    mtf_kernel_variable* const variable = maker.call->outputs[0].variable.get();
    {
      Call ender(variable, TF_FLOAT);
      CHECK(end(ender) == TF_OK);
      mtf_kernel_output output = {};
      mtf_kernel_failure failure = {};
      host.finish(ender.call, &ender.input, &output, &failure);
      CHECK(failure.code == 0 && output.is_set && output.rank == 1 && output.dims[0] == 3);
      for (int index = 0; index < 3; ++index) CHECK(static_cast<float*>(output.data)[index] == 7);
      CHECK(blocks == 1);
      CHECK(output.buffer != nullptr);
      host.drop_buffer(output.buffer);
      Call again(variable, TF_FLOAT);
      CHECK(end(again) == TF_NOT_FOUND);
    }
    Call other(nullptr, kFloatReference);
    CHECK(make(other) == TF_OK);  // the name is free
    host.drop_temporaries(&place);
  }
  CHECK(blocks == 0);
}

void another_variable_of_no_name_is_not_ended() {
  mtf_kernel_variable* const variable = host.new_variable();
  {
    Call maker(nullptr, kFloatReference);
    CHECK(make(maker) == TF_OK);
    Call ender(variable, TF_FLOAT);
    CHECK(end(ender) == TF_NOT_FOUND);
    Call again(nullptr, kFloatReference);
    CHECK(make(again) == TF_ALREADY_EXISTS);
  }
  host.free_variable(variable);
  host.drop_temporaries(&place);
  CHECK(blocks == 0);
}

void one_that_stays_locked_is_not_ended() {
  Call maker(nullptr, kFloatReference);
  CHECK(make(maker) == TF_OK);
  mtf_kernel_variable* const variable = maker.call->outputs[0].variable.get();
  const int input = 0;
  TF_VariableInputLockHolder* holder = nullptr;
  Call interrupted(variable, TF_FLOAT), ender(variable, TF_FLOAT);
  TF_MaybeLockVariableInputMutexesInOrder(interrupted.context(), true, false, &input, 1, copy, &holder,
                                          interrupted.status);
  CHECK(holder != nullptr);
  host.abandon(interrupted.call);

  CHECK(end(ender) == TF_ABORTED);

  TF_ReleaseVariableInputLockHolder(holder);
  CHECK(end(ender) == TF_OK);
}

const std::map<std::string, std::function<void()>> cases = {
    {"its_value_comes_out_and_its_memory_ends_with_that", its_value_comes_out_and_its_memory_ends_with_that},
    {"another_variable_of_no_name_is_not_ended", another_variable_of_no_name_is_not_ended},
    {"one_that_stays_locked_is_not_ended", one_that_stays_locked_is_not_ended},
};

}  // namespace

int main(int, char** arguments) { cases.at(arguments[1])(); }
