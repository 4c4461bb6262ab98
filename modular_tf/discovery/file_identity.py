"""A check whether a file still has the same bytes, mostly without reading them again.

The system's answers about a file are trusted. On a network file system they are what this machine
knows: it may learn of another machine's change a minute late (nfs(5), `acregmax`). And bytes that
are written through a mapping change the times of a file once for many writes: a plugin that is made
that way should be moved into place when it is complete.
"""

from __future__ import annotations

import errno
import os
import stat
from functools import cache
from time import time_ns
from typing import TYPE_CHECKING, Annotated, NamedTuple

from modular_tf.codec import between, digest, row
from modular_tf.concurrency.owned_file import open_owned
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Callable

ELF_MAGIC = b"\x7fELF"
"""How every library begins."""

MOST_BYTES = 4 << 30
"""How long a library may be (LD-111).

Published plugins bring libraries of more than 2 GiB; a hash of so many bytes takes half a minute.
"""

OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""How a file is opened that anybody may have put there: a FIFO must not block the open."""

SETTLED_AFTER_NS = 2_000_000_000
"""How old a change must be when a file is looked at, for the next one to have another time.

Linux takes file times from a clock that ticks every 1 to 10 ms; file systems keep them to
1 ns (ext4, XFS, btrfs), 100 ns (NTFS, SMB), 1 s (ext3) or 2 s (FAT).
"""
_SECOND_NS = 1_000_000_000
_TICK_NS = 10_000_000
_BLOCK_BYTES = 1024 * 1024
_KINDS_OF_FILES = (
    (stat.S_ISREG, "a regular file"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)
_MOST_OF_A_BOOT_ID = 64


def _boot_id(value: str) -> str:
    if len(value) > _MOST_OF_A_BOOT_ID or value.strip("0123456789abcdef-"):
        raise ValueError(f"expected the id of a boot, found {value!r:.200}")
    return value


_Number = Annotated[int, between(-(1 << 63), (1 << 64) - 1)]
_Time = Annotated[int, between(-(1 << 63) * _SECOND_NS, (1 << 63) * _SECOND_NS)]


def kind_in_words(mode: int) -> str:
    """Return the kind of file of an `st_mode`, such as "a directory"."""
    return next((words for test, words in _KINDS_OF_FILES if test(mode)), "something special")


@cache
def boot_id() -> str:
    """Return a text that identifies this start of this machine. [any thread]

    Empty where the system has none. Raises `ShortageError`.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb", buffering=0) as stream:
            return stream.read(64).decode("ascii", "replace").strip()
    except OSError as error:
        raise_shortage(error)
        return ""


def real_path(path: str) -> str:
    """Return the absolute path of a file without links, as `os.path.realpath`. [any thread]

    A chain of more links than that function can follow, which no system opens, stays as it is.
    """
    try:
        return os.path.realpath(path)
    except RecursionError:
        return os.path.abspath(path)


@row
class FileIdentity(NamedTuple):
    """The properties of a file that differ after each change of it."""

    device: _Number  # number of the device that it is on
    inode: _Number  # its number there
    size: Annotated[int, between(0, (1 << 63) - 1)]  # in bytes
    mtime_ns: _Time  # the time of its last change, as anybody may set it
    ctime_ns: _Time  # of the last change of it or its properties, by the system's clock

    @classmethod
    def of(cls, status: os.stat_result) -> FileIdentity:
        """Return the identity in a result of `os.stat`."""
        return cls(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        )

    @classmethod
    def at(cls, path: str) -> FileIdentity | None:
        """Return the identity of a file, or of a link that leads nowhere; None for no file."""
        for status_of in (os.stat, os.lstat):
            try:
                return cls.of(status_of(path))
            except (OSError, ValueError):
                continue
        return None

    @property
    def may_be_of_image(self) -> bool:
        """Whether its times look like those of an image that has one date for all files.

        The image's next version may have the same date, size and number for another file.
        """
        return self.ctime_ns == self.mtime_ns and self.ctime_ns % _SECOND_NS == 0

    def may_be_newer(self, then_ns: int) -> bool:
        """Return whether the file may have changed after a time, by the system's clock."""
        is_coarse = self.ctime_ns % _SECOND_NS == 0
        return self.ctime_ns + (SETTLED_AFTER_NS if is_coarse else _TICK_NS) > then_ns


@row
class SeenFile(NamedTuple):
    """The state of a file at one time: its identity and the hash of its bytes."""

    path: str
    identity: FileIdentity | None  # None if nothing was there
    sha256: Annotated[str, digest] | None  # in hexadecimal digits; None if it was not read
    seen_ns: _Time  # by the system's clock, before the bytes were read
    # The start of the machine at which it was seen, for a file of an image that cannot be exchanged
    # while the machine runs; else empty.
    boot: Annotated[str, _boot_id] = ""

    def is_settled(self, now_ns: int) -> bool:
        """Return whether any change since would have changed the identity.

        It would not (git calls that "racy") if the last change was so shortly before the file was
        seen that the next one could have the same time. `ctime` counts, since `mtime` can be set.
        Nor is it certain if the clock was set back since.
        """
        if self.identity is None:
            return True
        if not self.identity.ctime_ns + SETTLED_AFTER_NS < self.seen_ns <= now_ns:
            return False
        return not self.identity.may_be_of_image or (self.boot != "" and self.boot == boot_id())


def see(path: str, *, read: bool = True) -> SeenFile | None:
    """Return the state of a file, None if it cannot be read. [any thread]

    Links are followed. It is None too for what is no regular file, is longer than any library, or
    was changed meanwhile. Where `read` is false, the bytes are read only if the identity does not
    say enough, and nothing need be there. Raises `ShortageError`.
    """
    seen_ns = time_ns()
    if not read:
        identity = _identity_at(path)
        seen = SeenFile(path, identity, None, seen_ns)
        if seen.is_settled(seen_ns):
            return seen
    try:
        with open_owned(path, OPEN_FLAGS) as file:
            return _read(path, file.fileno(), seen_ns)
    except (OSError, ValueError) as error:
        raise_shortage(error)
        return None


def see_library(path: str) -> SeenFile | None:
    """Return the state of a file, with its hash if it begins like a library. [any thread]

    As `see`; without a hash for what is no library, or a longer file than any.
    """
    seen_ns = time_ns()
    try:
        with open_owned(path, OPEN_FLAGS) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return None
            magic = os.pread(file.fileno(), len(ELF_MAGIC), 0)
            if magic == ELF_MAGIC and status.st_size <= MOST_BYTES:
                return _read(path, file.fileno(), seen_ns)
            return SeenFile(path, FileIdentity.of(status), None, seen_ns)
    except (OSError, ValueError) as error:
        raise_shortage(error)
        return None


def see_again(
    seen: SeenFile, known: dict[str, FileIdentity | None] | None = None
) -> SeenFile | None:
    """Return the file if it still has the same bytes, else None. [any thread]

    If its bytes had to be read to find out, it is returned as it is seen now. It is None too if the
    bytes cannot be shown to be the same. `known` has the identities of files that this pass has
    read, by path; it is added to. Raises `ShortageError`.
    """
    known = {} if known is None else known
    if seen.path not in known:
        known[seen.path] = _identity_at(seen.path)
    identity = known[seen.path]
    if identity == seen.identity and seen.is_settled(time_ns()):
        return seen
    if seen.sha256 is None or identity is None or seen.identity is None:
        return None
    if identity.size != seen.identity.size:
        return None
    now = see(seen.path)
    return now if now is not None and now.sha256 == seen.sha256 else None


def of_same_file(path: str, identity: FileIdentity, work_out: Callable[[int], str]) -> str:
    """Return what a function computes from a file, if its identity is unchanged. [any thread]

    Links are followed; `work_out` is given a descriptor. Raises `OSError` if the file cannot be
    read, has another identity before or after (ESTALE), or is longer than any library (EFBIG).
    """
    _require_bounded(identity.size, path)
    with open_owned(path, OPEN_FLAGS) as file:
        if FileIdentity.of(os.fstat(file.fileno())) == identity:
            found = work_out(file.fileno())
            if FileIdentity.of(os.fstat(file.fileno())) == identity:
                return found
    raise OSError(errno.ESTALE, "it changed since it was looked at", path)


def sha256_of_seen(seen: SeenFile) -> str:
    """Return the hash of the bytes in that state; they are read if it is unknown."""
    if seen.sha256 is not None:
        return seen.sha256
    if seen.identity is None:
        raise OSError(errno.ENOENT, "nothing was there", seen.path)
    return of_same_file(seen.path, seen.identity, sha256_of)


def sha256_of(fd: int) -> str:
    """Return the SHA-256 of the bytes of an open file; see `digest_of`. [any thread]"""
    return digest_of(fd, "sha256")


def digest_of(fd: int, algorithm: str) -> str:
    """Return a hash of the bytes of an open file, in hexadecimal digits. [any thread]

    `algorithm` is a name that hashlib knows. The descriptor's position is neither used nor moved. A
    file that grows meanwhile is read up to the length that it had. Raises `OSError`.
    """
    import hashlib  # noqa: PLC0415  (loads OpenSSL; mostly nothing is to be read)

    digest = hashlib.new(algorithm)
    at, end = 0, os.fstat(fd).st_size
    while at < end and (block := os.pread(fd, min(_BLOCK_BYTES, end - at), at)):
        digest.update(block)
        at += len(block)
    return digest.hexdigest()


def _require_bounded(size: int, path: str) -> None:
    if size > MOST_BYTES:
        message = f"it has {size} bytes, and nothing longer than {MOST_BYTES} is read"
        raise OSError(errno.EFBIG, message, path)


def _read(path: str, fd: int, seen_ns: int) -> SeenFile | None:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        return None
    _require_bounded(status.st_size, path)
    identity = FileIdentity.of(status)
    digest = sha256_of(fd)
    if FileIdentity.of(os.fstat(fd)) != identity:
        return None
    return SeenFile(path, identity, digest, seen_ns, boot_of(fd, identity))


def boot_of(file: int | str, identity: FileIdentity) -> str:
    """Return the start of the machine during which a file of an image stays (`SeenFile.boot`).

    What is mounted to be read only, as squashfs always is, may be exchanged at any time.
    """
    is_fixed = identity.may_be_of_image and not os.statvfs(file).f_flag & os.ST_RDONLY
    return boot_id() if is_fixed else ""


def _identity_at(path: str) -> FileIdentity | None:
    """Return the identity of the file at a path; None if there is none."""
    try:
        return FileIdentity.of(os.stat(path))
    except (OSError, ValueError) as error:
        raise_shortage(error)
        return None
