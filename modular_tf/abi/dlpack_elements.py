"""The element types of DLPack: their codes, the names that people use, and who can hold them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["ELEMENT_TYPES", "ElementType", "TypeCode", "by_dtype", "by_name", "by_numpy"]


class TypeCode(IntEnum):
    """The type codes of DLPack (`DLDataTypeCode`)."""

    INT = 0
    UINT = 1
    FLOAT = 2
    OPAQUE_HANDLE = 3
    BFLOAT = 4
    COMPLEX = 5
    BOOL = 6
    FLOAT8_E3M4 = 7
    FLOAT8_E4M3 = 8
    FLOAT8_E4M3B11FNUZ = 9
    FLOAT8_E4M3FN = 10
    FLOAT8_E4M3FNUZ = 11
    FLOAT8_E5M2 = 12
    FLOAT8_E5M2FNUZ = 13
    FLOAT8_E8M0FNU = 14
    FLOAT6_E2M3FN = 15
    FLOAT6_E3M2FN = 16
    FLOAT4_E2M1FN = 17


@dataclass(frozen=True)
class ElementType:
    """One element type of arrays.

    Attributes:
        name: As numpy or ml_dtypes call it.
        code: What its bits mean.
        bits: Of one lane.
        lanes: Values in one element.
        module: The distribution with a numpy dtype of this name, if one has it.
    """

    name: str
    code: TypeCode
    bits: int
    lanes: int = 1
    module: str | None = None

    @property
    def dtype(self) -> tuple[int, int, int]:
        """The three numbers of a `DLDataType`."""
        return int(self.code), self.bits, self.lanes

    @property
    def is_subbyte(self) -> bool:
        """Whether DLPack packs several into one byte; numpy gives each a byte of its own."""
        return self.bits * self.lanes % 8 != 0

    def to_numpy(self) -> Any:
        """Return the `numpy.dtype`; imports numpy or ml_dtypes.

        Raises:
            TypeError: Neither has one.
            ModuleNotFoundError: The one that has is not installed.
        """
        if self.module is None:
            raise TypeError(f"neither numpy nor ml_dtypes has a dtype for {self.name}")
        scalar = getattr(import_module(self.module), self.name)
        return import_module("numpy").dtype(scalar)


def _numpy(code: TypeCode, prefix: str, *widths: int) -> list[ElementType]:
    return [ElementType(f"{prefix}{bits}", code, bits, module="numpy") for bits in widths]


def _ml_dtypes(*codes: TypeCode) -> list[ElementType]:
    """Return the types whose width is in the name of their code, as in FLOAT6_E2M3FN."""
    names = [code.name.lower() for code in codes]
    return [
        ElementType(name, code, int(name[len("float")]), module="ml_dtypes")
        for name, code in zip(names, codes, strict=True)
    ]


ELEMENT_TYPES = (
    ElementType("bool", TypeCode.BOOL, 8, module="numpy"),
    *_numpy(TypeCode.INT, "int", 8, 16, 32, 64),
    *_numpy(TypeCode.UINT, "uint", 8, 16, 32, 64),
    *_numpy(TypeCode.FLOAT, "float", 16, 32, 64),
    *_numpy(TypeCode.COMPLEX, "complex", 64, 128),
    ElementType("complex32", TypeCode.COMPLEX, 32),
    ElementType("bfloat16", TypeCode.BFLOAT, 16, module="ml_dtypes"),
    ElementType("int2", TypeCode.INT, 2, module="ml_dtypes"),
    ElementType("int4", TypeCode.INT, 4, module="ml_dtypes"),
    ElementType("uint2", TypeCode.UINT, 2, module="ml_dtypes"),
    ElementType("uint4", TypeCode.UINT, 4, module="ml_dtypes"),
    *_ml_dtypes(*(code for code in TypeCode if code >= TypeCode.FLOAT8_E3M4)),
    ElementType("float4_e2m1fn_x2", TypeCode.FLOAT4_E2M1FN, 4, lanes=2),
    ElementType("opaque_handle", TypeCode.OPAQUE_HANDLE, 64),
)
"""Every type that has a name. Other widths and lanes are legal, and have none."""

_BY_NAME = {element.name: element for element in ELEMENT_TYPES}
_BY_DTYPE = {element.dtype: element for element in ELEMENT_TYPES}
# The scalar types of numpy that were seen: numpy makes up the name of a dtype each time.
_BY_SCALAR: dict[type, ElementType] = {}


def by_name(name: str) -> ElementType:
    """Return the type of a name.

    Raises:
        ValueError: There is none.
    """
    try:
        return _BY_NAME[name]
    except KeyError:
        known = ", ".join(_BY_NAME)
        raise ValueError(f"DLPack has no element type {name!r}; it has {known}") from None


def by_dtype(dtype: tuple[int, int, int]) -> ElementType:
    """Return the type of three numbers; one that has no name is called by its parts."""
    known = _BY_DTYPE.get(dtype)
    return known or _unnamed(*dtype)


def by_numpy(dtype: Any) -> ElementType:
    """Return the type of a numpy dtype in the machine's byte order.

    Raises:
        ValueError: DLPack cannot describe it.
    """
    if not dtype.isnative or dtype.hasobject or dtype.names is not None:
        raise ValueError(f"DLPack cannot describe elements of numpy dtype {dtype!r}")
    known = _BY_SCALAR.get(dtype.type)
    if known is None:
        known = _BY_SCALAR[dtype.type] = by_name(dtype.name)
    return known


@cache
def _unnamed(code: int, bits: int, lanes: int) -> ElementType:
    base = _BY_DTYPE.get((code, bits, 1))
    kind = TypeCode(code)
    name = base.name if base else f"{kind.name.lower()}{bits}"
    return ElementType(name if lanes == 1 else f"{name}x{lanes}", kind, bits, lanes)
