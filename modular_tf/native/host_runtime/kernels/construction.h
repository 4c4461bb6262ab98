// Kernel objects: made by a plugin's `create`, ended by its `delete`.
#ifndef MODULAR_TF_HOST_RUNTIME_KERNELS_CONSTRUCTION_H_
#define MODULAR_TF_HOST_RUNTIME_KERNELS_CONSTRUCTION_H_

#include "kernel_registry.h"
#include "node.h"

namespace mtf::kernels {

// Makes a kernel object; what `create` throws leaves this. With a failure there may be an object too,
// which is the caller's to delete.
void create(const mtf_kernel_definition* kernel, const mtf_kernel_node* node, void** object,
            mtf_kernel_failure* failure);
void delete_object(const mtf_kernel_definition* kernel, void* object);

}  // namespace mtf::kernels
#endif
