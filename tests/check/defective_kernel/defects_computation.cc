// Defects that the host notices while kernels work.
#include <cstdlib>
#include <stdexcept>

#include "defects.h"

extern "C" void TF_DefectThatNoHostHas(void);

namespace {

TF_OpKernelConstruction* kept_construction = nullptr;
TF_OpKernelContext* kept_context = nullptr;

const int64_t kDims[] = {4};
const int64_t kNegative[] = {-4};

void pass_on(TF_OpKernelContext* context, const defective::Status& status) {
  TF_OpKernelContext_Failure(context, status.get());
}

}  // namespace

DEFECTS(computation) = {
    {"KN-063",
     [](Tables& tables) {
       tables.create = [](TF_OpKernelConstruction* construction) {
         kept_construction = construction;
         return original.create(construction);
       };
       tables.compute = [](void* kernel, TF_OpKernelContext* context) {
         Status status;
         TF_OpKernelConstruction_HasAttr(kept_construction, "T", status.get());
         original.compute(kernel, context);
       };
     }},
    {"KN-076",
     [](Tables& tables) {
       tables.compute = [](void* kernel, TF_OpKernelContext* context) {
         original.compute(kernel, context);
         Status status;
         TF_DeleteTensor(TF_AllocateOutput(context, 0, TF_FLOAT, kDims, 1, 16, status.get()));
         pass_on(context, status);
       };
     }},
    {"KN-077",
     [](Tables& tables) {
       tables.compute = [](void*, TF_OpKernelContext* context) {
         Status status;
         TF_DeleteTensor(TF_AllocateOutput(context, 0, TF_FLOAT, kNegative, 1, 16, status.get()));
         pass_on(context, status);
       };
     }},
    {"KN-079",
     [](Tables& tables) {
       tables.compute = [](void*, TF_OpKernelContext* context) {
         Status status;
         TF_Tensor* other = TF_AllocateTemp(context, TF_INT32, kDims, 1, nullptr, status.get());
         TF_SetOutput(context, 0, other, status.get());
         TF_DeleteTensor(other);
       };
     }},
    {"KN-080", [](Tables& tables) { tables.compute = [](void*, TF_OpKernelContext*) {}; }},
    {"KN-083",
     [](Tables& tables) {
       tables.compute = [](void* kernel, TF_OpKernelContext* context) {
         TF_ExpectedOutputDataType(context, 7);
         original.compute(kernel, context);
       };
     }},
    {"KN-084",
     [](Tables& tables) {
       tables.compute = [](void* kernel, TF_OpKernelContext* context) {
         original.compute(kernel, context);
         Status status;
         TF_AllocatorAttributes attributes = {};
         TF_DeleteTensor(
             TF_AllocateTemp(context, TF_FLOAT, kDims, 1, &attributes, status.get()));
         pass_on(context, status);
       };
     }},
    {"KN-088",
     [](Tables& tables) {
       tables.compute = [](void*, TF_OpKernelContext*) { throw std::runtime_error("no result"); };
     }},
    {"crash",  // of no check: whoever calls it must name it
     [](Tables& tables) {
       tables.compute = [](void* object, TF_OpKernelContext* context) {
         if (static_cast<Kernel*>(object)->is_scale) std::abort();
         original.compute(object, context);
       };
     }},
    {"KN-085",
     [](Tables& tables) {
       tables.compute = [](void*, TF_OpKernelContext* context) {
         Status status;
         TF_GetStream(context, status.get());
         pass_on(context, status);
       };
     }},
    {"KN-095",
     [](Tables& tables) {
       tables.register_all = [] {
         original.register_all();
         Status status;
         TF_KernelBuilder* builder = TF_NewAsyncKernelBuilder(
             "Relu6", "CPU", original.create,
             [](void* kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
               original.compute(kernel, context);
               TF_RunAsyncOpKernelDoneCallback(done);
               TF_RunAsyncOpKernelDoneCallback(done);
             },
             original.destroy);
         TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, status.get());
         TF_RegisterKernelBuilder("Relu6", builder, status.get());
       };
     }},
    {"KN-096",
     [](Tables& tables) {
       tables.compute = [](void* kernel, TF_OpKernelContext* context) {
         if (kept_context != nullptr) TF_NumInputs(kept_context);
         kept_context = context;
         original.compute(kernel, context);
       };
     }},
    {"KN-100",
     [](Tables& tables) {
       tables.compute = [](void* kernel, TF_OpKernelContext* context) {
         TF_DefectThatNoHostHas();
         original.compute(kernel, context);
       };
     }},
    {"KN-101",
     [](Tables& tables) {
       tables.compute = [](void* kernel, TF_OpKernelContext* context) {
         Status status;
         TF_Tensor* input = nullptr;
         TF_GetInput(context, 0, &input, status.get());
         TF_DeleteTensor(input);
         TF_DeleteTensor(input);
         original.compute(kernel, context);
       };
     }},
};
