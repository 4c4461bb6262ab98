"""One file whose trust is checked, and its bytes, read only if a rule needs them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from time import time_ns

from modular_tf.discovery.boot_id import boot_id
from modular_tf.discovery.file_identity import FileIdentity, SeenFile, of_same_file, sha256_of

__all__ = ["JudgedFile", "KnownHash"]

KnownHash = Callable[[str, FileIdentity], "str | None"]
"""Returns the SHA-256 of a file by path and identity, None where it is not known."""

_AT_ONCE = 1 << 20


class JudgedFile:
    """A file whose trust is checked. [any thread, one at a time]

    Attributes:
        path: The path that was given.
        real_path: The same without links.
        identity: Which file was looked at, and when that changed last.

    Args:
        status: What the system says of it now.
        known_sha256: Where to ask before the bytes are read.
    """

    def __init__(
        self, path: str, real_path: str, status: os.stat_result, known_sha256: KnownHash | None
    ) -> None:
        self.path = path
        self.real_path = real_path
        self.identity = FileIdentity.of(status)
        self._seen_ns = time_ns()
        self._sha256 = known_sha256(path, self.identity) if known_sha256 else None

    def seen(self) -> SeenFile:
        """Return the state to compare the mapped file with; with the hash if known or needed.

        Raises:
            OSError: As in `sha256`.
        """
        boot = _boot_of(self.real_path) if self.identity.is_dated else ""
        seen = SeenFile(self.path, self.identity, self._sha256, self._seen_ns, boot)
        if self._sha256 is None and not seen.is_settled(self._seen_ns):
            return seen._replace(sha256=self.sha256())
        return seen

    def sha256(self) -> str:
        """Return the SHA-256 in hexadecimal digits, which costs a second for 1 GB.

        Raises:
            OSError: The bytes cannot be read, or are no longer those that were looked at (ESTALE).
        """
        if self._sha256 is None:
            self._sha256 = of_same_file(self.real_path, self.identity, sha256_of)
        return self._sha256

    def digest(self, algorithm: str) -> bytes:
        """Return a hash of the bytes; errors as in `sha256`."""
        if algorithm == "sha256":
            return bytes.fromhex(self.sha256())
        work_out = partial(_digest, algorithm=algorithm)
        return bytes.fromhex(of_same_file(self.real_path, self.identity, work_out))


def _boot_of(path: str) -> str:
    """Return the start of the machine for a file of an image (`SeenFile.boot`)."""
    return "" if os.statvfs(path).f_flag & os.ST_RDONLY else boot_id()


def _digest(fd: int, algorithm: str) -> str:
    import hashlib  # noqa: PLC0415  (loads OpenSSL; hardly any installer writes another hash)

    found = hashlib.new(algorithm)
    while data := os.read(fd, _AT_ONCE):
        found.update(data)
    return found.hexdigest()
