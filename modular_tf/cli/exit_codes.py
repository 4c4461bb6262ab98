"""The exit codes of `modular-tf`."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes; they are part of the command line's contract.

    Attributes:
        DONE: The command did what was requested.
        NO: A check failed, nothing has that name, an operation failed, or output was not written.
        USAGE: The words of the command, or settings that it was given, make no sense.
        NOTHING: Nothing was found or checked.
        OUR_FAULT: An error of this package; `-v` shows the traceback.
        INTERRUPTED: The user interrupted the command, as shells count the interrupt signal; or
            SIGTERM ended a command that has reported what was known by then.
    """

    DONE = 0
    NO = 1
    USAGE = 2
    NOTHING = 3
    OUR_FAULT = 70
    INTERRUPTED = 130
