"""Rules of device memory."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "device.h"
_OBSERVED = "TensorFlow 2.21, observed"
_CORRUPTS = "Tensors overwrite each other, without an error."
_TRACKS = "Keep a lock and a map from address to size; check it with a random test."

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-130",
        "A function writes no further than its output goes.",
        "The host's memory behind a struct or a handle is overwritten.",
        "Assign the fields of the header's structs; write one pointer for a handle.",
        _HEADER,
    ),
    Rule(
        "SE-131",
        "allocate gives memory of any size that is there, from one byte to 64 MiB.",
        'Tensors of that size cannot be made: "Dst tensor is not initialized".',
        "Round sizes up, not down; fail only where the device has no memory left.",
        _OBSERVED,
    ),
    Rule(
        "SE-132",
        "allocate of 0 bytes gives NULL, or an address that can be given back.",
        "Empty tensors crash the process.",
        "Treat 0 bytes as 1, or leave opaque NULL.",
        _HEADER,
    ),
    Rule(
        "SE-133",
        "allocate writes the size, no less than asked, and leaves struct_size set.",
        "TensorFlow logs an error for a struct_size of 0, and takes the size for the memory's.",
        "Set struct_size, opaque and size in SP_DeviceMemoryBase.",
        _OBSERVED,
    ),
    Rule(
        "SE-134",
        "Addresses of device memory are multiples of 256.",
        "Newer hosts refuse them; 2.21 takes multiples of 64, and arenas lose the rest.",
        "Round addresses up to 256 bytes.",
        "sources of TensorFlow after 2.21",
        Severity.WARNING,
    ),
    Rule(
        "SE-135",
        "Memories that exist at the same time do not overlap.",
        _CORRUPTS,
        _TRACKS,
        _HEADER,
    ),
    Rule(
        "SE-136",
        "Memory keeps its content while other memory comes and goes.",
        _CORRUPTS,
        _TRACKS,
        _HEADER,
    ),
    Rule(
        "SE-137",
        "Memory that was given back can be had again, as often as one likes.",
        'Long runs end with "out of memory".',
        "Release the memory behind the address; TensorFlow passes nothing but that.",
        _OBSERVED,
    ),
    Rule(
        "SE-138",
        "deallocate takes a NULL opaque and does nothing.",
        "A failed allocation is still deallocated, and the process crashes.",
        "Return at once where opaque is NULL.",
        _HEADER,
    ),
    Rule(
        "SE-139",
        "Copies go by the address alone: the payload may be 0.",
        "TensorFlow makes structs of its own with payload 0: each copy of a tensor fails.",
        "Find what belongs to a memory by its address.",
        _OBSERVED,
    ),
    Rule(
        "SE-140",
        "Memory can be given back by another thread than the one that allocated it.",
        "TensorFlow frees tensors where their last user is: memory leaks, or the process crashes.",
        "Keep no lists of memory per thread.",
        _HEADER,
    ),
    Rule(
        "SE-141",
        "Memory can be given back in any order.",
        _CORRUPTS,
        "Do not take memory for a stack.",
        _HEADER,
    ),
    Rule(
        "SE-142",
        "After hundreds of random allocations and deallocations all content is right.",
        _CORRUPTS,
        _TRACKS,
        _HEADER,
    ),
    Rule(
        "SE-143",
        "Allocating and giving back leaves no descriptors and mappings behind.",
        "A long run ends when the system has no more of them.",
        "Unmap and close what a memory needed when it is given back.",
        _HEADER,
    ),
    Rule(
        "SE-329",
        "A plugin writes only into heap blocks of its own, and frees each once.",
        "The damage shows up elsewhere: a crash, or wrong data, in whatever lies beside it.",
        "Run the plugin with AddressSanitizer, and look at the calls before the one that is named.",
        "the C language",
    ),
)
