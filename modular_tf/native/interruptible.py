"""Handles that no interrupt can lose.

A signal handler runs as soon as a call of a C function has returned. Where it raises, the result of
the call is lost before a line of this package has seen it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.native._dlpack import owned_pointer
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Callable

_ADDRESS = ffi.typeof("uintptr_t")
_cast = ffi.cast


class Release:
    """A function of the core, by its name, that releases a handle; NULL is nothing to it."""

    __slots__ = ("address", "call")

    def __init__(self, name: str) -> None:
        self.call = getattr(lib, name)
        self.address = address_of(ffi.addressof(lib, name))


def address_of(pointer: Any) -> int:
    """Return the address that a C pointer holds, 0 for NULL."""
    return int(_cast(_ADDRESS, pointer))


def opened(
    release: Release, place: Any, call: Callable[..., Any], *arguments: Any
) -> tuple[Any, Any, object]:
    """Call a function that opens something; return its error, what it opened, and its owner.

    `place`, one of the arguments, is where the function puts what it opens: a pointer to NULL.
    `release` ends what was opened when nobody references the owner any more. The owner is not
    `ffi.gc`, which the collector may finalize before the finalizer of a stream that still writes to
    it.
    """
    is_owned = False
    try:
        error = call(*arguments)
        made = place[0]
        if not made:
            return error, None, None
        address = address_of(made)
        is_owned = True
        return error, made, owned_pointer(address, release.address)
    except BaseException:
        if not is_owned:
            release.call(place[0])
        raise
