// Kernels that do what no kernel may: the attribute `case` says what.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "modular_tf/kernels.h"
#include "modular_tf/ops.h"
#include "modular_tf/status.h"
#include "modular_tf/tensor.h"

// Of the cases `slow` and `held`; the test sets it to 0 to let the latter go.
extern "C" __attribute__((visibility("default"))) std::atomic<int> hostile_kernels_running;
std::atomic<int> hostile_kernels_running{0};

namespace {

using Compute = std::function<void(TF_OpKernelContext*)>;
using ComputeAsync = std::function<void(TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*)>;

struct Status {
  TF_Status* const it = TF_NewStatus();
  ~Status() { TF_DeleteStatus(it); }
};

TF_OpKernelContext* kept_context;
TF_OpKernelConstruction* kept_construction;
TF_AsyncOpKernelDoneCallback* kept_done;

void report(TF_OpKernelContext* context, TF_Code code, const char* text) {
  Status status;
  TF_SetStatus(status.it, code, text);
  TF_OpKernelContext_Failure(context, status.it);
}

TF_Tensor* input(TF_OpKernelContext* context) {
  Status status;
  TF_Tensor* tensor = nullptr;
  TF_GetInput(context, 0, &tensor, status.it);
  return tensor;
}

TF_Tensor* allocate(TF_OpKernelContext* context, int index, const int64_t* dims, int rank) {
  Status status;
  TF_Tensor* output = TF_AllocateOutput(context, index, TF_FLOAT, dims, rank, 0, status.it);
  if (output == nullptr) TF_OpKernelContext_Failure(context, status.it);
  return output;
}

// Writes to an element of a vector; -1 is the last one.
void write_to_input(TF_OpKernelContext* context, int64_t index) {
  TF_Tensor* x = input(context);
  const int64_t count = TF_Dim(x, 0);
  static_cast<float*>(TF_TensorData(x))[(index + count) % count] = 99;
  TF_DeleteTensor(x);
}

// y = 2 x, for a vector.
void double_it(TF_OpKernelContext* context) {
  TF_Tensor* x = input(context);
  if (TF_NumDims(x) != 1) {
    TF_DeleteTensor(x);
    return report(context, TF_INVALID_ARGUMENT, "x must be a vector");
  }
  const int64_t count = TF_Dim(x, 0);
  TF_Tensor* y = allocate(context, 0, &count, 1);
  const auto* from = static_cast<const float*>(TF_TensorData(x));
  auto* to = static_cast<float*>(TF_TensorData(y));
  for (int64_t index = 0; index < count; ++index) to[index] = 2 * from[index];
  TF_DeleteTensor(y);
  TF_DeleteTensor(x);
}

void set_output(TF_OpKernelContext* context, TF_DataType type, size_t size) {
  Status status;
  const int64_t count = 1;
  TF_Tensor* tensor = TF_AllocateTensor(type, &count, 1, size);
  std::memset(TF_TensorData(tensor), 0, size);
  TF_SetOutput(context, 0, tensor, status.it);
  if (TF_GetCode(status.it) != TF_OK) TF_OpKernelContext_Failure(context, status.it);
  TF_DeleteTensor(tensor);
}

void use(TF_OpKernelContext* context) {
  Status status;
  const int64_t count = 1;
  TF_Tensor* tensor = nullptr;
  TF_GetInput(context, 0, &tensor, status.it);
  TF_DeleteTensor(tensor);
  TF_DeleteTensor(TF_AllocateOutput(context, 0, TF_FLOAT, &count, 1, 4, status.it));
  TF_NumInputs(context);
  TF_ExpectedOutputDataType(context, 0);
  TF_StepId(context);
  report(context, TF_ABORTED, "from a call that is over");
}

void allocate_shape(TF_OpKernelContext* context, int64_t rows, int64_t columns) {
  const int64_t dims[] = {rows, columns};
  TF_DeleteTensor(allocate(context, 0, dims, 2));
}

template <class Function>
void in_thread(int milliseconds, Function function) {
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    function();
  }).detach();
}

const std::map<std::string, Compute> kCases = {
    {"none", double_it},
    {"report", [](auto* context) { report(context, TF_DATA_LOSS, "the kernel says so"); }},
    {"report OK",
     [](auto* context) {
       report(context, TF_OK, "");
       double_it(context);
     }},
    {"report and compute",
     [](auto* context) {
       double_it(context);
       report(context, TF_DATA_LOSS, "the kernel says so");
     }},
    {"throw", [](auto*) { throw std::runtime_error("thrown by the kernel"); }},
    {"throw a number", [](auto*) { throw 42; }},
    {"throw with an output",
     [](auto* context) {
       double_it(context);
       throw std::runtime_error("thrown by the kernel");
     }},
    {"unset", [](auto*) {}},
    {"set twice",
     [](auto* context) {
       set_output(context, TF_FLOAT, 4);
       set_output(context, TF_FLOAT, 4);
     }},
    {"allocate twice",
     [](auto* context) {
       allocate_shape(context, 1, 1);
       allocate_shape(context, 1, 1);
     }},
    {"allocate too much", [](auto* context) { allocate_shape(context, int64_t{1} << 45, 1); }},
    {"allocate an overflow",
     [](auto* context) { allocate_shape(context, int64_t{1} << 40, int64_t{1} << 40); }},
    {"allocate a negative", [](auto* context) { allocate_shape(context, -1, 1); }},
    {"allocate another output",
     [](auto* context) {
       const int64_t count = 1;
       TF_DeleteTensor(allocate(context, 7, &count, 1));
     }},
    {"allocate too much and say nothing",
     [](auto* context) {
       Status status;
       const int64_t count = int64_t{1} << 45;
       TF_AllocateOutput(context, 0, TF_FLOAT, &count, 1, 0, status.it);
     }},
    {"wrong type", [](auto* context) { set_output(context, TF_DOUBLE, 8); }},
    {"write to an input",
     [](auto* context) {
       write_to_input(context, 0);
       double_it(context);
     }},
    {"write to the end of an input",
     [](auto* context) {
       double_it(context);
       write_to_input(context, -1);
     }},
    {"write to an input later",
     [](auto* context) {
       static int calls = 0;
       if (calls++ > 0) write_to_input(context, 0);
       double_it(context);
     }},
    {"keep the context",
     [](auto* context) {
       kept_context = context;
       double_it(context);
     }},
    {"use a kept context", [](auto*) { use(kept_context); }},
    {"use it in a thread later",
     [](auto* context) {
       double_it(context);
       in_thread(50, [=] { use(context); });
     }},
    {"use the construction",
     [](auto* context) {
       Status status;
       int32_t value = 0;
       TF_OpKernelConstruction_GetAttrInt32(kept_construction, "case", &value, status.it);
       TF_OpKernelConstruction_Failure(kept_construction, status.it);
       double_it(context);
     }},
    {"delete a tensor twice",
     [](auto* context) {
       TF_Tensor* x = input(context);
       TF_DeleteTensor(x);
       TF_DeleteTensor(x);
       double_it(context);
     }},
    {"read a deleted tensor",
     [](auto* context) {
       TF_Tensor* x = input(context);
       TF_DeleteTensor(x);
       TF_TensorData(x);
       TF_NumDims(x);
       double_it(context);
     }},
    {"delete what is no tensor",
     [](auto* context) {
       TF_DeleteTensor(reinterpret_cast<TF_Tensor*>(context));
       TF_DeleteTensor(reinterpret_cast<TF_Tensor*>(uintptr_t{0x10}));
       double_it(context);
     }},
    {"no context",
     [](auto* context) {
       input(nullptr);
       double_it(context);
     }},
    {"read another input",
     [](auto* context) {
       Status status;
       TF_Tensor* tensor = nullptr;
       TF_GetInput(context, 3, &tensor, status.it);
       TF_OpKernelContext_Failure(context, status.it);
     }},
    {"ask for a stream",
     [](auto* context) {
       Status status;
       TF_GetStream(context, status.it);
       TF_OpKernelContext_Failure(context, status.it);
     }},
    {"keep an input",
     [](auto* context) {
       input(context);
       double_it(context);
     }},
    {"sleep",
     [](auto* context) {
       std::this_thread::sleep_for(std::chrono::milliseconds(300));
       double_it(context);
     }},
    {"throw in delete", double_it},
    {"throw in create", double_it},
    {"fail in create", double_it},
};

const std::map<std::string, ComputeAsync> kAsyncCases = {
    {"none",
     [](auto* context, auto* done) {
       double_it(context);
       TF_RunAsyncOpKernelDoneCallback(done);
     }},
    {"in a thread",
     [](auto* context, auto* done) {
       in_thread(20, [=] {
         double_it(context);
         TF_RunAsyncOpKernelDoneCallback(done);
       });
     }},
    {"write to an input in a thread",
     [](auto* context, auto* done) {
       in_thread(20, [=] {
         double_it(context);
         write_to_input(context, 0);
         TF_RunAsyncOpKernelDoneCallback(done);
       });
     }},
    {"report in a thread",
     [](auto* context, auto* done) {
       in_thread(20, [=] {
         report(context, TF_DATA_LOSS, "the kernel says so");
         TF_RunAsyncOpKernelDoneCallback(done);
       });
     }},
    {"unset", [](auto*, auto* done) { TF_RunAsyncOpKernelDoneCallback(done); }},
    {"twice",
     [](auto* context, auto* done) {
       double_it(context);
       TF_RunAsyncOpKernelDoneCallback(done);
       TF_RunAsyncOpKernelDoneCallback(done);
     }},
    {"twice in a thread",
     [](auto* context, auto* done) {
       in_thread(20, [=] {
         double_it(context);
         TF_RunAsyncOpKernelDoneCallback(done);
         TF_RunAsyncOpKernelDoneCallback(done);
       });
     }},
    {"use the context after it",
     [](auto* context, auto* done) {
       double_it(context);
       TF_RunAsyncOpKernelDoneCallback(done);
       use(context);
     }},
    {"throw", [](auto*, auto*) { throw std::runtime_error("thrown by the kernel"); }},
    {"throw and run it later",
     [](auto* context, auto* done) {
       in_thread(50, [=] {
         use(context);
         TF_RunAsyncOpKernelDoneCallback(done);
       });
       throw std::runtime_error("thrown by the kernel");
     }},
    {"throw behind it",
     [](auto* context, auto* done) {
       double_it(context);
       TF_RunAsyncOpKernelDoneCallback(done);
       throw std::runtime_error("thrown by the kernel");
     }},
    {"slow",
     [](auto* context, auto* done) {
       ++hostile_kernels_running;
       in_thread(1000, [=] {
         double_it(context);
         write_to_input(context, 0);
         --hostile_kernels_running;
         TF_RunAsyncOpKernelDoneCallback(done);
       });
     }},
    {"held",
     [](auto* context, auto* done) {
       double_it(context);
       TF_Tensor* x = input(context);
       ++hostile_kernels_running;
       std::thread([=] {
         while (hostile_kernels_running != 0) std::this_thread::yield();
         static_cast<float*>(TF_TensorData(x))[0] = 99;
         TF_DeleteTensor(x);
         TF_RunAsyncOpKernelDoneCallback(done);
         hostile_kernels_running = -1;
       }).detach();
     }},
    {"never", [](auto*, auto* done) { kept_done = done; }},
    {"run that of a call that is over",
     [](auto* context, auto* done) {
       double_it(context);
       TF_RunAsyncOpKernelDoneCallback(kept_done);
       TF_RunAsyncOpKernelDoneCallback(done);
     }},
    {"late",
     [](auto* context, auto* done) {
       in_thread(600, [=] {
         double_it(context);
         TF_RunAsyncOpKernelDoneCallback(done);
       });
     }},
};

void* create(TF_OpKernelConstruction* construction) {
  Status status;
  char text[64] = "";
  kept_construction = construction;
  TF_OpKernelConstruction_GetAttrString(construction, "case", text, sizeof text - 1, status.it);
  const std::string wanted = text;
  if (wanted == "throw in create") throw std::runtime_error("thrown by create");
  if (wanted == "fail in create") {
    TF_SetStatus(status.it, TF_UNIMPLEMENTED, "create says so");
    TF_OpKernelConstruction_Failure(construction, status.it);
  }
  return new std::string(wanted);
}

void compute(void* kernel, TF_OpKernelContext* context) {
  kCases.at(*static_cast<std::string*>(kernel))(context);
}

void compute_async(void* kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
  kAsyncCases.at(*static_cast<std::string*>(kernel))(context, done);
}

void delete_kernel(void* kernel) {
  const auto* its = static_cast<std::string*>(kernel);
  if (its == nullptr) return;
  const bool throws = *its == "throw in delete";
  delete its;
  if (throws) throw std::runtime_error("thrown by delete");
}

void compute_plain(void*, TF_OpKernelContext* context) { double_it(context); }

void define(const char* name, std::initializer_list<const char*> attrs, const char* type) {
  Status status;
  const std::string in = std::string("x: ") + type;
  const std::string out = std::string("y: ") + type;
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(name);
  for (const char* attr : attrs) TF_OpDefinitionBuilderAddAttr(builder, attr);
  TF_OpDefinitionBuilderAddInput(builder, in.c_str());
  TF_OpDefinitionBuilderAddOutput(builder, out.c_str());
  TF_RegisterOpDefinition(builder, status.it);
}

void enter(TF_KernelBuilder* builder, const char* name) {
  Status status;
  TF_RegisterKernelBuilder(name, builder, status.it);
}

void register_for(const char* device) {
  enter(TF_NewKernelBuilder("MtfHostile", device, create, compute, delete_kernel), "Hostile");
  enter(TF_NewAsyncKernelBuilder("MtfHostileAsync", device, create, compute_async, delete_kernel),
        "HostileAsync");
  for (const char* name : {"OneTwin", "OtherTwin"}) {
    enter(TF_NewKernelBuilder("MtfTwins", device, nullptr, compute_plain, nullptr), name);
  }
  TF_KernelBuilder* builder =
      TF_NewKernelBuilder("MtfDouble", device, nullptr, compute_plain, nullptr);
  Status status;
  TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, status.it);
  enter(builder, "Double");
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void TF_InitKernel() {
  define("MtfHostile", {"case: string = 'none'"}, "float");
  define("MtfHostileAsync", {"case: string = 'none'"}, "float");
  define("MtfTwins", {}, "float");
  define("MtfDouble", {"T: {float, double}", "mode: {'a', 'b'}", "count: int >= 1 = 1"}, "T");
  define("MtfNoKernel", {}, "float");
  register_for("CPU");
}
