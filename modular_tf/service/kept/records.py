"""Records that many processes read and change: a key and a JSON value each, in a SQLite database.

What was read last is in memory, with the changes since; a connection exists for one transaction at
a time. Each record has a checksum, so that damage which SQLite does not notice costs one record. A
database that cannot be used is reported once, and everything then lasts as long as the process: no
locks, a full disk, damage, another program's file, one of a newer version, a Python without SQLite.
One that another process has locked for too long is a shortage: what it holds is unknown.
"""

from __future__ import annotations

import errno
import os
from contextlib import closing, suppress
from functools import lru_cache
from json import JSONDecoder, dumps
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.owned_file import open_owned
from modular_tf.concurrency.threads import call_without_signal_handlers
from modular_tf.events import EventLog
from modular_tf.rules.shortage import SHORTAGE, ShortageError, raise_shortage, require_descriptor
from modular_tf.service.kept.private_directory import refuse

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator

    from modular_tf.service.kept.private_directory import PrivateDirectory

__all__ = ["Records"]

_APPLICATION, _VERSION = 0x6D74665F, 1  # "mtf_", and the version of the tables
_TABLES = (
    "CREATE TABLE subject (id INTEGER PRIMARY KEY, text BLOB NOT NULL UNIQUE)",
    """CREATE TABLE record (
        id INTEGER PRIMARY KEY, subject INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,
        digest BLOB NOT NULL, rank INTEGER NOT NULL, checksum INTEGER NOT NULL,
        UNIQUE (subject, key)
    )""",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)
_READ = (
    "SELECT key, value, digest, rank, checksum FROM record"
    " WHERE subject = (SELECT id FROM subject WHERE text = ?)"
)
_PUT = (
    "INSERT OR REPLACE INTO record (subject, key, value, digest, rank, checksum)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
_MAKE_ROOM = (  # a new record has a new and higher id
    "DELETE FROM record WHERE id IN (SELECT id FROM record"
    " ORDER BY rank, id LIMIT (SELECT count(*) / 8 + 1 FROM record))"
)
_MOST_PAGES = 8192  # of 4096 bytes; the least records go where there are more
_MOST_BYTES_OF_A_VALUE = 1024 * 1024
_BUSY_S = 2.0  # for another process's transaction, which takes milliseconds
_DAMAGED = ".damaged"
_BESIDE = ("-journal", "-wal", "-shm")

# What SQLite says of a database that is not damaged.
_PASSING = ("locked", "unable to open", "I/O error", "is full", "readonly", "locking protocol")
_decode = JSONDecoder().raw_decode
_log = EventLog("storage")

# A child that is forked in the middle of a transaction would have SQLite's locks and mutexes as
# they were then. So a fork waits for the end of the transaction.
_lock = ForkLock()
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


class _Row(NamedTuple):
    """A record as it is stored, but for its key: all bytes are ASCII."""

    value: bytes  # JSON
    digest: bytes  # records can be found by it, beside the key
    rank: int  # records of lower rank go first, and of those the oldest


class _UnusableError(Exception):
    """The database is not to be read, nor written."""


class Records:
    """The records of one subject when they were last read, with the changes since. [any thread]

    No method raises, whatever is on the disk. Records of other subjects are not seen.

    `shortage` is why the database could not be read the last time, where this process or machine
    has too little of something; else None.

    Args:
        directory: The directory of the database.
        name: The name of the database.
        subject: What the records are about.
        lasts: Whether changes survive a power cut, at the price of waiting for the disk.
    """

    def __init__(
        self, directory: PrivateDirectory, name: str, subject: str, *, lasts: bool = False
    ) -> None:
        self.directory = directory
        self.shortage: ShortageError | None = None
        self._name = name
        self._subject = _text(subject)
        self._lasts = lasts
        self._seed = crc32(self._subject)
        self._rows: dict[bytes, _Row] = {}
        self._changes: dict[bytes, _Row | None] = {}
        self._salvaged: dict[bytes, _Row] = {}  # from a database that is damaged
        self._version: tuple[int, int, bytes] | None = None  # of what was read
        self._by_digest: tuple[dict[bytes, _Row], dict[bytes, list[bytes]]] = ({}, {})
        self.refresh()

    def refresh(self) -> None:
        """Read the records again; unsaved changes are kept, and everything in a shortage."""
        try:
            if not self._transact(self._read, make=False):
                self._rows, self._version = {}, None
        except ShortageError as error:
            self.shortage = error
            return
        self.shortage = None
        if self._salvaged:
            self._changes = {**self._salvaged, **self._changes}
            self._salvaged = {}
            self.save()

    @property
    def damaged(self) -> str | None:
        """The file to which a damaged database was renamed, if one is there."""
        return self.directory.real_path_of(f"{self._name}{_DAMAGED}", make=False)

    @property
    def is_empty(self) -> bool:
        """Whether there is no record."""
        return not self._rows and not self._changes

    def get(self, key: str) -> Any | None:
        """Return the value of a key; None if there is none, or it is damaged."""
        encoded = _text(key)
        row = self._changes.get(encoded, self._rows.get(encoded))
        return None if row is None else _value(row.value)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield every key with its value."""
        for encoded, row in {**self._rows, **self._changes}.items():
            key, value = _value(encoded), None if row is None else _value(row.value)
            if isinstance(key, str) and value is not None:
                yield key, value

    def keys_with_digest(self, digest: str) -> list[str]:
        """Return the keys that were put with a digest, or have been until they were changed."""
        if not digest:
            return []
        wanted = digest.encode("ascii", "replace")
        rows, keys = self._by_digest
        if rows is not self._rows:
            rows, keys = self._rows, {}
            for key, row in rows.items():
                keys.setdefault(row.digest, []).append(key)
            self._by_digest = rows, keys
        changed = [key for key, row in [*self._changes.items()] if row and row.digest == wanted]
        found = [_value(key) for key in dict.fromkeys((*keys.get(wanted, ()), *changed))]
        return [key for key in found if isinstance(key, str)]

    def put(self, key: str, value: Any, *, digest: str = "", rank: int = 0) -> None:
        """Set the value of a key in this process, until it is saved.

        The value is what JSON can hold, and not None; one of more than a megabyte is not stored.
        `keys_with_digest` finds the record by its digest. Where there is no room, records of lower
        rank go, and of those the oldest.
        """
        text = _text(value)
        small = len(text) < _MOST_BYTES_OF_A_VALUE
        row = _Row(text, digest.encode("ascii", "replace"), rank)
        self._change(_text(key), row if small else None)

    def renew(self, key: str) -> None:
        """Make a key the newest one."""
        encoded = _text(key)
        if (row := self._changes.get(encoded, self._rows.get(encoded))) is not None:
            self._change(encoded, row)

    def drop(self, key: str) -> None:
        """Remove the record of a key."""
        self._change(_text(key), None)

    def save(self) -> bool:
        """Write the changes; return whether that was possible.

        What cannot be written is kept for this process and the next `save`.
        """
        changes = dict(self._changes)
        if not changes:
            return True
        try:
            return self._transact(lambda used: self._write(used, changes), make=True)
        except ShortageError:
            return False

    def _change(self, key: bytes, row: _Row | None) -> None:
        try:
            self._changes.pop(key, None)  # so that it becomes the newest
        finally:  # also where a signal handler raises
            self._changes[key] = row

    # -- one transaction --------------------------------------------------------------------------

    def _read(self, used: sqlite3.Connection) -> None:
        rows: dict[bytes, _Row] = {}
        used.execute("BEGIN")
        is_ours = _is_ours(used)
        try:
            for key, value, digest, rank, checksum in (
                used.execute(_READ, (self._subject,)) if is_ours else ()
            ):
                is_whole = type(key) is type(value) is type(digest) is bytes
                if (
                    is_whole
                    and type(rank) is int
                    and checksum == self._checksum(key, value, digest)
                ):
                    rows[key] = _Row(value, digest, rank)
        except Exception:
            self._salvaged = rows
            raise
        self._rows = rows

    def _checksum(self, key: bytes, value: bytes, digest: bytes) -> int:
        return crc32(value, crc32(b"%s\t%s\t" % (key, digest), self._seed))

    def _write(self, used: sqlite3.Connection, changes: dict[bytes, _Row | None]) -> None:
        used.execute(f"PRAGMA synchronous = {'FULL' if self._lasts else 'OFF'}")
        used.execute("BEGIN IMMEDIATE")
        if not _is_ours(used):
            for statement in _TABLES:
                used.execute(statement)
        used.execute("INSERT OR IGNORE INTO subject (text) VALUES (?)", (self._subject,))
        ((subject,),) = used.execute("SELECT id FROM subject WHERE text = ?", (self._subject,))
        gone = [(subject, key) for key, row in changes.items() if row is None]
        put = [
            (subject, key, *row, self._checksum(key, row.value, row.digest))
            for key, row in changes.items()
            if row is not None
        ]
        used.executemany("DELETE FROM record WHERE subject = ? AND key = ?", gone)
        used.executemany(_PUT, put)
        while _pages_in_use(used) > _MOST_PAGES and used.execute(_MAKE_ROOM).rowcount > 0:
            used.execute("DELETE FROM subject WHERE id NOT IN (SELECT subject FROM record)")
        used.execute("COMMIT")
        self._rows = {k: row for k, row in {**self._rows, **changes}.items() if row is not None}
        for key, row in changes.items():
            if self._changes.get(key, row) is row:  # else it was changed meanwhile
                self._changes.pop(key, None)

    def _transact(self, work: Callable[[sqlite3.Connection], None], *, make: bool) -> bool:
        """Perform a transaction; return False where there is no database that can be used.

        No signal handler runs in its middle: it could fork there, or use this. One that runs within
        a fork, which has the lock, does without another thread, which would wait for it. Raises
        ShortageError if the database cannot be used now.
        """
        if _lock.is_held_by_this_thread:
            return self._transact_now(work, make=make)
        return call_without_signal_handlers(lambda: self._transact_now(work, make=make))

    def _transact_now(self, work: Callable[[sqlite3.Connection], None], *, make: bool) -> bool:
        with _lock:
            path = self.directory.real_path_of(self._name, make=make)
            if path is None:
                return False
            try:
                import sqlite3  # noqa: PLC0415  (only where there is something to read or write)
            except ImportError as error:
                _report(path, f"this Python has no SQLite ({error})")
                return False
            try:
                before = os.stat(path)
                version = _version_of(path, before)
                if not make and version == self._version:
                    return True
                self._version = None
                with closing(_connection(path)) as used:
                    work(used)
                self._version = None if make else version
            except _UnusableError as error:
                refuse(path, str(error))
            except (OSError, MemoryError) as error:
                self._salvaged = {}
                raise_shortage(error)
            except sqlite3.Error as error:
                if any(word in str(error) for word in _PASSING):
                    self._salvaged = {}  # the database is whole, and newer than these
                    require_descriptor()
                    _report(path, str(error))
                    if "is locked" in str(error):
                        _require_no_locks(path)
                else:
                    _set_aside(path, before, str(error))
            else:
                return True
            return False


def _connection(path: str) -> sqlite3.Connection:
    import sqlite3  # noqa: PLC0415  (as above)

    used = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
    used.text_factory = bytes
    used.execute("PRAGMA trusted_schema = OFF")
    return used


def _version_of(path: str, status: os.stat_result) -> tuple[int, int, bytes]:
    """Return what differs after each transaction: SQLite counts them in the file's header.

    Closing the file would end the locks of this process on it; under `_lock` there are none.
    """
    with open_owned(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW) as file:
        return status.st_dev, status.st_ino, os.pread(file.fileno(), 4, 24)


def _is_ours(used: sqlite3.Connection) -> bool:
    """Return whether a database has the tables; False for one that is empty.

    Raises _UnusableError if it is of another program, or of a newer version of this one.
    """
    ((application,),) = used.execute("PRAGMA application_id")
    ((version,),) = used.execute("PRAGMA user_version")
    if application == _APPLICATION and version == _VERSION:
        return True
    if application == _APPLICATION:
        raise _UnusableError(f"a newer version of modular_tf wrote it (format {version})")
    if application or version or used.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise _UnusableError("another program wrote it")
    return False


def _pages_in_use(used: sqlite3.Connection) -> int:
    ((pages,),) = used.execute("PRAGMA page_count")
    ((free,),) = used.execute("PRAGMA freelist_count")
    in_use: int = pages - free
    return in_use


def _require_no_locks(path: str) -> None:
    """Raise ShortageError if another process has locked the database.

    SQLite reports a file system without locks in the same words; then this does not raise.
    """
    import fcntl  # noqa: PLC0415  (few wait for so long)

    try:
        with open(path, "rb", buffering=0) as file:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):  # which say that it is locked
            raise_shortage(error)
            return
    message = f"{path}: another process has locked it; try again, or end that process"
    raise ShortageError(f"{message} (rule {SHORTAGE})", rule=SHORTAGE)


def _set_aside(path: str, seen: os.stat_result, why: str) -> None:
    """Rename a damaged database, unless another process has done so, and begin anew."""
    with suppress(OSError):
        if not os.path.samestat(os.stat(path), seen):
            return
        for suffix in _BESIDE:  # or SQLite would repair the new database by them
            with suppress(FileNotFoundError):
                os.replace(f"{path}{suffix}", f"{path}{_DAMAGED}{suffix}")
        os.replace(path, f"{path}{_DAMAGED}")
        _log.warning("storage.damaged", path=path, why=why, moved=f"{path}{_DAMAGED}")
        return
    _report(path, why)


@lru_cache(maxsize=64)  # reported once, not at each transaction
def _report(path: str, why: str) -> None:
    _log.warning("storage.not_used", path=path, why=why)


def _text(value: Any) -> bytes:
    """Return JSON of ASCII."""
    text = encode_basestring_ascii(value) if type(value) is str else dumps(value)
    return text.encode("ascii")


def _value(text: bytes) -> Any | None:
    try:
        decoded = text.decode("ascii")
        value, end = _decode(decoded)  # what `loads` does, in half the time
    except (ValueError, RecursionError):
        return None
    return value if end == len(decoded) else None
