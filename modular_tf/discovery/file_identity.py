"""Whether a file still has the bytes that were seen in it, mostly without reading them again."""

from __future__ import annotations

import os
import stat
from time import time_ns
from typing import NamedTuple

__all__ = ["SETTLED_AFTER_NS", "FileIdentity", "SeenFile", "see", "see_again", "sha256_of"]

SETTLED_AFTER_NS = 2_000_000_000
"""How old a change must be when a file is looked at, for the next one to have another time.

Linux takes file times from a clock that ticks every 1 to 10 ms; file systems keep them to
1 ns (ext4, XFS, btrfs), 100 ns (NTFS, SMB), 1 s (ext3) or 2 s (FAT).
"""
_SECOND_NS = 1_000_000_000
_BLOCK_BYTES = 1024 * 1024
# O_NONBLOCK: a FIFO in the place of the file must not block the open.
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class FileIdentity(NamedTuple):
    """What the system says of a file that differs after most changes of it.

    Attributes:
        device: Number of the device that it is on.
        inode: Its number there.
        size: Its length in bytes.
        mtime_ns: The time of its last change, as anybody may set it.
        ctime_ns: The time of the last change of it or its properties, by the system's clock.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileIdentity:
        """Take it from what `os.stat` says."""
        return cls(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        )

    def was_settled(self, seen_ns: int, now_ns: int) -> bool:
        """Tell whether a change since the file was seen would have changed this identity.

        The rule that git calls "racy": not if the last change was so shortly before the look that
        the next one could bear the same time. `ctime` counts, since `mtime` can be set. Nor if the
        clock was set back meanwhile, or the time is no clock's: images that are mounted read-only
        (squashfs) have one date for all files, kept to the second, and so has their next version.

        Args:
            seen_ns: When the file was looked at; before its bytes were read.
            now_ns: The time now.
        """
        is_of_image = self.ctime_ns == self.mtime_ns and self.ctime_ns % _SECOND_NS == 0
        return self.ctime_ns + SETTLED_AFTER_NS < seen_ns <= now_ns and not is_of_image


class SeenFile(NamedTuple):
    """A file as it was seen.

    Attributes:
        path: Where it was.
        identity: What the system said of it; None if nothing was there.
        sha256: Of its bytes, in hexadecimal digits; None if they were not read.
        seen_ns: When that was, by the system's clock.
    """

    path: str
    identity: FileIdentity | None
    sha256: str | None
    seen_ns: int


def see(path: str, *, read: bool = True) -> SeenFile | None:
    """Look at a file. [any thread]

    Args:
        path: The file; links are followed.
        read: Whether its bytes are wanted. Otherwise they are read only where the file is too
            young for its identity to say enough.

    Returns:
        None if it cannot be read, is no regular file, or was changed meanwhile.
    """
    seen_ns = time_ns()
    if not read:
        identity = _identity_at(path)
        if identity is None or identity.was_settled(seen_ns, seen_ns):
            return SeenFile(path, identity, None, seen_ns)
    try:
        fd = os.open(path, _OPEN_FLAGS)
    except (OSError, ValueError):
        return None
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            return None
        digest = sha256_of(fd)
        identity = FileIdentity.of(before)
        if FileIdentity.of(os.fstat(fd)) != identity:
            return None
        return SeenFile(path, identity, digest, seen_ns)
    except OSError:
        return None
    finally:
        os.close(fd)


def see_again(
    seen: SeenFile, known: dict[str, FileIdentity | None] | None = None
) -> SeenFile | None:
    """Tell whether a file has the bytes that it had. [any thread]

    Args:
        seen: The file as it was seen.
        known: What the system said of files in this pass, by path; it is added to.

    Returns:
        The same, or the file as it is seen now if its bytes had to be read to tell; None if they
        changed or cannot be told to be the same.
    """
    identity = _known_identity_at(seen.path, known)
    if identity is None or seen.identity is None:
        return seen if identity is seen.identity else None
    if identity == seen.identity and identity.was_settled(seen.seen_ns, time_ns()):
        return seen
    if seen.sha256 is None or identity.size != seen.identity.size:
        return None
    now = see(seen.path)
    return now if now is not None and now.sha256 == seen.sha256 else None


def sha256_of(fd: int) -> str:
    """Return the SHA-256 of the bytes of an open file, in hexadecimal digits. [any thread]

    The descriptor's position is neither used nor moved. A file that grows meanwhile is read up to
    the length that it had.

    Raises:
        OSError: It cannot be read.
    """
    from hashlib import sha256  # noqa: PLC0415  (loads OpenSSL; mostly nothing is to be read)

    digest = sha256()
    at, end = 0, os.fstat(fd).st_size
    while at < end and (block := os.pread(fd, min(_BLOCK_BYTES, end - at), at)):
        digest.update(block)
        at += len(block)
    return digest.hexdigest()


def _known_identity_at(
    path: str, known: dict[str, FileIdentity | None] | None
) -> FileIdentity | None:
    if known is None:
        return _identity_at(path)
    if path not in known:
        known[path] = _identity_at(path)
    return known[path]


def _identity_at(path: str) -> FileIdentity | None:
    """Return what the system says of a file; None where there is none for this user."""
    try:
        return FileIdentity.of(os.stat(path))
    except (OSError, ValueError):
        return None
