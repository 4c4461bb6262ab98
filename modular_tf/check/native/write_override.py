"""Rights that let a process write where permissions forbid it, put aside for a while.

Linux keeps them for each thread; see capabilities(7).
"""

from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_VERSION = 0x20080522  # _LINUX_CAPABILITY_VERSION_3: two words of each set
_OVERRIDES = 1 << 1 | 1 << 2 | 1 << 3  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


@contextmanager
def without_write_override() -> Iterator[None]:
    """Let permissions hold for the calling thread within the block, even where it is root's.

    Raises:
        OSError: The system refuses.
    """
    before = _call("capget")
    within = type(before)(*before)
    within[0].effective &= ~_OVERRIDES
    _call("capset", within)
    try:
        yield
    finally:
        _call("capset", before)


def _call(function: str, sets: ctypes.Array[_Sets] | None = None) -> ctypes.Array[_Sets]:
    given = (_Sets * 2)() if sets is None else sets
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(ctypes.byref(_Header(_VERSION, 0)), given) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), function)
    return given
