"""Calls of the C library and of the kernel that Python has no function for."""

from __future__ import annotations

import os
import signal
from typing import Any

from modular_tf.native.ffi import ffi, lib

_PR_SET_PDEATHSIG = 1


def prctl(option: int, value: int = 0) -> int:
    """Change or read an attribute of this process; `OSError` if the kernel refuses it."""
    return checked("prctl", lib.prctl(option, *_words(value, 0, 0, 0)))


def system_call(number: int, *arguments: Any) -> int:
    """Make a call of the kernel by its number, which differs between machines.

    The arguments are numbers, or memory of cffi. `OSError` if the kernel refuses the call, or does
    not have it.
    """
    return checked(f"system call {number}", lib.syscall(number, *_words(*arguments)))


def checked(name: str, result: int) -> int:
    """Return what a function of `lib` has returned.

    A negative result is raised as an `OSError`: the function has failed, and `errno` says why.
    """
    if result < 0:
        raise OSError(ffi.errno, f"{name}: {os.strerror(ffi.errno)}")
    return result


def _words(*values: Any) -> list[Any]:
    return [ffi.cast("unsigned long", value) for value in values]


def die_with_parent(parent: int, by: int = signal.SIGKILL) -> None:
    """Have the kernel kill this process, by a signal, when the thread that started it ends.

    If the process `parent`, which started this one, is gone already, this one ends at once.
    """
    lib.prctl(_PR_SET_PDEATHSIG, *_words(by))
    if os.getppid() != parent:
        os._exit(1)
