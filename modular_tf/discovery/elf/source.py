"""Bounds-checked reads from one open file.

By pread, not by mmap: a file that is truncated while it is mapped kills the reader with
SIGBUS, and a plugin that is just being copied into a drop-in directory is such a file.
"""

from __future__ import annotations

import os
import stat

from modular_tf.concurrency.owned_file import open_owned
from modular_tf.discovery.file_identity import OPEN_FLAGS, kind_in_words
from modular_tf.errors import ElfError
from modular_tf.rules import loading as rules
from modular_tf.rules.shortage import raise_shortage

# Linkers put the tables that a probe wants first; most small libraries fit as a whole.
_HEAD_BYTES = 64 * 1024
# No table of a real library comes near; a sparse file could claim one of terabytes.
_MAX_READ = 256 * 1024 * 1024


class ByteSource:
    """A regular file, open for reading; close it after use. [any thread, one at a time]"""

    def __init__(self, path: str) -> None:
        """Open a regular file for reading."""
        self.path = path
        self.name = os.path.basename(path) or path  # the subject of messages
        try:
            self._require_regular(os.stat(path).st_mode)
            self._file = open_owned(path, OPEN_FLAGS)
        except (OSError, ValueError) as error:
            raise self._cannot_read(error) from error
        try:
            found = os.fstat(self._file.fileno())
            self._require_regular(found.st_mode)
            self.size = found.st_size  # in bytes, when it was opened
            self.identity = (found.st_dev, found.st_ino)
            self._head = os.pread(self._file.fileno(), _HEAD_BYTES, 0)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise self._cannot_read(error) from error
            raise

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._file.close()

    def read(self, offset: int, n_bytes: int, what: str) -> bytes:
        """Return exactly `n_bytes` from `offset`; `what` names them in the error.

        Raises `ElfError` if they do not all lie inside the file (LD-005) or cannot be read
        (LD-003), and `ShortageError`.
        """
        end = offset + n_bytes
        if offset < 0 or n_bytes < 0 or end > self.size:
            raise self.damaged(f"{what} would end at byte {end}, the file has {self.size}")
        if end <= len(self._head):
            return self._head[offset:end]
        if n_bytes > _MAX_READ:
            raise self.damaged(f"{what} claims {n_bytes} bytes, more than any real library has")
        return self._read_beyond_head(offset, n_bytes, what)

    def read_up_to(self, offset: int, n_bytes: int, what: str) -> bytes:
        """Return up to `n_bytes` from `offset`, fewer only at the end of the file."""
        return self.read(offset, max(0, min(n_bytes, self.size - offset)), what)

    def damaged(self, what: str) -> ElfError:
        """Return the error for a file that contradicts itself."""
        return self.error(rules.WHOLE_ELF, f"is cut off or damaged: {what}")

    def error(self, rule: str, what: str) -> ElfError:
        """Return the error that says `what` of this file."""
        return ElfError(f"{self.name} {what}", path=self.path, rule=rule)

    def _read_beyond_head(self, offset: int, n_bytes: int, what: str) -> bytes:
        try:
            data = os.pread(self._file.fileno(), n_bytes, offset)
        except (OSError, ValueError) as error:
            raise self._cannot_read(error) from error
        if len(data) != n_bytes:
            raise self.damaged(f"{what} ends early; the file shrank while it was read")
        return data

    def _require_regular(self, mode: int) -> None:
        if not stat.S_ISREG(mode):
            raise self.error(rules.REGULAR_FILE, f"is {kind_in_words(mode)}, not a regular file")

    def _cannot_read(self, error: OSError | ValueError) -> ElfError:
        raise_shortage(error)
        if isinstance(error, FileNotFoundError) and os.path.islink(self.path):
            what = f"is a symbolic link to {os.readlink(self.path)!r}, which does not exist"
            return self.error(rules.REGULAR_FILE, what)
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return self.error(rules.READABLE, f"cannot be read: {reason}")
