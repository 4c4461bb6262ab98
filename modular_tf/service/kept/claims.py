"""What one of several processes finds out, while the others wait for its answer.

A claim is a lock of the kernel on one byte of a file, so it ends with its process, however that
ends. Processes with different plugins wait for each other only where they share some. A process
waits for nobody while it has claims, and no longer than the owner of a claim goes on with its work.
"""

from __future__ import annotations

import os
import struct
import threading
from collections import Counter
from contextlib import nullcontext, suppress
from itertools import islice
from time import monotonic, sleep
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from zlib import crc32

from modular_tf.concurrency.live_objects import LiveObjects

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from io import FileIO

    from modular_tf.service.kept.storage.private_directory import PrivateDirectory

_NAME = "claims"
_POLL_S = 0.02
_MOST_WAITS = 2  # for one thing: what is not known then is nothing that can be kept
_MOST_PATIENCES = 20  # however much progress other owners make
_MOST_LOCKS = 1000
_FLOCK = "hhqqi4x"  # struct flock, see fcntl(2)
_Item = TypeVar("_Item")


class _OfThread(threading.local):
    """The file that has the claims of the thread: they end when it is closed."""

    def __init__(self) -> None:
        self.file: FileIO | None = None

    @property
    def has_claims(self) -> bool:
        return self.file is not None and not self.file.closed


_mine = _OfThread()
_claimed: LiveObjects[FileIO] = LiveObjects()


class Claimed(NamedTuple):
    """What a process may find out now.

    Attributes:
        keys: The keys that it has claimed.
        tell_progress: Tells those who wait that the work goes on. [any thread]
    """

    keys: frozenset[str]
    tell_progress: Callable[[], None]


class Claims:
    """The claims of this user's processes on one subject. [any thread]

    Where no file can be locked, each process claims everything.

    Args:
        directory: Where the file is.
        subject: What the keys are about; equal keys of two subjects are different.
    """

    def __init__(self, directory: PrivateDirectory, subject: str) -> None:
        self._directory = directory
        self._subject = subject

    def open(self, keys: Sequence[str]) -> FileIO | nullcontext[None]:
        """Return a file for the claims of one `with` block, which end with it; None for no file.

        A thread that has claims already, such as one in whose work a signal handler loads plugins,
        needs none: it must not wait for itself.

        Args:
            keys: What is to be claimed.
        """
        return nullcontext() if _mine.has_claims or not any(keys) else self._open()

    def claim(self, file: FileIO | None, keys: Sequence[str]) -> Claimed:
        """Claim the first 1000 keys that no other process has. Never waits.

        The kernel compares each lock with all that are there: 20 000 take half a minute. One lock
        of the whole file would let all other processes wait.

        Args:
            file: As `open` gives it; without one all keys are claimed.
            keys: The keys; "" is claimed by everybody.
        """
        if file is None:
            return Claimed(frozenset(keys), _do_nothing)
        _claimed.add(file)
        _mine.file = file
        taken = (key for key in keys if not key or self._lock(file, key))
        return Claimed(frozenset(islice(taken, _MOST_LOCKS)), lambda: _touch(file))

    def wait(self, key: str, patience_s: float, check: Callable[[], None]) -> bool:
        """Wait until nobody claims a key; a signal handler that raises ends it.

        Args:
            key: The key.
            patience_s: For how long to wait while no owner tells of progress.
            check: Called again and again; what it raises ends the wait.

        Returns:
            Whether it is free; else its owner is stopped, or hangs.
        """
        with self._open() as file:
            if file is None:
                return True
            last = os.fstat(file.fileno()).st_mtime_ns
            deadline = monotonic() + patience_s
            end = deadline + _MOST_PATIENCES * patience_s
            while not self._is_free(file, key):
                check()
                sleep(_POLL_S)
                if (progress := os.fstat(file.fileno()).st_mtime_ns) != last:
                    last, deadline = progress, monotonic() + patience_s
                if monotonic() > min(deadline, end):
                    return False
            return True

    def _open(self) -> FileIO | nullcontext[None]:
        return self._directory.open_for_locks(_NAME)

    def _lock(self, file: FileIO, key: str) -> bool:
        import fcntl  # noqa: PLC0415  (only who finds something out needs it)

        try:
            fcntl.fcntl(file.fileno(), fcntl.F_OFD_SETLK, self._flock(fcntl.F_WRLCK, key))
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES: another process has it
            return False
        except (OSError, ValueError):  # no locks there; or closed, in the child of a handler's fork
            return True
        return True

    def _is_free(self, file: FileIO, key: str) -> bool:
        import fcntl  # noqa: PLC0415  (as above)

        try:
            found = fcntl.fcntl(file.fileno(), fcntl.F_OFD_GETLK, self._flock(fcntl.F_WRLCK, key))
        except OSError:
            return True
        kind: int = struct.unpack(_FLOCK, found)[0]
        return kind == fcntl.F_UNLCK

    def _flock(self, kind: int, key: str) -> bytes:
        # Two keys with the same byte wait for each other, which does no harm.
        byte = crc32(f"{self._subject} {key}".encode("utf-8", "surrogateescape"))
        return struct.pack(_FLOCK, kind, os.SEEK_SET, byte, 1, 0)


def find_out_once(
    claims: Claims,
    items: Sequence[_Item],
    key_of: Callable[[_Item], str],
    *,
    unknown: Callable[[Sequence[_Item]], Sequence[_Item]],
    find_out: Callable[[Sequence[_Item], Callable[[], None]], None],
    patience_s: float,
    check: Callable[[], None],
) -> None:
    """Find something out about items, but for what other processes find out meanwhile.

    What this process claims it finds out first, of many items a part at a time. It then waits for
    the owners of the rest, reads what they have kept, and takes over what they have not. It does
    the work of an owner that is stopped by itself.

    Args:
        claims: Says who finds out what.
        items: What to find out about.
        key_of: Returns the key of an item; "" for one about which nothing can be kept.
        unknown: Reads what is kept by now; returns the items about which nothing is.
        find_out: Finds it out and keeps it, before it returns. Calls its second argument whenever
            there is progress.
        patience_s: How long an owner may go without progress.
        check: Called again and again while it waits; what it raises ends that.
    """
    left = items
    waits: Counter[str] = Counter()
    while left:
        keys = _find_out_mine(claims, left, key_of, unknown, find_out)
        left = [item for item in left if key_of(item) not in keys]
        if not left:
            return
        key = key_of(left[0])
        waits[key] += 1
        if waits[key] > _MOST_WAITS or not claims.wait(key, patience_s, check):
            if left := unknown(left):
                find_out(left, _do_nothing)
            return
        left = unknown(left)


def _find_out_mine(
    claims: Claims,
    items: Sequence[_Item],
    key_of: Callable[[_Item], str],
    unknown: Callable[[Sequence[_Item]], Sequence[_Item]],
    find_out: Callable[[Sequence[_Item], Callable[[], None]], None],
) -> frozenset[str]:
    """Find out what nobody else does; return the keys that were claimed for it."""
    keys = [key_of(item) for item in items]
    with claims.open(keys) as file:
        try:
            claimed = claims.claim(file, keys)
            mine = [item for item in items if key_of(item) in claimed.keys]
            if mine and (mine := [*unknown(mine)]):
                find_out(mine, claimed.tell_progress)
        finally:
            release(file)
    return claimed.keys


def _touch(file: FileIO) -> None:
    with suppress(OSError, ValueError):  # closed in a forked child
        os.utime(file.fileno())


def release(file: FileIO | None) -> None:
    """Release all claims of a file; a forked child may have it too, and would keep them."""
    if file is None:
        return
    import fcntl  # noqa: PLC0415  (as above)

    with suppress(OSError, ValueError):
        everything = struct.pack(_FLOCK, fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(file.fileno(), fcntl.F_OFD_SETLK, everything)


def _do_nothing() -> None:
    pass


def _close_in_child() -> None:
    """Leave the parent its claims: they must neither outlive it nor end before it."""
    for file in _claimed.all():
        file.close()


os.register_at_fork(after_in_child=_close_in_child)
