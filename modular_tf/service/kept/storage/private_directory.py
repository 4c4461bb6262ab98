"""A directory for files that only this user and root can have written.

The files decide which plugins run untried, so a file counts only if no other user can have written
it. All operations are relative to the opened directory.
A directory that is missing, read-only, full, locked or another user's holds nothing, and
raises nothing. Only reading and listing raise for a shortage: that nothing could be read does not
mean that nothing is there.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, nullcontext, suppress
from functools import lru_cache
from time import monotonic, sleep, time
from typing import TYPE_CHECKING

from modular_tf.concurrency.owned_file import open_owned, open_owned_directory
from modular_tf.events import EventLog
from modular_tf.rules.kept_state import STORAGE_TRUSTED
from modular_tf.rules.shortage import ShortageError, raise_shortage
from modular_tf.service.kept.storage.trusted_directory import UntrustedDirectoryError, open_trusted

if TYPE_CHECKING:
    import select
    from collections.abc import Iterator
    from io import FileIO

_log = EventLog("storage")
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK: a FIFO in the place of the file must not block the open.
_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH  # with an ACL, the group's bits are its mask
_LOCK_NAME = "lock"
_LOCK_PATIENCE_S = 2.0
_LOCK_POLL_S = 0.005
_UNFINISHED = ".unfinished"
_UNFINISHED_LIFE_S = 3600.0


class PrivateDirectory:
    """One directory and the files in it. [any thread]

    Attributes:
        path: Its path, existing or not; None for a directory that never holds anything.
    """

    __slots__ = ("_judged", "path")

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._judged: os.stat_result | None = None

    def read(self, name: str, most: int) -> bytes | None:
        """Return the bytes of a file; None if there is none, or it cannot be trusted.

        Args:
            name: Its name in the directory.
            most: The number of bytes above which it is not believed either.

        Raises:
            ShortageError: It cannot be read now.
        """
        with self._opened(tells_shortage=True) as directory:
            if directory is None:
                return None
            try:
                with open_owned(name, _READ_FLAGS, dir_fd=directory) as file:
                    return self._read(file.fileno(), name, most)
            except OSError as error:
                raise_shortage(error)
                return None

    def create(self, name: str, data: bytes) -> bool:
        """Write a new file; return whether it was written completely."""
        with self._opened(make=True) as directory:
            return directory is not None and self._create(directory, name, data)

    def replace(self, name: str, data: bytes) -> bool:
        """Replace a file atomically; return whether that was possible.

        A reader sees the old or the new bytes. It may have neither after a power cut: the bytes
        are not forced to the disk, which would cost more than all that is kept here is worth.
        """
        # By chance: processes of several containers, with the same numbers, may share a directory.
        unfinished = f".{name}.{os.urandom(8).hex()}{_UNFINISHED}"
        with self._opened(make=True) as directory:
            if directory is None or not self._create(directory, unfinished, data):
                return False
            try:
                os.replace(unfinished, name, src_dir_fd=directory, dst_dir_fd=directory)
            except OSError as error:
                _log.info("storage.not_written", path=self._path_of(name), error=str(error))
                _remove(directory, unfinished)
                return False
            return True

    def made(self) -> str | None:
        """Return the path, created if missing; None if it cannot be created or is not trusted."""
        with self._opened(make=True) as directory:
            return None if directory is None else self.path

    def remove(self, name: str) -> bool:
        """Remove a file; return whether it was this call that did."""
        with self._opened() as directory:
            return directory is not None and _remove(directory, name)

    def changed_at(self) -> dict[str, float]:
        """Return the names of the files that are there and when each was written last.

        Raises:
            ShortageError: They cannot be listed now.
        """
        found: dict[str, float] = {}
        with self._opened(tells_shortage=True) as directory:
            for name in [] if directory is None else _names_in(directory):
                try:
                    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                except OSError as error:
                    raise_shortage(error)
                    continue
                if stat.S_ISREG(status.st_mode):
                    found[name] = status.st_mtime
        return found

    def remove_unfinished(self) -> None:
        """Remove the files of processes that ended while they were writing.

        Raises:
            ShortageError: They cannot be listed now.
        """
        oldest = time() - _UNFINISHED_LIFE_S
        for name, changed in self.changed_at().items():
            if name.endswith(_UNFINISHED) and changed < oldest:
                self.remove(name)

    def open_for_locks(self, name: str = _LOCK_NAME) -> FileIO | nullcontext[None]:
        """Return a file that is there to be locked, made where it is missing; None if it cannot be.

        It is for `with`, which closes it, and so ends its locks, whatever interrupts the caller: no
        signal handler comes between the end of the block and that function of C.
        """
        with self._opened(make=True) as directory:
            return nullcontext() if directory is None else _open_lock(directory, name)

    # -- one file, in the opened directory --------------------------------------------------------

    @contextmanager
    def _opened(self, *, make: bool = False, tells_shortage: bool = False) -> Iterator[int | None]:
        """Yield a descriptor of the directory, None if it does not exist or is not trusted."""
        try:
            opened = None if self.path is None else self._open(self.path, make=make)
        except ShortageError:
            if tells_shortage:
                raise
            opened = None
        if opened is None:
            yield None
            return
        with opened:
            fd = opened.fileno()
            yield fd if _is_own(os.fstat(fd), self.path or "") else None

    def _open(self, path: str, *, make: bool) -> select.epoll | None:
        if self._judged is not None:
            with suppress(OSError):
                opened = open_owned_directory(path, _DIRECTORY_FLAGS)
                if os.path.samestat(os.fstat(opened.fileno()), self._judged):
                    return opened  # whatever leads there now
                opened.close()
        try:
            opened = open_trusted(path, make=make)
        except UntrustedDirectoryError as error:
            _refuse(path, error.strerror or "")
        except (OSError, ValueError) as error:
            raise_shortage(error)
        else:
            self._judged = os.fstat(opened.fileno())
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
        except OSError as error:
            _log.info("storage.not_written", path=self._path_of(name), error=str(error))
            if file is not None:
                _remove(directory, name)
            return False
        return True

    def _read(self, fd: int, name: str, most: int) -> bytes | None:
        status = os.fstat(fd)
        path = self._path_of(name)
        if not stat.S_ISREG(status.st_mode):
            _refuse(path, "it is not a regular file")
            return None
        if not _is_own(status, path):
            return None
        with open(fd, "rb", buffering=0, closefd=False) as stream:
            data = bytearray()
            while len(data) <= most and (chunk := stream.read(min(status.st_size, most) + 1)):
                data += chunk
        if len(data) > most:
            _refuse(path, f"it has more than {most} bytes")
            return None
        return bytes(data)

    def _path_of(self, name: str) -> str:
        return os.path.join(self.path or "", name)


def _is_own(status: os.stat_result, path: str) -> bool:
    if status.st_uid not in (os.geteuid(), 0):
        _refuse(path, f"user {status.st_uid} owns it")
        return False
    if status.st_mode & _WRITABLE_BY_OTHERS:
        _refuse(path, f"others may write to it (mode {status.st_mode & 0o7777:o})")
        return False
    return True


@lru_cache(maxsize=64)  # said once, not for each of a thousand plugins
def _refuse(path: str, why: str) -> None:
    _log.warning("storage.not_believed", path=path, why=why, rule=STORAGE_TRUSTED)


def _names_in(directory: int) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError as error:
        raise_shortage(error)
        return []


def _remove(directory: int, name: str) -> bool:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:
        return False
    return True


def _open_lock(directory: int, name: str) -> FileIO | nullcontext[None]:
    try:
        import fcntl  # noqa: F401, PLC0415  (it may be the one to find no descriptor left)

        return open_owned(name, _LOCK_FLAGS, 0o600, dir_fd=directory)
    except (ImportError, OSError):
        return nullcontext()


def lock(file: FileIO | None) -> bool:
    """Lock a file of `open_for_locks` against other processes; return whether that was possible.

    Where there are no locks, or somebody holds this one for seconds, the caller continues without:
    then the last of two changes wins.
    """
    if file is None:
        return False
    import fcntl  # noqa: PLC0415  (only who writes needs it)

    end = monotonic() + _LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic() > end:
                return False
            sleep(_LOCK_POLL_S)
        except OSError:  # a file system without locks
            return False
        else:
            return True


def unlock(file: FileIO | None) -> None:
    """Release the lock of a file before it is closed.

    A child that another thread has forked meanwhile has the descriptor too, and would keep the lock
    if the file were only closed here.
    """
    if file is not None:
        import fcntl  # noqa: PLC0415  (only who writes needs it)

        with suppress(OSError):
            fcntl.flock(file.fileno(), fcntl.LOCK_UN)
