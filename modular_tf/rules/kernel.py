"""Rules of kernels: what plugins register, how one is selected for a call, and how it runs."""

from __future__ import annotations

from modular_tf.rules.violation import Rule, Severity

_HEADER = "kernels.h"
_OBSERVED = "TensorFlow 2.21, observed"
_CALL = "The call fails with INVALID_ARGUMENT, as in TensorFlow; no kernel runs."
_SELECTED_NEVER = "The kernel is listed and never selected, as in TensorFlow."
_ABORTS = "TensorFlow aborts the whole process; here the call of the kernel fails."

KERNELS_REGISTERED = Rule(
    "KN-004",
    "TF_InitKernel registers at least one kernel.",
    "The plugin brings no kernels; its devices serve without.",
    "Call TF_RegisterKernelBuilder in TF_InitKernel, or do not export that function.",
    _HEADER,
    Severity.WARNING,
)
KERNEL_INIT_RETURNS = Rule(
    "KN-005",
    "TF_InitKernel returns: it throws nothing and does not end the process.",
    "The plugin's kernels are refused; TensorFlow's process would end.",
    "Catch every exception in TF_InitKernel; register what can run here and leave out the rest.",
    "C calling convention",
)
COMPUTE_SET = Rule(
    "KN-007",
    "A kernel has a function that computes.",
    "The kernel is left out; TensorFlow calls NULL when the kernel runs.",
    "Pass `compute` to TF_NewKernelBuilder.",
    _HEADER,
    Severity.WARNING,
)
OPERATION_DEFINED = Rule(
    "KN-012",
    "The operation of a kernel is defined, by its plugin or in TensorFlow.",
    "The kernel is listed and cannot run: nobody knows inputs and attributes of its operation.",
    "Register the definition with TF_RegisterOpDefinition, or correct the operation's name.",
    _OBSERVED,
    Severity.WARNING,
)
CONSTRAINED_ATTRIBUTE_EXISTS = Rule(
    "KN-013",
    "An attribute that a kernel constrains exists in its operation and is a type or list of types.",
    "Selecting among the operation's kernels of this device type fails with INVALID_ARGUMENT, also "
    "where another one would fit.",
    "Name in TF_KernelBuilder_TypeConstraint an attribute of kind `type` or `list(type)`.",
    _OBSERVED,
    Severity.WARNING,
)
HOST_ARGUMENT_EXISTS = Rule(
    "KN-014",
    "What a kernel wants in host memory is an input or output of its operation.",
    "Making the kernel fails with INVALID_ARGUMENT.",
    "Name in TF_KernelBuilder_HostMemory an argument of the operation's definition.",
    _OBSERVED,
    Severity.WARNING,
)
KERNEL_UNIQUE = Rule(
    "KN-015",
    "No two kernels are equal in operation, device type, label, constraints and priority.",
    "A call that both serve is ambiguous and fails with INVALID_ARGUMENT.",
    "Register one of them, or give them different priorities or labels.",
    _OBSERVED,
    Severity.WARNING,
)
CONSTRAINTS_AGREE = Rule(
    "KN-016",
    "A kernel has no two constraints of different types on one attribute.",
    _SELECTED_NEVER,
    "Register one kernel for each type: several constraints must all hold.",
    _OBSERVED,
    Severity.WARNING,
)
CONSTRAINT_TYPE_SERVED = Rule(
    "KN-017",
    "A constraint of a kernel names one of the types 1 to 23.",
    "TF_KernelBuilder_TypeConstraint answers UNIMPLEMENTED; the kernel has no such constraint.",
    "Leave the constraint out, or use a type that TensorFlow's interface can constrain.",
    _OBSERVED,
    Severity.WARNING,
)
CONSTRAINT_TYPE_ALLOWED = Rule(
    "KN-020",
    "The type of a constraint is one that the operation allows for the attribute.",
    _SELECTED_NEVER,
    "Remove the kernel, or define the operation with that type.",
    _OBSERVED,
    Severity.WARNING,
)
DEFINITION_WELL_FORMED = Rule(
    "KN-022",
    "A definition of an operation is written in TensorFlow's grammar.",
    "The definition is left out; TensorFlow aborts the whole process.",
    "Correct the text that the message names.",
    "ops.h",
    Severity.WARNING,
)
DEFINITION_UNIQUE = Rule(
    "KN-023",
    "An operation is defined once, or each time in the same way.",
    "The definition that was known first counts; TensorFlow aborts the whole process.",
    "Give the operation a name of its own, or take over the known definition.",
    "ops.h",
    Severity.WARNING,
)
ONE_BEST_KERNEL = Rule(
    "KN-033",
    "One kernel of highest priority matches a call.",
    _CALL,
    "Disable one of the plugins that the message names, or ask for a kernel by its label.",
    _OBSERVED,
)
KERNEL_MATCHES = Rule(
    "KN-034",
    "A kernel matches a call: operation, device type, label and all type constraints.",
    "The call fails with NOT_FOUND, as in TensorFlow; the message lists what is registered.",
    "Convert the inputs to types that the message lists, use another device, or install a plugin "
    "that has such a kernel.",
    _OBSERVED,
)
ONE_DEFAULT_KERNEL = Rule(
    "KN-036",
    "At most one kernel for the device type DEFAULT matches a call, whatever the priorities.",
    _CALL,
    "Disable one of the plugins that the message names, or ask for a kernel by its label.",
    _OBSERVED,
)
LABEL_REGISTERED = Rule(
    "KN-038",
    "A label that a call asks for is that of a registered kernel.",
    "The call fails with NOT_FOUND: kernels without the label do not stand in.",
    "Leave the label out, or ask for one that the message lists.",
    _OBSERVED,
)
OPERATION_KNOWN = Rule(
    "KN-040",
    "An operation that is asked for has a definition.",
    "Nothing is known of its inputs and attributes; the request fails with NOT_FOUND.",
    "Check the spelling (`modular-tf ops` lists all), or load the plugin that defines it.",
    _OBSERVED,
)
ATTRIBUTES_FIT = Rule(
    "KN-041",
    "A call gives the operation's attributes and no others, each with a value of its kind.",
    _CALL,
    "Give the attribute as the message says; the operation's signature shows all.",
    _OBSERVED,
)
INPUTS_FIT = Rule(
    "KN-043",
    "A call has one input for each argument of the operation, and a list where an argument takes "
    "several; lists that share a number have the same length.",
    _CALL,
    "Give the inputs in the order of the operation's signature.",
    _OBSERVED,
)
INPUT_TYPES_AGREE = Rule(
    "KN-044",
    "Inputs have the types that the operation says; those that share a type have the same one.",
    "The call fails with INVALID_ARGUMENT, as in TensorFlow; no input is converted.",
    "Convert the input that the message names.",
    _OBSERVED,
)
ATTRIBUTE_ALLOWED = Rule(
    "KN-045",
    "The value of an attribute is one of those that the operation allows.",
    _CALL,
    "Use a value that the message lists.",
    _OBSERVED,
)
CONSTRUCTION_SUCCEEDS = Rule(
    "KN-060",
    "The function that makes a kernel reports no failure.",
    "The first failure reaches the caller; what the function returned is deleted.",
    "Read the plugin's own message; it names the node that the kernel cannot serve.",
    _OBSERVED,
)
CONSTRUCTION_ENDED = Rule(
    "KN-063",
    "A plugin uses the construction of a kernel only until its function `create` returns.",
    "TensorFlow reads freed memory; here the use is an error.",
    "Copy in `create` what `compute` needs.",
    _HEADER,
)
OUTPUT_ALLOCATED_ONCE = Rule(
    "KN-076",
    "A kernel allocates each output once, and only those that the operation has.",
    "The allocation fails with INTERNAL, as in TensorFlow.",
    "Ask TF_NumOutputs how many there are; keep the tensor instead of allocating again.",
    _OBSERVED,
)
DIMENSIONS_NOT_NEGATIVE = Rule(
    "KN-077",
    "The dimensions of a tensor that a kernel allocates are not negative.",
    _ABORTS,
    "Check the shapes of the inputs before computing that of the output.",
    _OBSERVED,
)
MEMORY_SUFFICES = Rule(
    "KN-078",
    "The device has the memory that a kernel allocates.",
    "The allocation fails with RESOURCE_EXHAUSTED, and so does the call unless the kernel manages.",
    "Use smaller inputs, close arrays that are not needed, or raise the limit of the memory.",
    _OBSERVED,
)
OUTPUT_SET_ONCE = Rule(
    "KN-079",
    "A kernel sets each output once, to a tensor of the output's type.",
    "The call fails; TensorFlow aborts the whole process on the second time.",
    "Set each output once; ask TF_ExpectedOutputDataType for its type.",
    _OBSERVED,
)
OUTPUTS_SET = Rule(
    "KN-080",
    "A kernel that reports no failure has set every output, unless all its inputs are empty.",
    "The call fails with INTERNAL, as in a graph of TensorFlow.",
    "Set every output, with a tensor without elements where there is nothing to compute.",
    _OBSERVED,
)
INDEX_IN_RANGE = Rule(
    "KN-083",
    "An index that a kernel passes is that of an input or output of its node.",
    _ABORTS,
    "Ask TF_NumInputs and TF_NumOutputs how many there are.",
    _OBSERVED,
)
TEMPORARY_ATTRIBUTES_SIZED = Rule(
    "KN-084",
    "The attributes of a temporary tensor are NULL or have their struct_size set.",
    "TF_AllocateTemp fails with INVALID_ARGUMENT, as in TensorFlow.",
    "Set struct_size to TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE.",
    _HEADER,
)
STREAM_AVAILABLE = Rule(
    "KN-085",
    "A kernel asks for a stream only where its device has one.",
    "TF_GetStream gives NULL and FAILED_PRECONDITION, as in TensorFlow.",
    "On a device without streams compute at once.",
    _OBSERVED,
)
COMPUTATION_SUCCEEDS = Rule(
    "KN-087",
    "A kernel reports no failure.",
    "The first failure reaches the caller with the plugin's code and text; outputs are dropped.",
    "Read the plugin's own message; most often an input's shape is not one that it computes.",
    _OBSERVED,
)
COMPUTATION_RETURNS = Rule(
    "KN-088",
    "A kernel's function throws nothing.",
    "TensorFlow's process ends; here the call fails with INTERNAL and the exception's text.",
    "Catch every exception in the kernel, and report it by TF_OpKernelContext_Failure.",
    "C calling convention",
)
INPUTS_LEFT_ALONE = Rule(
    "KN-093",
    "A kernel does not write to inputs that it did not get as memory for an output.",
    "Arrays of the caller, and of other operations, change. The call fails with INTERNAL where the "
    "host looks: at inputs in host memory that are not donated, at most 256 KiB of each, until a "
    "call of the kernel object has succeeded; later calls are not looked at.",
    "Write to tensors of TF_AllocateOutput, TF_AllocateTemp and "
    "TF_ForwardInputOrAllocateOutput only.",
    _HEADER,
)
DONE_ONCE = Rule(
    "KN-095",
    "An asynchronous kernel says once that it is done.",
    "A second time is an error of the kernel; without it the call waits until it is interrupted.",
    "Run `done` exactly once on every way through the kernel, also after a failure.",
    _HEADER,
)
CONTEXT_ENDED = Rule(
    "KN-096",
    "A plugin uses the context of a call only until `compute` returns, or `done` has been run.",
    "TensorFlow reads freed memory; here the use is an error.",
    "Keep tensors instead of the context; finish with it before `done`.",
    _HEADER,
)
FUNCTION_SERVED = Rule(
    "KN-100",
    "A plugin calls only functions that the host has.",
    "The call of the kernel fails, and names the function; nothing returns 0 in silence.",
    "Avoid what needs the function, which the plugin's documentation may name.",
)
HANDLE_ALIVE = Rule(
    "KN-101",
    "A handle is used while it is alive, and as what it is.",
    "TensorFlow reads freed or foreign memory; here the use is an error.",
    "Use no handle after its end, end each once, and pass handles only where they belong.",
)
VARIABLE_USABLE = Rule(
    "KN-102",
    "A kernel reads and assigns variables as their values and types allow.",
    "The call fails with the status that the function for variables gave.",
    "Look at the status of the function; assign a value before reading it.",
    _OBSERVED,
)
