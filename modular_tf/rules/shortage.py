"""Shortages: failures for want of descriptors or memory, which are no verdict on a file.

No descriptor or memory is left, or a signal came in the middle. The same call may succeed a moment
later, so nothing is decided or stored. A handler of an `OSError` first raises a shortage again
(`raise_shortage`), and the call of the service ends with it.
"""

from __future__ import annotations

import errno
import os

from modular_tf.errors import ResourceExhaustedError
from modular_tf.rules.violation import Rule

SHORTAGE = Rule(
    id="LD-113",
    requirement="This process has file descriptors and memory left to examine plugins and to load "
    "them.",
    consequence="The call that meets it raises `ResourceExhaustedError`. Nothing is decided about "
    "a plugin and nothing is stored: the next `load()`, `refresh()` or first use goes on.",
    remedy="Close files, or raise the limits: of descriptors (`ulimit -n`), memory (`ulimit -v`), "
    "or file sizes (`ulimit -f`, also for copies in memory); then call `refresh()`.",
    source="open(2), write(2), errors EMFILE, ENFILE, ENOMEM, EINTR, EAGAIN, EFBIG",
)

_NUMBERS = frozenset(
    (
        errno.EAGAIN,
        errno.EINTR,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOBUFS,
        errno.ENOMEM,
    )
)


class ShortageError(ResourceExhaustedError):
    """This process or machine has too few descriptors or too little memory now."""

    default_errno = errno.EMFILE


def shortage_of(error: BaseException) -> ShortageError | None:
    """Return the shortage in an error, None if it is another error."""
    if isinstance(error, ShortageError):
        return error
    if isinstance(error, MemoryError):
        return _shortage(errno.ENOMEM, None)
    if isinstance(error, OSError) and error.errno is not None:
        # EFBIG without a file's name is of a write, which the limit of file sizes forbids.
        grows = error.errno == errno.EFBIG and error.filename is None
        if grows or error.errno in _NUMBERS:
            return _shortage(error.errno, error.filename)
    return None


def raise_shortage(error: BaseException) -> None:
    """Raise the shortage in an error; return if it is another error."""
    shortage = shortage_of(error)
    if shortage is error:
        raise error
    if shortage is not None:
        raise shortage from error


def _shortage(number: int, path: object) -> ShortageError:
    why = os.strerror(number)
    where = f"{os.fsdecode(path)}: " if isinstance(path, str | bytes) else ""
    is_size = number == errno.EFBIG
    what = "raise the limit (`ulimit -f`)" if is_size else "close files or raise the limits"
    message = f"{where}{why}; {what}, and try again (rule {SHORTAGE})"
    made = ShortageError(message, rule=SHORTAGE)
    made.errno, made.filename = number, path
    return made


def names_shortage(message: str) -> bool:
    """Return whether a message of the C library ends with the words for a shortage."""
    return message.endswith(tuple(os.strerror(number) for number in _NUMBERS))


def require_descriptor() -> None:
    """Raise if no file can be opened now, for functions that hide that they could not open one."""
    try:
        with open(os.devnull, "rb", buffering=0):
            pass
    except OSError as error:
        raise_shortage(error)
