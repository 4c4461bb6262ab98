"""The data types of TensorFlow's C interface: numbers, names, sizes, and what arrays call them.

Every type is one object of `DATA_TYPES`, so that identity is equality. The numbers are those of
`TF_DataType`; the name is the short one of operation definitions ("float", "half", "int32").
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from modular_tf.abi import dlpack_elements

if TYPE_CHECKING:
    from modular_tf.abi.dlpack_elements import ElementType

__all__ = [
    "CONSTRAINT_NUMBERS",
    "DATA_TYPES",
    "REF_OFFSET",
    "DataType",
    "by_name",
    "by_number",
    "data_type",
    "quantized_number",
    "split_ref",
]

REF_OFFSET = 100
"""The number of a reference to a type is the type's number plus this."""

CONSTRAINT_NUMBERS = range(1, 24)
"""The types that a constraint of a kernel may name."""


@dataclass(frozen=True, eq=False, repr=False)
class DataType:
    """One type of the elements of tensors; two are equal if they are the same object.

    Attributes:
        number: In `TF_DataType`.
        name: As operation definitions call it: "float", "half", "int32".
        size: Bytes of one element in memory. A type below one byte takes a whole one. Zero for
            strings, resources and variants, whose bytes mean nothing without their owner.
        element_name: The element type with which arrays hold its values, as numpy or ml_dtypes
            call it ("float32"); None if arrays cannot.
        is_quantized: Whether its values stand for others: its element type is also that of a type
            of its own (qint8 and int8), which is the one that arrays are taken for.
        element: The element type of DLPack, None if arrays cannot hold the type.
        dlpack: The code, bits and lanes of a `DLDataType`, None likewise. DLPack packs the types
            below one byte; a tensor gives each element a byte.
    """

    number: int
    name: str
    size: int
    element_name: str | None
    is_quantized: bool = False
    element: ElementType | None = field(init=False)
    dlpack: tuple[int, int, int] | None = field(init=False)

    @property
    def is_plain(self) -> bool:
        """Whether an element is its bytes, which may be copied."""
        return self.size > 0

    def __post_init__(self) -> None:
        name = self.element_name
        element = None if name is None else dlpack_elements.by_name(name)
        object.__setattr__(self, "element", element)
        object.__setattr__(self, "dlpack", None if element is None else element.dtype)

    def __index__(self) -> int:
        return self.number

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"data_type({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return by_number, (self.number,)


DATA_TYPES = (
    DataType(1, "float", 4, "float32"),
    DataType(2, "double", 8, "float64"),
    DataType(3, "int32", 4, "int32"),
    DataType(4, "uint8", 1, "uint8"),
    DataType(5, "int16", 2, "int16"),
    DataType(6, "int8", 1, "int8"),
    DataType(7, "string", 0, None),
    DataType(8, "complex64", 8, "complex64"),
    DataType(9, "int64", 8, "int64"),
    DataType(10, "bool", 1, "bool"),
    DataType(11, "qint8", 1, "int8", is_quantized=True),
    DataType(12, "quint8", 1, "uint8", is_quantized=True),
    DataType(13, "qint32", 4, "int32", is_quantized=True),
    DataType(14, "bfloat16", 2, "bfloat16"),
    DataType(15, "qint16", 2, "int16", is_quantized=True),
    DataType(16, "quint16", 2, "uint16", is_quantized=True),
    DataType(17, "uint16", 2, "uint16"),
    DataType(18, "complex128", 16, "complex128"),
    DataType(19, "half", 2, "float16"),
    DataType(20, "resource", 0, None),
    DataType(21, "variant", 0, None),
    DataType(22, "uint32", 4, "uint32"),
    DataType(23, "uint64", 8, "uint64"),
    DataType(24, "float8_e5m2", 1, "float8_e5m2"),
    DataType(25, "float8_e4m3fn", 1, "float8_e4m3fn"),
    DataType(26, "float8_e4m3fnuz", 1, "float8_e4m3fnuz"),
    DataType(27, "float8_e4m3b11fnuz", 1, "float8_e4m3b11fnuz"),
    DataType(28, "float8_e5m2fnuz", 1, "float8_e5m2fnuz"),
    DataType(29, "int4", 1, "int4"),
    DataType(30, "uint4", 1, "uint4"),
    DataType(31, "int2", 1, "int2"),
    DataType(32, "uint2", 1, "uint2"),
    DataType(33, "float4_e2m1fn", 1, "float4_e2m1fn"),
)
"""Every type, in the order of the numbers, which begin at 1."""

_BY_ELEMENT = {
    each.element_name: each for each in DATA_TYPES if each.element_name and not each.is_quantized
}
# float32 is the numpy name of "float"; the short names of operation definitions come first.
_BY_NAME = {**_BY_ELEMENT, **{each.name: each for each in DATA_TYPES}}
# Python's int and float are missing: numpy takes them for 64 bits, TensorFlow for 32. The scalar
# types of numpy are added when they are seen, since numpy makes up the name of a dtype each time.
_BY_CLASS: dict[Any, DataType] = {bool: _BY_NAME["bool"]}
_BY_CLASS |= dict.fromkeys((str, bytes), _BY_NAME["string"])
# The kinds of numpy dtypes for objects, bytes and text.
_TEXT_KINDS = ("O", "S", "U")


def by_number(number: int) -> DataType:
    """Return the type of a number of `TF_DataType`.

    Raises:
        ValueError: There is none. References have none: see `split_ref`.
    """
    if 1 <= number <= len(DATA_TYPES):
        return DATA_TYPES[number - 1]
    raise ValueError(f"TF_DataType has no type {number}; it has 1 to {len(DATA_TYPES)}")


def quantized_number(kind: DataType) -> int:
    """Return the number of a quantized type; 0 for others, which an array's elements tell."""
    return kind.number if kind.is_quantized else 0


def split_ref(number: int) -> tuple[DataType, bool]:
    """Return the type of a number, and whether the number stands for a reference to it.

    Raises:
        ValueError: There is no such type.
    """
    is_ref = number > REF_OFFSET
    return by_number(number - REF_OFFSET if is_ref else number), is_ref


def by_name(name: str) -> DataType:
    """Return the type of a name: "float", "float32" or "DT_FLOAT".

    Raises:
        ValueError: There is none.
    """
    short = name[len("DT_") :].lower() if name.startswith("DT_") else name
    known = _BY_NAME.get(short)
    if known is None:
        names = ", ".join(each.name for each in DATA_TYPES)
        raise ValueError(f"TensorFlow has no data type {name!r}; it has {names}")
    return known


def data_type(value: Any) -> DataType:
    """Return the type that a value names.

    Args:
        value: A `DataType`, a name, a number, a numpy or ml_dtypes dtype or scalar type, an
            `ElementType`, or one of Python's types bool, str and bytes. numpy is not imported.

    Raises:
        ValueError: Tensors do not have such elements.
        TypeError: The value names no type.
    """
    if isinstance(value, DataType):
        return value
    if isinstance(value, str):
        return by_name(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return by_number(value)
    return _by_class(value) if isinstance(value, type) else _by_dtype(value)


_numpy: list[Any] = []  # once its import has ended: the statement takes as long as a short call


def imported_numpy() -> Any:
    """Return numpy where it was imported, else None; waits for a thread that is importing it."""
    if _numpy:
        return _numpy[0]
    if sys.modules.get("numpy") is None:
        return None
    import numpy as np  # noqa: PLC0415  (only where that was done already)

    _numpy[:] = [np]
    return np


def _by_class(value: type) -> DataType:
    """Return the type of a scalar type, as `bool` and `numpy.float32` are."""
    known = _BY_CLASS.get(value)
    if known is not None:
        return known
    numpy = imported_numpy()
    if numpy is None or not issubclass(value, numpy.generic):
        raise TypeError(f"{value.__name__} names no data type; write a width, as in 'float32'")
    return _by_dtype(numpy.dtype(value))


def _by_dtype(value: Any) -> DataType:
    """Return the type of an object with a name: a dtype of numpy, an element type of DLPack."""
    is_native = getattr(value, "isnative", None)
    if is_native is None:
        return _by_name_of(value)
    if not is_native:
        raise ValueError(f"tensors hold no elements of {value!r}: swap the bytes first")
    known = _BY_CLASS.get(value.type)
    if known is None:
        known = _BY_NAME["string"] if value.kind in _TEXT_KINDS else _by_name_of(value)
        _BY_CLASS[value.type] = known
    return known


def _by_name_of(value: Any) -> DataType:
    name = getattr(value, "name", None)
    if not isinstance(name, str):
        raise TypeError(f"{value!r} names no data type; write a name, as in 'float32'")
    return by_name(name)
