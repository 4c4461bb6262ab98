"""The exit codes of `modular-tf`."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes; they are part of the command line's contract."""

    DONE = 0
    NO = 1  # the answer is no: a check failed, nothing by that name, an operation failed
    USAGE = 2
    NOTHING = 3  # nothing was found or checked
    OUR_FAULT = 70
    INTERRUPTED = 130  # as shells count the interrupt signal
