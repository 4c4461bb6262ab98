"""The standard streams of a command, also if its caller has closed them."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined,unused-ignore]

_OUTPUT = 1
_STANDARD_ERROR = 2
_ACCESS = {0: os.O_WRONLY, _OUTPUT: os.O_RDONLY, _STANDARD_ERROR: os.O_WRONLY}
"""What stands in for a closed stream: input and output then fail, as they should."""


class OutputError(OSError):
    """Standard output cannot be written to any more."""


class _Output(io.FileIO):
    """Standard output, whose failures are told from those of other files."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from None


def prepare() -> None:
    """Make the standard streams usable; a stream that replaced Python's own is left alone.

    A descriptor that the caller has closed is opened, or the next file would get its number, and
    with it all that a plugin prints.
    """
    for descriptor, access in _ACCESS.items():
        try:
            os.fstat(descriptor)
        except OSError:
            os.dup2(os.open(os.devnull, access), descriptor)
            os.set_inheritable(descriptor, True)  # noqa: FBT003
    if sys.stdout is sys.__stdout__:
        sys.stdout = _checked_output(sys.__stdout__)
    if sys.stderr is None:
        sys.stderr = open(  # type: ignore[unreachable,unused-ignore]  # noqa: SIM115
            _STANDARD_ERROR, "w", errors="backslashreplace", closefd=False, encoding="utf-8"
        )


def _checked_output(original: TextIO | None) -> TextIO:
    raw = _Output(_OUTPUT, "w", closefd=False)
    encoding, errors = (
        ("utf-8", "strict") if original is None else (original.encoding, original.errors)
    )
    by_line = raw.isatty() or getattr(original, "write_through", False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=by_line
    )


def give_up(stream: TextIO) -> None:
    """Drop a stream's buffer, which Python would write again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
