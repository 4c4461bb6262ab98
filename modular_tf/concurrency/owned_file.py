"""Files that have an owner from the system call on, so that an interrupt leaves none open.

A signal handler that raises may come after any call, also between `os.open` and the line that keeps
the number that it returned. So only functions of C run until the descriptor has its owner, which
closes it when it is dropped. The owner of a file is a `FileIO`, which cannot own a directory; that
of a directory is an `epoll`, which asks nothing of what it is given.
"""

from __future__ import annotations

import os
import select
from functools import partial
from io import FileIO
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def open_owned(*arguments: Any, **named: Any) -> FileIO:
    """Open a file and return the owner of its descriptor; arguments as for `os.open`."""
    return owned(partial(os.open, *arguments, **named))


def owned(make: Callable[[], int]) -> FileIO:
    """Return the owner of what a function of C, or a `partial` of one, makes: no directory."""
    try:
        return next(map(FileIO, iter(make, None)))
    except IsADirectoryError as error:
        if isinstance(error.filename, int):  # `FileIO` refused the descriptor, and left it open
            os.close(error.filename)
        raise


def open_owned_directory(*arguments: Any, **named: Any) -> select.epoll:
    """Open a directory; its owner has `fileno` and `close`. Arguments as for `os.open`."""
    return next(map(select.epoll.fromfd, iter(partial(os.open, *arguments, **named), None)))


def owned_pipe() -> tuple[FileIO, FileIO]:
    """Return the end of a new pipe to read from, and the end to write to."""
    reads, writes = map(FileIO, islice(chain.from_iterable(iter(os.pipe, None)), 2))
    return reads, writes
