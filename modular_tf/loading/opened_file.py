"""A library's file, opened once: it is compared, read and mapped through one descriptor.

Even if its path leads to another file after that, the file that runs is the one that was checked.
What is written into that very file shows in its mapping, as with any mapped file; only copies are
safe from it.
"""

from __future__ import annotations

import fcntl
import itertools
import os
from functools import partial
from time import time_ns
from typing import TYPE_CHECKING

from modular_tf.concurrency.owned_file import open_owned, owned
from modular_tf.discovery.file_identity import FileIdentity, sha256_of
from modular_tf.errors import PluginError
from modular_tf.rules.trust import file_changed

if TYPE_CHECKING:
    from io import FileIO

    from modular_tf.discovery.file_identity import SeenFile

# O_NONBLOCK: a FIFO that replaced the file since it was examined must not block the open.
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
DESCRIPTORS = "/proc/self/fd"
_FIRST_FREE = 3  # after the standard streams, which the application may have closed

_numbers = itertools.count(1)


class OpenDescriptor:
    """An open file, which belongs to this object, and a path by which the linker can map it.

    The path `mapped_as` holds in this process alone. No other file ever had it here, so the
    descriptor can be closed once the file is mapped.
    """

    def __init__(self, file: FileIO) -> None:
        self._file = _off_standard_streams(file)
        self.fd = self._number = self._file.fileno()
        self.mapped_as = _unique_path(self.fd)

    @property
    def is_open(self) -> bool:
        """Whether the descriptor is open; one that is kept always is."""
        return not self._file.closed or self.fd != self._number

    def keep(self) -> None:
        """Keep the file open for the life of the process, with another descriptor and path.

        The first one ends with its owner, at the latest with the interpreter, before a sanitizer
        writes its report.
        """
        if self.fd == self._number:
            self.fd = fcntl.fcntl(self.fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
            self.mapped_as = _unique_path(self.fd)

    def close(self) -> None:
        """Close the descriptor unless it is kept; a second call does nothing."""
        self._file.close()


class OpenedFile(OpenDescriptor):
    """One file, open for reading; `seen` is the file when it was checked, None if it was not.

    Raises `PluginError` if it is not the file that was checked (LD-082), and `OSError` if it cannot
    be opened.
    """

    def __init__(self, path: str, seen: SeenFile | None = None) -> None:
        super().__init__(open_owned(path, _OPEN_FLAGS))
        self.path = path  # for people
        self.identity = FileIdentity.of(os.fstat(self.fd))
        self.known_sha256: str | None = None  # expected of its bytes; None if it is not needed yet
        # Whether only a copy can be sure to be what was checked: another file has its place, maybe
        # with the same bytes; or it had changed so shortly before the check that another change may
        # have left the same times.
        self.must_be_copied = False
        if seen is not None:
            try:
                self._take_for(seen)
            except BaseException:
                self.close()
                raise

    def _take_for(self, seen: SeenFile) -> None:
        is_same = seen.identity == self.identity
        if not is_same and seen.sha256 is None:
            raise changed_since(self.path)
        self.known_sha256 = seen.sha256
        if seen.sha256 is not None and not (is_same and seen.is_settled(time_ns())):
            self.must_be_copied = not os.fstatvfs(self.fd).f_flag & os.ST_RDONLY
            if not self.must_be_copied:
                self.sha256()

    def require_unwritten(self) -> None:
        """Raise LD-082 if the open file was written to; called right before it is mapped."""
        now = FileIdentity.of(os.fstat(self.fd))
        if (now.size, now.mtime_ns) != (self.identity.size, self.identity.mtime_ns):
            raise changed_since(self.path)

    def sha256(self) -> str:
        """Return the hash of the bytes; raise LD-082 if that is not what was checked."""
        found = sha256_of(self.fd)
        require_same(self.path, found, self.known_sha256)
        self.known_sha256 = found
        return found

    def may_be(self, sha256: str | None) -> bool:
        """Return whether the bytes may have this hash; True if their hash is unknown."""
        return None in (sha256, self.known_sha256) or sha256 == self.known_sha256


def require_same(path: str, sha256: str, expected: str | None) -> None:
    """Raise LD-082 if a hash differs from the expected one, if that is known."""
    if expected is not None and sha256 != expected:
        raise changed_since(path)


def changed_since(path: str) -> PluginError:
    """Return the error for a file that is not the one that was checked."""
    return file_changed(path).error(PluginError, plugin=path)


def _off_standard_streams(file: FileIO) -> FileIO:
    """Return the same file with a descriptor above those of the standard streams."""
    if file.fileno() >= _FIRST_FREE:
        return file
    with file:
        return owned(partial(fcntl.fcntl, file.fileno(), fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE))


def _unique_path(fd: int) -> str:
    """Return a path to an open file that was never used in this process before.

    glibc tells libraries apart by path. Were the number of a closed descriptor used again, the
    next plugin would silently be the previous one. To the kernel `//` and `/./` are one slash, so
    a running number can be written with them.
    """
    spelling = "".join("./" if bit == "1" else "/" for bit in f"{next(_numbers):b}")
    return f"{DESCRIPTORS}/{spelling}{fd}"
