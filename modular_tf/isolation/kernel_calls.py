"""Calls of the kernel that Python has no function for."""

from __future__ import annotations

from typing import Any

from modular_tf.native.ffi import ffi
from modular_tf.native.library import process_symbol

_PRCTL = "int (*)(int, unsigned long, unsigned long, unsigned long, unsigned long)"
_SYSCALL = "long (*)(long, unsigned long, unsigned long, unsigned long, unsigned long)"


def prctl(option: int, *arguments: int) -> int:
    """Change or ask for an attribute of this process.

    Raises:
        OSError: The kernel refuses it.
    """
    return _call("prctl", _PRCTL, option, arguments)


def system_call(number: int, *arguments: int) -> int:
    """Make a call by its number.

    Raises:
        OSError: The kernel refuses it, or does not have it.
    """
    return _call("syscall", _SYSCALL, number, arguments)


def address_of(memory: Any) -> int:
    """Return the address of what cffi has allocated; it lives no longer than that object."""
    return int(ffi.cast("uintptr_t", memory))


def _call(name: str, form: str, first: int, others: tuple[int, ...]) -> int:
    address = process_symbol(name)
    if address is None:
        raise OSError(38, name)
    padded = (*others, *(0 for _ in range(4 - len(others))))
    result = int(ffi.cast(form, address)(first, *padded))
    if result < 0:
        raise OSError(ffi.errno, name)
    return result
