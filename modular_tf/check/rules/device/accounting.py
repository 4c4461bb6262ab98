"""Rules of what a device tells of its memory."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "device.h"
_OBSERVED = "TensorFlow 2.21, observed"
_MISLEADS = "The figures mislead users who look for a leak or choose a model's size."
_COUNT = "Count under the lock that guards the allocations; deallocate knows the size by address."

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-165",
        "device_memory_usage knows free and total bytes.",
        "TensorFlow does not create the device: it computes its memory limit from them.",
        "Set both and return 1; the host's memory will do for a device that shares it.",
        _OBSERVED,
    ),
    Rule(
        "SE-166",
        "Free bytes are from 0 to the total, and the total is above 0.",
        "The memory limit that a host computes is nonsense.",
        "Report bytes of the device's memory, in 64-bit numbers.",
        _OBSERVED,
    ),
    Rule(
        "SE-167",
        "The total does not change from call to call.",
        "Limits that are a share of the total differ from run to run.",
        "Report the size of the device's memory, not what is free of it.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-169",
        "get_allocator_stats knows the figures.",
        "None: TensorFlow requires the slot and never calls it.",
        "Count allocations, and return 1.",
        _HEADER,
        Severity.NOTE,
    ),
    Rule(
        "SE-170",
        "No figure is negative, and none in use is above its peak.",
        _MISLEADS,
        _COUNT,
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-171",
        "Bytes in use are within the limits that are given.",
        _MISLEADS,
        "Clear has_bytes_limit where there is no limit.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-172",
        "Bytes in use rise with an allocation, and fall when it is given back.",
        _MISLEADS,
        _COUNT,
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-173",
        "Each allocation is counted once.",
        _MISLEADS,
        "num_allocs counts allocations since the device exists; it never falls.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-174",
        "The peak of bytes in use stays when memory is given back.",
        _MISLEADS,
        "Let peak_bytes_in_use only rise.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-175",
        "The largest allocation is at least as large as any that was made.",
        _MISLEADS,
        "Let largest_alloc_size be the largest size so far.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-176",
        "get_allocator_stats leaves struct_size set.",
        "TensorFlow logs an error and has no figures.",
        "Set it to SP_ALLOCATORSTATS_STRUCT_SIZE.",
        _OBSERVED,
        Severity.WARNING,
    ),
    Rule(
        "SE-177",
        "The flags of SP_AllocatorStats are 0 or 1.",
        "A host may compare them with 1.",
        "Zero the struct before filling it.",
        _HEADER,
        Severity.WARNING,
    ),
)
