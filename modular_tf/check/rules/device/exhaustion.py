"""Rules of what happens where there is no memory, or little."""

from __future__ import annotations

from modular_tf.rules import Rule

_HEADER = "device.h"
_OBSERVED = "TensorFlow 2.21, observed"
_NULL = "Check the size before arithmetic on it, catch every exception, and leave NULL."
_TORN = "What would be an error for one tensor ends the whole process."

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-155",
        "allocate of more than there can be leaves opaque NULL.",
        _TORN,
        _NULL,
        _OBSERVED,
    ),
    Rule(
        "SE-156",
        "allocate of nearly 2^64 bytes leaves opaque NULL.",
        "Rounding up overflows to a small size: tensors write behind their memory.",
        _NULL,
        _HEADER,
    ),
    Rule(
        "SE-157",
        "host_memory_allocate of more than there can be returns NULL.",
        _TORN,
        _NULL,
        _HEADER,
    ),
    Rule(
        "SE-158",
        "unified_memory_allocate of more than there can be returns NULL.",
        _TORN,
        _NULL,
        _HEADER,
    ),
    Rule(
        "SE-159",
        "Many blocks can be held at once, and each keeps its content.",
        "Models that fill the device compute with each other's tensors.",
        "Give each allocation memory of its own until the device has none left.",
        _HEADER,
    ),
    Rule(
        "SE-160",
        "After much memory was given back, as much can be had again.",
        "A peak of memory use is never recovered from.",
        "Join what was given back, or give it back to the system.",
        _HEADER,
    ),
    Rule(
        "SE-161",
        "A failed allocation leaves all other memory as it is, and the device working.",
        "TensorFlow tries smaller sizes after a failure: they must work.",
        "Change nothing before it is known that the memory is there.",
        _OBSERVED,
    ),
    Rule(
        "SE-162",
        "Two thousand small memories can be held at once.",
        "Without use_bfc_allocator each tensor is an allocation: models end with many of them.",
        "Have no fixed table of allocations, or set use_bfc_allocator.",
        _OBSERVED,
    ),
)
