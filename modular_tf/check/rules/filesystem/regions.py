"""Rules of files that are offered as memory."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_OPENING = "filesystem.h, new_read_only_memory_region_from_file"
_REGION = "filesystem.h, TF_ReadOnlyMemoryRegionOps"
_WRONG_CODE = "Callers tell cases apart by the code: they take the wrong branch, or give up."

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-199",
        "A region of a file has the file's length and its bytes.",
        "Models that are mapped, as by ImmutableConst, hold wrong values.",
        "Return the file's length from length, and its first byte from data.",
        _REGION,
    ),
    Rule(
        "FS-200",
        "A region of an empty file is INVALID_ARGUMENT.",
        "Callers get a region with no memory behind it.",
        "Look at the length first, and set TF_INVALID_ARGUMENT where it is 0.",
        _OPENING,
    ),
    Rule(
        "FS-201",
        "A region of a missing name, or of one in a missing directory, is NOT_FOUND.",
        _WRONG_CODE,
        "Set TF_NOT_FOUND, as when a file is opened for reading.",
        _OPENING,
    ),
    Rule(
        "FS-202",
        "A region of a directory, or of a name below a file, is FAILED_PRECONDITION.",
        _WRONG_CODE,
        "Set TF_FAILED_PRECONDITION, as when a file is opened for reading.",
        _OPENING,
    ),
    Rule(
        "FS-203",
        "data and length answer the same on every call and thread until cleanup.",
        "Tensors point into memory that has moved.",
        "Get the memory once, in new_read_only_memory_region_from_file.",
        _REGION,
    ),
    Rule(
        "FS-204",
        "The memory of a region is aligned to 64 bytes.",
        "TensorFlow refuses to make tensors of it: ImmutableConst answers INTERNAL.",
        "Map the file, or allocate with aligned_alloc(64, ...).",
        "TensorFlow 2.21, observed",
        Severity.WARNING,
    ),
    Rule(
        "FS-205",
        "A region outlives its file, and mapping again and again leaves nothing behind.",
        "A model that is replaced on disk takes its users down, or memory runs out.",
        "Hold the file's memory until cleanup, and release mapping and descriptor there.",
        _REGION,
        Severity.WARNING,
    ),
)
