"""A directory for files that only this user and root can have written.

The files decide which plugins run without a trial. So they count only if no user whom this process
does not trust can have written them, or can change a directory or a link on the way to them. All
operations are relative to the opened directory. A directory that is missing, read-only, full or
another user's has no files, and raises nothing. Only reading and listing raise for a shortage: that
nothing could be read does not mean that nothing is there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
from contextlib import contextmanager, nullcontext, suppress
from functools import lru_cache
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeVar

from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.concurrency.owned_file import open_owned, open_owned_directory
from modular_tf.discovery.trust.paths import PathJudge, Rights, TrustedWriters, trusted_writers
from modular_tf.discovery.trust.policy import TrustPolicy
from modular_tf.events import EventLog
from modular_tf.rules.shortage import ShortageError, raise_shortage
from modular_tf.rules.trust import STORAGE_TRUSTED

if TYPE_CHECKING:
    import select
    from collections.abc import Callable, Iterator, Sequence
    from io import FileIO

    from modular_tf.discovery.trust.paths import JudgedPath

__all__ = ["PrivateDirectory", "Turn", "refuse", "why_untrusted"]

_log = EventLog("storage")
_FOR_FILES = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_FOR_DIRECTORIES = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW  # need not be readable
# O_NONBLOCK: a FIFO instead of the file must not block the open.
_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_MODE = 0o700
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH  # with an ACL, the group's bits are its mask


class PrivateDirectory:
    """One directory and the files in it. [any thread]

    Its `path` may not exist; it is None for a directory that never has files.
    """

    __slots__ = ("_judged", "path")

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._judged: JudgedPath | None = None

    def read(self, name: str, most: int) -> bytes | None:
        """Return the bytes of a file; None if there is none, or it cannot be trusted.

        A file of more than `most` bytes is not trusted either. Raises ShortageError if it cannot be
        read now.
        """
        with self._opened(raises_shortage=True) as directory:
            if directory is None:
                return None
            try:
                with open_owned(name, _READ_FLAGS, dir_fd=directory) as file:
                    if not _is_own_file(os.fstat(file.fileno()), self._path_of(name)):
                        return None
                    data = bytearray()
                    while len(data) <= most and (chunk := file.read(most + 1 - len(data))):
                        data += chunk
            except OSError as error:
                raise_shortage(error)
                return None
            if len(data) > most:
                refuse(self._path_of(name), f"it has more than {most} bytes")
                return None
            return bytes(data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a new file; return whether it was written completely."""
        with self._opened(make=True) as directory:
            return directory is not None and self._create(directory, name, data)

    def real_path_of(self, name: str, *, make: bool) -> str | None:
        """Return the path without links of a regular file, which only its users can redirect.

        With `make` a missing file is created, empty. None if there is none, or it cannot be trusted
        or made; ShortageError if that cannot be determined now.
        """
        with self._opened(make=make, raises_shortage=True) as directory:
            if directory is None or self._judged is None:
                return None
            try:
                if make and name not in os.listdir(directory):
                    self._create(directory, name, b"")
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            except OSError as error:
                raise_shortage(error)
                return None
            is_own = _is_own_file(status, self._path_of(name))
            return os.path.join(self._judged.real_path, name) if is_own else None

    def made(self) -> str | None:
        """Return the path, created if missing; None if it cannot be created or is not trusted."""
        with self._opened(make=True) as directory:
            return None if directory is None else self.path

    def remove(self, name: str) -> bool:
        """Remove a file; return whether it was this call that did."""
        with self._opened() as directory:
            return directory is not None and _remove(directory, name)

    def changed_at(self) -> dict[str, float]:
        """Return by name when each file was last written.

        Raises ShortageError if the directory cannot be listed now.
        """
        found: dict[str, float] = {}
        with self._opened(raises_shortage=True) as directory:
            try:
                names = [] if directory is None else os.listdir(directory)
            except OSError as error:
                raise_shortage(error)
                names = []
            for name in names:
                try:
                    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                except OSError as error:
                    raise_shortage(error)
                    continue
                if stat.S_ISREG(status.st_mode):
                    found[name] = status.st_mtime
        return found

    def open_for_lock(self, name: str) -> FileIO | nullcontext[None]:
        """Return a file that is there to be locked, made where it is missing; None if it cannot be.

        It is for `with`, which closes it, and so ends its lock.
        """
        with self._opened(make=True) as directory, suppress(OSError):
            if directory is not None:
                return open_owned(name, _LOCK_FLAGS, 0o600, dir_fd=directory)
        return nullcontext()

    # -- the opened directory ---------------------------------------------------------------------

    @contextmanager
    def _opened(self, *, make: bool = False, raises_shortage: bool = False) -> Iterator[int | None]:
        """Yield a descriptor of the directory, None if it does not exist or is not trusted."""
        try:
            opened = None if self.path is None else self._open(self.path, make=make)
        except ShortageError:
            if raises_shortage:
                raise
            opened = None
        if opened is None:
            yield None
            return
        with opened:
            is_own = _is_own(os.fstat(opened.fileno()), self.path or "")
            yield opened.fileno() if is_own else None

    def _open(self, path: str, *, make: bool) -> select.epoll | None:
        if self._judged is not None:
            with suppress(OSError):
                opened = open_owned_directory(path, _FOR_FILES & ~os.O_NOFOLLOW)
                if os.path.samestat(os.fstat(opened.fileno()), self._judged.status):
                    return opened  # whatever leads there now
                opened.close()
        if not os.path.isabs(path):
            return None
        try:
            judge = _judge()
            try:
                judged = judge.directory(path)
            except FileNotFoundError:
                if not make:
                    return None
                _make(path, judge)
                judged = judge.directory(path)
            opened = _open_judged(judged, _FOR_FILES)
        except _UntrustedError as error:
            refuse(path, str(error))
        except (OSError, ValueError) as error:
            raise_shortage(error)
        else:
            self._judged = judged
            return opened
        return None

    def _create(self, directory: int, name: str, data: bytes) -> bool:
        file = None
        try:
            with open_owned(name, _CREATE_FLAGS, 0o600, dir_fd=directory) as file:
                os.fchmod(file.fileno(), 0o600)  # the umask may leave its owner out
                view = memoryview(data)
                while view:
                    view = view[os.write(file.fileno(), view) :]
        except BaseException as error:
            if file is not None:
                _remove(directory, name)
            if not isinstance(error, OSError):
                raise
            _log.info("storage.not_written", path=self._path_of(name), error=str(error))
            return False
        return True

    def _path_of(self, name: str) -> str:
        return os.path.join(self.path or "", name)


def _is_own_file(status: os.stat_result, path: str) -> bool:
    if not stat.S_ISREG(status.st_mode):
        refuse(path, "it is not a regular file")
        return False
    return _is_own(status, path)


def _is_own(status: os.stat_result, path: str) -> bool:
    if status.st_uid not in (os.geteuid(), 0):
        refuse(path, f"user {status.st_uid} owns it")
        return False
    if status.st_mode & _WRITABLE_BY_OTHERS:
        refuse(path, f"others may write to it (mode {status.st_mode & 0o7777:o})")
        return False
    return True


@lru_cache(maxsize=64)  # reported once, not for each of a thousand plugins
def refuse(path: str, why: str) -> None:
    """Report that a file or directory is not used."""
    _log.warning("storage.not_believed", path=path, why=why, rule=STORAGE_TRUSTED)


def _remove(directory: int, name: str) -> bool:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:
        return False
    return True


# -- trust of the path ----------------------------------------------------------------------------


class _UntrustedError(Exception):
    """A user whom this process does not trust can change the directory or its path."""


def why_untrusted(path: str) -> str | None:
    """Return why a directory is not trusted, None if it is; the path need not exist completely."""
    judge = _judge()
    judge_directory = judge.directory
    while True:
        try:
            offence = judge_directory(path).offence
        except FileNotFoundError:
            path, judge_directory = os.path.dirname(path), judge.above
        except OSError as error:
            return f"{path} cannot be looked at: {error.strerror}"
        else:
            return None if offence is None else offence.message


def _make(path: str, judge: PathJudge) -> None:
    """Create a directory and its missing parents, for the user only, whatever the umask says."""
    above, name = os.path.split(path)
    try:
        judged = judge.above(above)
    except FileNotFoundError:
        _make(above, judge)
        judged = judge.above(above)
    # Another process may be faster; what it made is judged next.
    with _open_judged(judged, _FOR_DIRECTORIES) as parent, suppress(FileExistsError):
        os.mkdir(name, _MODE, dir_fd=parent.fileno())
        os.chmod(name, _MODE, dir_fd=parent.fileno())  # the umask may leave its owner out


def _open_judged(judged: JudgedPath, flags: int) -> select.epoll:
    """Open the directory that was judged, and no other."""
    if judged.offence is not None:
        raise _UntrustedError(judged.offence.message)
    directory = open_owned_directory(judged.real_path, flags)
    if not os.path.samestat(os.fstat(directory.fileno()), judged.status):
        directory.close()
        raise OSError(errno.ESTALE, "it was replaced while it was judged", judged.real_path)
    return directory


def _judge() -> PathJudge:
    return PathJudge(Rights(_writers(os.geteuid())))


@lru_cache(maxsize=4)
def _writers(user: int) -> TrustedWriters:
    """Return the users whom this process trusts: as for plugins; root trusts only root.

    Where `sudo` leaves root the home of a user, it would follow links that the user made, and leave
    files there that the user could neither read nor replace. In a user namespace / may belong to
    root of another one, who is shown as another user and can change all there is.
    """
    if user == 0:
        return TrustedWriters(users=frozenset((0, os.stat("/").st_uid)))
    return trusted_writers(TrustPolicy())


# -- the turn -------------------------------------------------------------------------------------

_TURN = "turn"
_POLL_S = 0.02
_MOST_TIMEOUTS = 20  # however much progress other owners make
_Item = TypeVar("_Item")


class _OfThread(threading.local):
    """The locked file of the thread: what it calls meanwhile must not wait for its own lock."""

    file: FileIO | None = None


_mine = _OfThread()
_opened: LiveObjects[FileIO] = LiveObjects()


class Turn:
    """The right of one process of a user to find something out; the others wait. [any thread]

    It is a lock of the kernel on a file, so it ends with its process, however that ends. Where no
    file can be locked, each process works alone.
    """

    def __init__(self, directory: PrivateDirectory) -> None:
        self._directory = directory

    def find_out(
        self,
        items: Sequence[_Item],
        *,
        unknown: Callable[[Sequence[_Item]], Sequence[_Item]],
        find_out: Callable[[Sequence[_Item], Callable[[], None]], None],
        timeout_s: float,
        check: Callable[[], None],
    ) -> None:
        """Find something out about items, except what other processes find out meanwhile.

        The process that has the turn does the work. The others wait, read what was stored, and take
        the turn for what is still unknown. The work of an owner that is stopped is done again.

        Args:
            items: What to find out about.
            unknown: Reads what is stored by now; returns the items about which nothing is.
            find_out: Finds it out and stores it, before it returns. Calls its second argument
                whenever there is progress.
            timeout_s: How long an owner may go without progress.
            check: Called again and again while it waits; what it raises ends that.
        """
        outer = _mine.file
        with nullcontext() if outer else self._directory.open_for_lock(_TURN) as file:
            if file is not None:
                _opened.add(file)
            try:
                taken = file if file is not None and _take(file, timeout_s, check) else None
                _mine.file = file or outer
                if left := unknown(items):
                    find_out(left, lambda: None if taken is None else _touch(taken))
            finally:
                _mine.file = outer
                if file is not None:
                    _unlock(file)


def _take(file: FileIO, timeout_s: float, check: Callable[[], None]) -> bool:
    """Lock a file when nobody else has; return False if its owner hangs, or after too long."""
    end = monotonic() + _MOST_TIMEOUTS * timeout_s
    last, deadline = _touched_ns(file), monotonic() + timeout_s
    while not _lock(file):
        check()
        sleep(_POLL_S)
        if (progress := _touched_ns(file)) != last:
            last, deadline = progress, monotonic() + timeout_s
        if monotonic() > min(deadline, end):
            return False
    _touch(file)
    return True


def _lock(file: FileIO) -> bool:
    """Lock a file, unless another process has; return whether it need not be waited for."""
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (OSError, ValueError):  # no locks there; or closed, in the child of a handler's fork
        return True
    return True


def _unlock(file: FileIO) -> None:
    """Release the lock of a file; a forked child may have the file too, and would keep the lock."""
    with suppress(OSError, ValueError):
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)


def _touch(file: FileIO) -> None:
    with suppress(OSError, ValueError):  # closed in a forked child
        os.utime(file.fileno())


def _touched_ns(file: FileIO) -> int:
    with suppress(OSError, ValueError):
        return os.fstat(file.fileno()).st_mtime_ns
    return 0


def _close_in_child() -> None:
    """Leave the parent its turn, which must neither outlive it nor end before it."""
    for file in _opened.all():
        file.close()


os.register_at_fork(after_in_child=_close_in_child)
