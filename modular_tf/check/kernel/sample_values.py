"""Elements of sample tensors as bytes, and whether two tensors agree."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    from modular_tf.abi.data_types import DataType

_FLOATS = {"float": "f", "double": "d", "half": "e"}
_COMPLEX = {"complex64": "2f", "complex128": "2d"}
_INTEGERS = {
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "int64": "q", "uint64": "Q", "qint8": "b", "quint8": "B", "qint16": "h", "quint16": "H",
    "qint32": "i",
}  # fmt: skip
_TOLERANCES = {"float": 1e-3, "double": 1e-9, "half": 2e-2, "bfloat16": 5e-2}
_MOST = 3


def can_be_sampled(kind: DataType) -> bool:
    """Return whether there are sample values of a type."""
    return kind.name in {*_FLOATS, *_COMPLEX, *_INTEGERS, "bfloat16", "bool"}


def random_elements(kind: DataType, count: int, numbers: random.Random) -> bytes:
    """Return small random elements; integers are not negative, since many are indices."""
    if kind.name in _INTEGERS or kind.name == "bool":
        most = 1 if kind.name == "bool" else _MOST
        return elements_of(kind, [numbers.randint(0, most) for _ in range(count)])
    # Quarters are exact in all types.
    return elements_of(kind, [numbers.randint(-4 * _MOST, 4 * _MOST) / 4 for _ in range(count)])


def elements_of(kind: DataType, values: Iterable[float]) -> bytes:
    """Return numbers as elements of a type."""
    return b"".join(_packed(kind, value) for value in values)


def _packed(kind: DataType, value: float) -> bytes:
    if kind.name in _FLOATS:
        return struct.pack(_FLOATS[kind.name], value)
    if kind.name in _COMPLEX:
        return struct.pack(_COMPLEX[kind.name], value, value)
    if kind.name == "bfloat16":
        return struct.pack("I", struct.unpack("I", struct.pack("f", value))[0])[2:]
    if kind.name == "bool":
        return bytes([bool(value)])
    return struct.pack(_INTEGERS[kind.name], int(value))


def agree(kind: DataType, one: bytes, other: bytes) -> bool:
    """Return whether elements are equal, floating point numbers within the accuracy of the type."""
    if one == other or len(one) != len(other):
        return one == other
    tolerance = _TOLERANCES.get(kind.name)
    if tolerance is None:
        return False
    pairs = zip(_floats(kind, one), _floats(kind, other), strict=True)
    return all(_close(a, b, tolerance) for a, b in pairs)


def _close(one: float, other: float, tolerance: float) -> bool:
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)


def _floats(kind: DataType, elements: bytes) -> Sequence[float]:
    if kind.name == "bfloat16":
        halves = [elements[at : at + 2] for at in range(0, len(elements), 2)]
        return [struct.unpack("f", b"\0\0" + half)[0] for half in halves]
    letter = _FLOATS[kind.name]
    return struct.unpack(f"{len(elements) // kind.size}{letter}", elements)
