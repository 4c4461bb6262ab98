"""Rules of host and unified memory that the plugin allocates."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "device.h"
_OBSERVED = "TensorFlow 2.21, observed"
_CORRUPTS = "Data of the host is overwritten, without an error."

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-145",
        "host_memory_allocate gives memory that the host can read and write to its end.",
        "Staging buffers of copies crash the process.",
        "Allocate at least the size asked, pinned or not.",
        _HEADER,
    ),
    Rule(
        "SE-146",
        "Addresses of host memory are multiples of 256; TensorFlow up to 2.21 takes those of 64.",
        "Hosts after TensorFlow 2.21 refuse other multiples of 64; vector code crashes below that.",
        "Use aligned_alloc(256, ...), or what the driver has for pinned memory.",
        _OBSERVED,
        Severity.WARNING,
    ),
    Rule(
        "SE-147",
        "Host memories that exist at the same time do not overlap, and keep their content.",
        _CORRUPTS,
        "Give each allocation memory of its own.",
        _HEADER,
    ),
    Rule(
        "SE-148",
        "Host memory that was given back can be had again, as often as one likes.",
        "Pinned memory is scarce: long runs end without any.",
        "Release the memory in host_memory_deallocate.",
        _HEADER,
    ),
    Rule(
        "SE-149",
        "unified_memory_allocate gives memory that the host can read and write to its end.",
        "A program that uses the shared memory crashes.",
        "Allocate at least the size asked, or clear SP_Platform.supports_unified_memory.",
        _HEADER,
    ),
    Rule(
        "SE-150",
        "Unified memories that exist at the same time do not overlap, and keep their content.",
        _CORRUPTS,
        "Give each allocation memory of its own.",
        _HEADER,
    ),
    Rule(
        "SE-151",
        "The device sees in unified memory what the host has written there.",
        "The device works with old bytes.",
        "Make the host's writes visible before each operation that uses the memory.",
        _HEADER,
    ),
    Rule(
        "SE-152",
        "Host memory can be allocated and given back by several threads at once.",
        _CORRUPTS,
        "Guard what the calls share.",
        _HEADER,
    ),
)
