"""Writing a file that the user named: atomically, and regular files only.

Anything else at the path (a link, a device, a FIFO, a directory) is neither replaced nor written
to: it is a mistake, or another user's.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from functools import partial

from modular_tf.discovery.file_identity import kind_in_words

__all__ = ["STANDARD_OUTPUT", "make_directories", "refuse_special", "write_output"]

STANDARD_OUTPUT = "-"
"""Written in the place of a path."""

_NEW_FILE = 0o644


def refuse_special(path: str) -> int | None:
    """Raise OSError if what is there could not be replaced by `write_output`, or not examined.

    Returns the permissions of the file; None where there is none yet.
    """
    if path == STANDARD_OUTPUT:
        return None
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        message = f"is {kind_in_words(mode)}; name a regular file, or a new one"
        raise OSError(errno.EINVAL, f"{message}, or {STANDARD_OUTPUT} for standard output", path)
    return stat.S_IMODE(mode) & 0o777


def write_output(path: str, content: bytes) -> None:
    """Write a file atomically, or `STANDARD_OUTPUT`: readers see the old content or the new.

    A new file gets the mode that the umask allows; one that is replaced keeps its mode. Missing
    directories are made. Raises OSError if it cannot be written, EINVAL for one that is not
    regular; what was there stays.
    """
    if path == STANDARD_OUTPUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    mode = refuse_special(path)
    directory = os.path.dirname(path)
    make_directories(directory)
    temporary = os.path.join(directory, f".modular-tf-{os.urandom(8).hex()}")
    opener = partial(os.open, mode=_NEW_FILE if mode is None else mode & 0o600)
    try:
        with open(temporary, "xb", opener=opener) as stream:
            stream.write(content)
            if mode is not None:
                os.fchmod(stream.fileno(), mode)
        os.replace(temporary, path)  # of a link that came meanwhile, the link itself
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def make_directories(path: str) -> None:
    """Create the missing directories of a path, writable by the user only, whatever the umask.

    Raises OSError if they cannot be created, NotADirectoryError if something else is there.
    """
    if path and not os.path.isdir(path):
        make_directories(os.path.dirname(path))
        with suppress(FileExistsError):
            os.mkdir(path, 0o755)
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
