"""The shared libraries that are mapped into this process, and the library of an address."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

from modular_tf.native.ffi import ffi, lib
from modular_tf.native.status import check
from modular_tf.native.strings import decode_pointer, encode

RTLD_DEEPBIND = 0x8
_USUAL_SIZE = 32_768  # of the names and addresses of some hundred libraries
RTLD_NOW_LOCAL = os.RTLD_NOW | os.RTLD_LOCAL

# The dynamic linker knows a private copy by a descriptor's path, the user by the file's.
_shown_as: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class AddressOwner:
    """The library and symbol at an address.

    `path` is the file of the mapped object. `symbol` is the nearest exported one at or below the
    address, None for a local function; `offset` is the distance from it, or from the object's base.
    """

    path: str
    symbol: str | None
    offset: int


class MappedObject(NamedTuple):
    """A library or program in this process, as the dynamic linker knows it.

    `path` is that by which it was mapped; another file may be there by now.
    """

    path: str
    address: int


class Library:
    """A mapped library. It is never unmapped: code of it may run at any time. [any thread]

    `path` is the file on disk that the user knows, `handle` that of `dlopen`.
    """

    __slots__ = ("handle", "path")

    def __init__(self, path: str, handle: Any) -> None:
        self.path = path
        self.handle = handle

    @classmethod
    def open(cls, path: str, flags: int = RTLD_NOW_LOCAL) -> Library:
        """Map a library and run its constructors.

        `NotFoundError` has the message of the dynamic linker that refused.
        """
        handle = ffi.new("void **")
        check(lib.mtf_library_open(os.fsencode(path), flags, handle))
        return cls(path, handle[0])

    @classmethod
    def find(cls, path: str) -> Library | None:
        """Return the library that is mapped from this path already, None if there is none."""
        handle = lib.mtf_library_find(os.fsencode(path))
        return cls(path, handle) if handle else None

    @staticmethod
    def address_of(path: str) -> int | None:
        """Return the address of the library that is mapped from this file, None if none is.

        No other library may ever have been mapped by this path: it becomes a name of this one.
        """
        address = ffi.new("uintptr_t *")
        return int(address[0]) if lib.mtf_library_address(os.fsencode(path), address) else None

    @property
    def name(self) -> str:
        """The name of the library's file."""
        return os.path.basename(self.path)

    def symbol(self, name: str) -> int | None:
        """Return the address of an exported symbol, None when there is none."""
        address = lib.mtf_library_symbol(self.handle, encode(name))
        return int(ffi.cast("uintptr_t", address)) or None


def mapped_objects() -> list[MappedObject]:
    """Return the mapped libraries of this process, in the order of mapping. [any thread]"""
    unused = ffi.new("uint64_t *")
    size, needed = 0, _USUAL_SIZE
    while needed > size:  # others may be mapped meanwhile
        size = needed + _USUAL_SIZE
        buffer = ffi.new("char[]", size)
        needed = lib.mtf_mapped_objects(buffer, size, unused)
    found, at, data = [], 0, bytes(ffi.buffer(buffer, needed))
    while at < needed:
        end = data.index(b"\0", at + 8)
        address = int.from_bytes(data[at : at + 8], sys.byteorder)
        found.append(MappedObject(os.fsdecode(data[at + 8 : end]), address))
        at = end + 1
    return found


def mapped_since(path: str) -> list[MappedObject]:
    """Return the libraries mapped after the one with this path. [any thread]"""
    objects = mapped_objects()
    return objects[[mapped.path for mapped in objects].index(path) + 1 :]


def unmapped_count() -> int:
    """Return how many libraries were unmapped since this process began. [any thread]"""
    count = ffi.new("uint64_t *")
    lib.mtf_mapped_objects(ffi.NULL, 0, count)
    return int(count[0])


def process_symbol(name: str) -> int | None:
    """Return the address of a global symbol of the process, None if it is not defined."""
    default_scope = ffi.NULL  # RTLD_DEFAULT
    address = lib.mtf_library_symbol(default_scope, encode(name))
    return int(ffi.cast("uintptr_t", address)) or None


def show_as(mapped: str, path: str) -> None:
    """Set the path of the file that is reported for a library mapped by another path."""
    _shown_as[mapped] = path


def is_executable(address: int) -> bool:
    """Return whether an address lies in an executable mapping."""
    return bool(lib.mtf_is_executable(ffi.cast("void *", address)))


def address_owner(address: int) -> AddressOwner | None:
    """Return the mapped object and symbol at an address, None when no object holds it."""
    owner = ffi.new("mtf_address_owner *")
    if not lib.mtf_address_owner_of(ffi.cast("void *", address), owner):
        return None
    start = owner.symbol_address or owner.base
    path = decode_pointer(owner.path) or ""
    return AddressOwner(
        path=_shown_as.get(path, path),
        symbol=decode_pointer(owner.symbol),
        offset=address - int(ffi.cast("uintptr_t", start)),
    )
