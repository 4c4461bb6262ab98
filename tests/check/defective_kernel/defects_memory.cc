// Defects of what kernels do to memory that is not their own.
#include <cstdlib>

#include "defects.h"

DEFECTS(memory) = {
    {"KN-103",
     [](Tables& tables) {
       tables.compute = [](void* kernel, TF_OpKernelContext* context) {
         auto* block = static_cast<volatile char*>(std::malloc(16));
         block[16] = 1;
         std::free(const_cast<char*>(block));
         original.compute(kernel, context);
       };
     }},
};
