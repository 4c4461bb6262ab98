"""Rules of kernels beyond what registering and running them needs: what a kernel must do."""

from __future__ import annotations

from modular_tf.rules import Rule

_OBSERVED = "TensorFlow 2.21, observed"
_HEADER = "kernels.h"

RULES = (
    Rule(
        "KN-061",
        "A kernel reports a missing attribute as a failure.",
        "It ends the process, or throws, for a node that lacks an attribute.",
        "Look at the status of each TF_OpKernelConstruction_GetAttr function; pass it to "
        "TF_OpKernelConstruction_Failure where it is not OK.",
        _OBSERVED,
    ),
    Rule(
        "KN-062",
        "Two objects of a kernel can be made at once, and one be deleted while the other works.",
        "TensorFlow makes two where two threads ask for the same kernel, and deletes one.",
        "Let objects share nothing that is not guarded, and delete only what is an object's own.",
        _OBSERVED,
    ),
    Rule(
        "KN-090",
        "A kernel deletes every tensor that it was given.",
        "Memory grows with every call.",
        "Call TF_DeleteTensor for each tensor of TF_GetInput, TF_AllocateOutput and "
        "TF_AllocateTemp, on every way through `compute`.",
        _HEADER,
    ),
    Rule(
        "KN-091",
        "A kernel gives equal results when four threads use one object of it.",
        "Models that run steps side by side compute something else each time.",
        "Keep what changes during a call on its stack, or guard it by a lock.",
        _OBSERVED,
    ),
    Rule(
        "KN-092",
        "A kernel object gives the same result for another shape as a new one does.",
        "Results depend on what was computed before.",
        "Keep nothing of the shape of one call for the next.",
        _OBSERVED,
    ),
    Rule(
        "KN-099",
        "The results of well-known operations are those of numpy, within the type's accuracy.",
        "Models compute something else than on other devices.",
        "Compare the kernel with TensorFlow's own for the inputs that the message names.",
        "numpy",
    ),
    Rule(
        "KN-103",
        "A kernel writes only to memory that is its own, and frees each block once.",
        "The process ends at some later moment, in code that has nothing to do with it.",
        "Run the calls of the message under AddressSanitizer.",
        "C",
    ),
)
