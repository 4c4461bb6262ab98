"""Rules of fills: `mem_zero`, `memset`, `memset32`."""

from __future__ import annotations

from modular_tf.rules import Rule

_HEADER = "device.h"
_WRONG_TENSOR = "Tensors start with wrong numbers, and no operation fails."
_NEIGHBOUR = "A neighbouring tensor changes, in programs that have nothing to do with the fill."
_BYTES = "The size counts bytes, in all three: write exactly so many."

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-223",
        "mem_zero fills the range with 0.",
        _WRONG_TENSOR,
        "Write zeros over `size` bytes.",
        _HEADER,
    ),
    Rule(
        "SE-224",
        "memset fills the range with the byte.",
        _WRONG_TENSOR,
        "Write the pattern over `size` bytes.",
        _HEADER,
    ),
    Rule(
        "SE-225",
        "memset32 fills the range with the number, in the host's byte order.",
        _WRONG_TENSOR,
        "Write the four bytes of the pattern again and again; the size counts bytes, not words.",
        _HEADER,
    ),
    Rule(
        "SE-226",
        "Fills take every pattern, those with the highest bit set too.",
        _WRONG_TENSOR,
        "Keep the pattern unsigned on its way to the device.",
        _HEADER,
    ),
    Rule(
        "SE-227",
        "mem_zero writes no byte beside the range.",
        _NEIGHBOUR,
        _BYTES,
        _HEADER,
    ),
    Rule(
        "SE-228",
        "memset writes no byte beside the range.",
        _NEIGHBOUR,
        _BYTES,
        _HEADER,
    ),
    Rule(
        "SE-229",
        "memset32 writes no byte beside the range.",
        _NEIGHBOUR,
        _BYTES,
        _HEADER,
    ),
    Rule(
        "SE-230",
        "mem_zero and memset take any number of bytes, odd ones and one byte too.",
        "The end of a small tensor keeps what was there before.",
        _BYTES,
        _HEADER,
    ),
    Rule(
        "SE-231",
        "memset32 of a size that is no multiple of 4 writes nothing behind the size.",
        _NEIGHBOUR,
        "Set TF_INVALID_ARGUMENT, or fill whole numbers only.",
        _HEADER,
    ),
    Rule(
        "SE-232",
        "A fill of no bytes succeeds, and writes nothing.",
        "Programs with empty tensors fail.",
        "Return OK where the size is 0, before the driver is asked.",
        _HEADER,
    ),
    Rule(
        "SE-233",
        "A fill of 16 MiB is whole.",
        _WRONG_TENSOR,
        "Look at how large fills are cut into pieces, and at the last piece.",
        _HEADER,
    ),
    Rule(
        "SE-234",
        "A fill happens in the order of its stream.",
        "A tensor is zeroed after it was filled with numbers, or before others have read it.",
        "Enqueue the fill on the stream that it is given.",
        _HEADER,
    ),
)
