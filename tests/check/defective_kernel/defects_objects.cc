// Defects of making kernel objects.
#include <atomic>
#include <stdexcept>

#include "defects.h"

static std::atomic<bool> is_deleted{false};

DEFECTS(objects) = {
    {"KN-061",
     [](Tables& tables) {
       tables.create = [](TF_OpKernelConstruction* construction) {
         auto* kernel = static_cast<Kernel*>(original.create(construction));
         Status status;
         const bool has = TF_OpKernelConstruction_HasAttr(construction, "factor", status.get());
         if (kernel->is_scale && !has) throw std::runtime_error("no factor");
         return static_cast<void*>(kernel);
       };
     }},
    {"KN-062",
     [](Tables& tables) {
       tables.create = [](TF_OpKernelConstruction* construction) {
         is_deleted = false;
         return original.create(construction);
       };
       tables.destroy = [](void* kernel) {
         is_deleted = true;
         original.destroy(kernel);
       };
       tables.compute = [](void* kernel, TF_OpKernelContext* context) {
         if (!is_deleted) return original.compute(kernel, context);
         Status status;
         TF_SetStatus(status.get(), TF_INTERNAL, "deleted");
         TF_OpKernelContext_Failure(context, status.get());
       };
     }},
};
