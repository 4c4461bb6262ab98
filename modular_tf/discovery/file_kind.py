"""The kind of a file in words, for messages."""

from __future__ import annotations

import stat

__all__ = ["kind_in_words"]

_WORDS = (
    (stat.S_ISREG, "a regular file"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def kind_in_words(mode: int) -> str:
    """Return the kind of file of an `st_mode`, such as "a directory"."""
    return next((words for test, words in _WORDS if test(mode)), "something special")
