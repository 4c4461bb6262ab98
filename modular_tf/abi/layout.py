"""The memory layout of a C struct of the plugin interfaces: names, offsets and sizes.

All numbers are bytes on LP64 (Linux on x86-64 and aarch64).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

POINTER_SIZE = 8


class Kind(Enum):
    """The kind of value in a field, as a reader of its bytes needs it."""

    POINTER = "pointer"
    """To data: a string, a struct, or something only its owner understands."""

    FUNCTION = "function"
    """To code; such a field is a *slot*, and `None`/NULL means "not offered"."""

    SIGNED = "signed"
    UNSIGNED = "unsigned"
    BOOLEAN = "boolean"
    """One byte, 0 or 1 (`bool` or `TF_Bool`)."""

    REAL = "real"
    """A C `double`."""

    STRUCT = "struct"
    """A struct or union by value."""


class Dialect(Enum):
    """The generations of the two interfaces. Their version numbers never moved, so sizes tell.

    Sources: plugins-in-the-wild §1 (filesystem), device-abi §A1 (device).
    """

    FILESYSTEM_V221 = "filesystem-2.21"
    """TensorFlow 2.3 to 2.21: 33 slots; older tables are a shorter front part of it."""

    FILESYSTEM_V222 = "filesystem-2.22"
    """TensorFlow 2.22: the six transaction slots are gone from the middle."""

    DEVICE_RFC = "device-rfc-2020-09-08"
    DEVICE_V205 = "device-2.5"
    """TensorFlow 2.5 and 2.6."""
    DEVICE_V207 = "device-2.7"
    """TensorFlow 2.7 and 2.8."""
    DEVICE_V209 = "device-2.9"
    """TensorFlow 2.9 to 2.21."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct."""

    name: str
    offset: int
    size: int
    kind: Kind

    @property
    def end(self) -> int:
        """Return the offset of the first byte behind the field."""
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class Layout:
    """One struct in one dialect.

    Attributes:
        name: The C name, the same in every dialect.
        dialect: Whose layout this is; `None` when all dialects of the interface share it.
        size: `sizeof`.
        fields: In order of offset.
        struct_size: What `*_STRUCT_SIZE` says, for structs that announce their own size: usually
            the end of the last field, without the padding behind it. `None` for the others.
    """

    name: str
    dialect: Dialect | None
    size: int
    fields: tuple[Field, ...]
    struct_size: int | None = None

    @property
    def slots(self) -> tuple[Field, ...]:
        """Return the function pointers, in order."""
        return tuple(field for field in self.fields if field.kind is Kind.FUNCTION)

    def field(self, name: str) -> Field:
        """Return the field of that name.

        Raises:
            KeyError: The struct has no such field in this dialect.
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"{self.name} has no field {name!r} in {self.dialect or 'any dialect'}")

    def has(self, name: str, size: int) -> bool:
        """Return whether a struct of `size` bytes reaches to the end of the field."""
        return any(field.name == name and field.end <= size for field in self.fields)


def pointer(name: str, offset: int) -> Field:
    """Return a data pointer."""
    return Field(name, offset, POINTER_SIZE, Kind.POINTER)


def signed(name: str, offset: int, size: int = 4) -> Field:
    """Return a signed integer, `int` unless said otherwise."""
    return Field(name, offset, size, Kind.SIGNED)


def unsigned(name: str, offset: int, size: int = 8) -> Field:
    """Return an unsigned integer, `size_t` unless said otherwise."""
    return Field(name, offset, size, Kind.UNSIGNED)


def boolean(name: str, offset: int) -> Field:
    """Return a one-byte truth value."""
    return Field(name, offset, 1, Kind.BOOLEAN)


def functions(names: str, offset: int = 0) -> tuple[Field, ...]:
    """Return a run of slots without gaps, from a blank-separated list of names."""
    return tuple(
        Field(name, offset + POINTER_SIZE * index, POINTER_SIZE, Kind.FUNCTION)
        for index, name in enumerate(names.split())
    )


def sized_header() -> tuple[Field, ...]:
    """Return the first two fields of every struct of the device interface but one."""
    return unsigned("struct_size", 0), pointer("ext", 8)
