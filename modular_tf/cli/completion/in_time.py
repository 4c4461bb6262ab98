"""Names that another process finds out, for as long as somebody waits for them.

A shell stands still until it has its answer, and a plugin's call may take minutes where a store
does not answer. A process that is loading a plugin must not be ended, so it is left to come to its
end by itself; what it learns of plugins is kept for the next time.
"""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn

_PIECE = 2**16
_STANDARD_STREAMS = (0, 1, 2)


def names_in_time(find: Callable[[], Iterable[str]], seconds: float) -> list[str]:
    """Return the names that a function finds, none if it fails or takes longer.

    Args:
        find: What to call, in a child process.
        seconds: How long to wait.
    """
    reader, writer = os.pipe()
    if not os.fork():
        _answer(find, writer)
    os.close(writer)
    received, end = b"", time.monotonic() + seconds
    try:
        while select.select([reader], [], [], max(0.0, end - time.monotonic()))[0]:
            piece = os.read(reader, _PIECE)
            if not piece:
                return [os.fsdecode(name) for name in received.split(b"\0")[:-1]]
            received += piece
    finally:
        os.close(reader)
    return []


def _answer(find: Callable[[], Iterable[str]], writer: int) -> NoReturn:
    """Write the names in a process that holds nothing which the shell waits for."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in _STANDARD_STREAMS:
            os.dup2(null, stream)
        os.dup2(writer, len(_STANDARD_STREAMS))
        os.closerange(len(_STANDARD_STREAMS) + 1, os.sysconf("SC_OPEN_MAX"))
        answer = b"".join(os.fsencode(name) + b"\0" for name in find())
        with os.fdopen(len(_STANDARD_STREAMS), "wb") as output:
            output.write(answer)
    finally:
        os._exit(0)
