// Kernel objects: made by a plugin's `create`, ended by its `delete`.
#pragma once

#include "kernel_registry.h"
#include "node.h"

namespace mtf::kernels {

// The node of a construction; NULL and a status where that is over.
const mtf_kernel_node* node_of(TF_OpKernelConstruction* construction, const char* function,
                               TF_Status* status);
// The attribute of a name if it is of that kind; otherwise NULL, and the status says why.
const Attribute* find_attr(TF_OpKernelConstruction* construction, const char* name, int32_t kind,
                           bool is_list, const char* function, TF_Status* status);

// Makes a kernel object; what `create` throws leaves this. With a failure there may be an object too,
// which is the caller's to delete.
void create(const mtf_kernel_definition* kernel, const mtf_kernel_node* node, void** object,
            mtf_kernel_failure* failure);
void delete_object(const mtf_kernel_definition* kernel, void* object);

}  // namespace mtf::kernels
