"""Files that have an owner from the system call on, so that an interrupt leaves none open."""

from __future__ import annotations

import os
from functools import partial
from io import FileIO
from typing import Any


def open_owned(*arguments: Any, **named: Any) -> FileIO:
    """Open a file for whoever needs its descriptor; the arguments are those of `os.open`.

    A signal handler that raises may come after any call, also between `os.open` and the line that
    keeps the number that it returned. So only functions of C run until the descriptor has its
    owner, which closes it when it is dropped.

    Raises:
        OSError: As `os.open`; or it is a directory.
    """
    return next(map(FileIO, iter(partial(os.open, *arguments, **named), None)))
