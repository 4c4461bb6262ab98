"""Finding out that a file changed while it was read in pieces."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from modular_tf.errors import AbortedError, ModularTFError
from modular_tf.filesystem.scheme import is_of_this_machine

if TYPE_CHECKING:
    from modular_tf.filesystem.filesystem import Filesystem

_ONE_REQUEST = 1 << 17  # bytes that every plugin reads by one request, so of one version


class UnchangedSource:
    """A file that is the same at the end of a reading as at its begin. [creating thread]

    A file of this machine stays the one that was opened, and may lose its end meanwhile, as a log
    that is rotated. In an object store each request gets the version of its moment: pieces of two
    versions would be joined. There a file that is short, or whose length is not known, is not
    looked at.

    Args:
        filesystem: Where the file is.
        uri: Its name.
        length: Its length in bytes when it was opened; None where it is not known.
    """

    def __init__(self, filesystem: Filesystem, uri: str, length: int | None) -> None:
        self._filesystem = filesystem
        self._uri = uri
        is_long = length is not None and length > _ONE_REQUEST
        self._before = filesystem.stat(uri) if is_long and filesystem.is_object_store else None
        if self._before is not None and self._before.length != length:
            raise _changed(self._uri)
        self._is_here = length is None and is_of_this_machine(filesystem.scheme)
        if self._is_here:
            with suppress(ModularTFError):
                self._before = filesystem.stat(uri)

    def check(self, n_read: int) -> None:
        """Raise unless the file is what it was, or all of it was read that was there at first.

        Args:
            n_read: How many bytes were read.

        Raises:
            AbortedError: It changed.
            NotFoundError: It is gone.
        """
        if self._before is None or (self._is_here and n_read >= self._before.length):
            return
        # The system tells lengths of some files that cannot be read, and these do not change.
        if self._filesystem.stat(self._uri) != self._before:
            raise _changed(self._uri)


def require_all_read(file: IO[bytes], before: os.stat_result, n_read: int) -> None:
    """Return if an open file of this machine gave all bytes that it had, or never had them.

    Args:
        file: Read to its end.
        before: Its statistics before it was read.
        n_read: How many bytes came.

    Raises:
        AbortedError: It lost its end meanwhile.
    """
    if n_read >= before.st_size or not stat.S_ISREG(before.st_mode):
        return
    now = os.fstat(file.fileno())
    # The system tells lengths of some files that cannot be read, and these do not change.
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise _changed(str(file.name))


def _changed(uri: str) -> AbortedError:
    return AbortedError(
        f"read {uri!r}: it changed while it was read; try again", path=uri, operation="read"
    )
