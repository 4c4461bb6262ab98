"""Writing a file of this machine so that it is whole or as it was."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNFINISHED = ".mtf-copy-"


@contextmanager
def arriving_file(path: str) -> Iterator[IO[bytes]]:
    """Open a file for writing, which takes its name when the block ends without an error.

    Missing directories are made. A file that is replaced keeps its mode, and a link what it leads
    to; until then nobody else reads what arrives. What is no regular file, as a pipe, and a file in
    a directory that takes no new ones are written to as they are.
    """
    target = os.path.realpath(path)
    directory = os.path.dirname(target)
    os.makedirs(directory, exist_ok=True)
    if not _may_be_replaced(target, directory):
        with open(target, "wb") as file:
            yield file
        return
    unfinished = os.path.join(directory, f"{_UNFINISHED}{os.urandom(8).hex()}")
    try:  # begins before the file exists: an interrupt may come between any two steps
        mode = 0o600 if os.path.exists(target) else 0o666  # less the umask

        def opener(name: str, flags: int) -> int:
            return os.open(name, flags, mode)

        with open(unfinished, "xb", opener=opener) as file:
            yield file
        with suppress(FileNotFoundError):
            shutil.copymode(target, unfinished)
        os.replace(unfinished, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise


def _may_be_replaced(target: str, directory: str) -> bool:
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(target).st_mode):
            return False
    return os.access(directory, os.W_OK | os.X_OK)
