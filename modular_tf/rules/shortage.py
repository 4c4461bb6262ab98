"""Shortages: failures that tell of this process or machine, and nothing of the file in question.

No descriptor or memory is left, or a signal came in the middle. That is no verdict on the file, and
nothing to keep: the same call may succeed a moment later. So a handler that makes something of an
`OSError` first passes a shortage on (`raise_shortage`), and whoever takes plugins on their way says
that this one could not be looked at now.
"""

from __future__ import annotations

import errno
import os

from modular_tf.errors import ResourceExhaustedError
from modular_tf.rules import Rule

__all__ = [
    "SHORTAGE",
    "ShortageError",
    "names_shortage",
    "raise_shortage",
    "require_descriptor",
    "shortage_of",
]

SHORTAGE = Rule(
    id="LD-113",
    requirement="This process has file descriptors and memory left to look at plugins and to load "
    "them.",
    consequence="What could not be looked at is left out for now. Nothing is decided about it and "
    "nothing is kept: the next `load()`, `refresh()` or first use looks again.",
    remedy="Close files, or raise the limit (`ulimit -n`, RLIMIT_NOFILE); then call `refresh()`.",
    source="open(2), errors EMFILE, ENFILE, ENOMEM, EINTR, EAGAIN",
)


RULES: tuple[Rule, ...] = (SHORTAGE,)

_NUMBERS = frozenset(
    (errno.EAGAIN, errno.EINTR, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
)


class ShortageError(ResourceExhaustedError):
    """This process or machine has too little of something now; it says nothing of the file."""

    default_errno = errno.EMFILE


def shortage_of(error: BaseException) -> ShortageError | None:
    """Return the shortage that an error tells of, None where it tells of something else."""
    if isinstance(error, ShortageError):
        return error
    if isinstance(error, MemoryError):
        return _shortage(errno.ENOMEM, None)
    if isinstance(error, OSError) and error.errno in _NUMBERS:
        return _shortage(error.errno, error.filename)
    return None


def raise_shortage(error: BaseException) -> None:
    """Raise the shortage that an error tells of; return where it tells of something else."""
    shortage = shortage_of(error)
    if shortage is error:
        raise error
    if shortage is not None:
        raise shortage from error


def _shortage(number: int, path: object) -> ShortageError:
    why = os.strerror(number)
    where = f"{os.fsdecode(path)}: " if isinstance(path, str | bytes) else ""
    message = f"{where}{why}; close files or raise the limits, and try again (rule {SHORTAGE})"
    made = ShortageError(message, rule=SHORTAGE)
    made.errno, made.filename = number, path
    return made


def names_shortage(message: str) -> bool:
    """Tell whether a message of the C library ends with the words for a shortage."""
    return message.endswith(tuple(os.strerror(number) for number in _NUMBERS))


def require_descriptor() -> None:
    """Check that a file can be opened, where a function hides that it could not open one.

    Raises:
        ShortageError: None can be opened now.
    """
    try:
        with open(os.devnull, "rb", buffering=0):
            pass
    except OSError as error:
        raise_shortage(error)
