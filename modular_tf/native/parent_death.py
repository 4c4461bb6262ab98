"""Ending this process together with the one that started it."""

from __future__ import annotations

import os
import signal

from modular_tf.native.ffi import ffi
from modular_tf.native.library import Library

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int, by: int = signal.SIGKILL) -> None:
    """Let the kernel kill this process when the thread that started it ends.

    Args:
        parent: The process id of the one that started this; where it is gone already, this
            process ends at once.
        by: The signal that ends this process.
    """
    libc = Library.find("libc.so.6")
    address = libc.symbol("prctl") if libc is not None else None
    if address is not None:
        prctl = ffi.cast("int (*)(int, unsigned long, ...)", address)
        prctl(_PR_SET_PDEATHSIG, ffi.cast("unsigned long", by))
    if os.getppid() != parent:
        os._exit(1)
