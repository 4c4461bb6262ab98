"""Tensors of strings: text and bytes of the caller, as kernels read them and leave them.

Each element is a TF_TString of 24 bytes (`modular_tf/tensor.h`), in host memory on every device.
Those that go in are views of one block of bytes. Those that come out are copied at once.
"""

from __future__ import annotations

import sys
from array import array
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.abi.data_types import by_name
from modular_tf.device.arrays.array_content import MOST_DIMENSIONS, flattened
from modular_tf.errors import InvalidArgumentError, UnimplementedError
from modular_tf.native.ffi import ffi
from modular_tf.native.fresh_host_memory import address_of, fresh_host_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.abi.data_types import DataType

__all__ = ["STRING", "StringContent", "is_text", "string_content", "strings_at"]

STRING = by_name("string")
_SMALL, _LARGE, _VIEW = 0, 1, 3  # the two lowest bits; 2 is at an offset from the element
_WORDS = 3  # of 8 bytes, in an element
_ELEMENT = 8 * _WORDS


class StringContent(NamedTuple):
    """A tensor of strings that goes in."""

    shape: tuple[int, ...]
    elements: memoryview  # their memory, aligned
    text: bytes  # the memory that they are views of


def is_text(value: Any, expected: DataType | None) -> bool:
    """Whether a caller's value is a tensor of strings; bytes are one where that is expected."""
    for _ in range(MOST_DIMENSIONS):
        if not isinstance(value, (list, tuple)):
            break
        if not value:
            return False
        value = value[0]
    if isinstance(value, str):
        return True
    if isinstance(value, bytes):
        return expected is STRING
    numpy = sys.modules.get("numpy")  # an array of numpy's exists only where that was imported
    return numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind in "SUO"


def string_content(op: str, name: str, value: Any) -> StringContent:
    """Return text as elements of a tensor; `str` becomes UTF-8, and what cannot, its bytes.

    The value is `str` or `bytes`, or nested lists or a numpy array of these. Raises
    InvalidArgumentError, which names the operation and the input, if an element is something else.
    """
    is_numpy = hasattr(value, "ravel")
    shape, found = (value.shape, value.ravel().tolist()) if is_numpy else flattened(value)
    texts = [_encoded(op, name, index, each) for index, each in enumerate(found)]
    text = b"".join(texts)
    address = address_of(text)
    words = array("Q")
    for each in texts:
        words.extend((len(each) << 2 | _VIEW, address, 0))
        address += len(each)
    elements = fresh_host_memory(len(texts) * _ELEMENT)
    elements[:] = words.tobytes()
    return StringContent(shape, elements, text)


def _encoded(op: str, name: str, index: int, value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    kind = type(value).__name__
    raise InvalidArgumentError(
        f"{op}: input {name!r}: expected str or bytes, found {kind!r} as element {index}",
        operation=op,
    )


def strings_at(address: int, shape: Sequence[int]) -> Any:
    """Return a copy of the elements at an address: a numpy array of `bytes` objects.

    Raises UnimplementedError if numpy is missing.
    """
    try:
        import numpy as np  # noqa: PLC0415  (heavy, and an extra)
    except ModuleNotFoundError:
        text = "an output has strings, which are arrays of numpy; pip install 'modular_tf[numpy]'"
        raise UnimplementedError(text) from None

    found = np.empty(prod(shape), object)
    for index in range(found.size):
        found[index] = _text_at(address + index * _ELEMENT)
    return found.reshape(tuple(shape))


def _text_at(address: int) -> bytes:
    words = ffi.cast("uint64_t *", address)
    kind = words[0] & 3
    if kind == _SMALL:
        start, size = address + 1, (words[0] & 0xFF) >> 2
    elif kind == _LARGE:
        start, size = words[2], words[0] >> 2
    elif kind == _VIEW:
        start, size = words[1], words[0] >> 2
    else:
        start, size = address + (words[0] >> 32), (words[0] & 0xFFFFFFFF) >> 2
    return bytes(ffi.buffer(ffi.cast("char *", start), size)) if size else b""
