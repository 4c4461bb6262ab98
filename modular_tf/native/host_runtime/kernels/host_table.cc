#include "host_table.h"

#include "absent_functions.h"
#include "buffer.h"
#include "call.h"
#include "construction.h"
#include "handles.h"
#include "op_definition.h"

namespace mtf::kernels {
namespace {

int64_t count_handles_of(int32_t kind) { return count_handles(static_cast<HandleKind>(kind)); }

size_t count_outputs(const mtf_kernel_node* node) { return node->outputs.size(); }

}  // namespace
}  // namespace mtf::kernels

using namespace mtf::kernels;

const mtf_kernel_host mtf_kernel_host_table = {
    sizeof(mtf_kernel_host),
    attach_plugin_calls,
    count_kernels,
    kernel_at,
    constraint_at,
    host_arg_at,
    mtf_op_definition_count,
    mtf_op_definition_record,
    mtf_make_absent_function,
    count_handles_of,
    new_node,
    free_node,
    set_attr,
    add_tensor_attr,
    add_input,
    add_output,
    count_outputs,
    create,
    delete_object,
    new_call,
    compute,
    wait,
    take_failure,
    finish,
    abandon,
    free_call,
    drop_buffer,
    new_variable,
    free_variable,
    set_variable,
    read_variable,
    drop_temporaries,
    take_released_keepers,
    init_kernels,
};
