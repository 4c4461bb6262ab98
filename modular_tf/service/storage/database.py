"""Tables that many processes read and change, in a SQLite database of a private directory.

What was read last is in memory, with the changes since; a connection exists for one transaction at
a time. A database that cannot be used is reported once, and everything then lasts as long as the
process: no locks, a full disk, damage, another program's file, one of a newer version, a Python
without SQLite. One that another process has locked for too long is a shortage: what it holds is
unknown.
"""

# The names of tables and columns are constants of this package.
# ruff: noqa: S608

from __future__ import annotations

import errno
import os
from contextlib import closing, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.owned_file import open_owned
from modular_tf.concurrency.threads import call_without_signal_handlers
from modular_tf.events import EventLog
from modular_tf.rules.shortage import SHORTAGE, ShortageError, raise_shortage, require_descriptor
from modular_tf.service.storage.private_directory import refuse

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator

    from modular_tf.service.storage.private_directory import PrivateDirectory

__all__ = ["Database", "Table", "oldest"]

_APPLICATION, _VERSION = 0x6D74665F, 2  # "mtf_", and the version of the tables
_MOST_PAGES = 8192  # of 4096 bytes; the oldest rows go where there are more
_MOST_OF_A_VALUE = 1024 * 1024
_BUSY_S = 2.0  # for another process's transaction, which takes milliseconds
_DAMAGED = ".damaged"
_BESIDE = ("-journal", "-wal", "-shm")
# What SQLite says of a database that is not damaged.
_PASSING = ("locked", "unable to open", "I/O error", "is full", "readonly", "locking protocol")
_log = EventLog("storage")

# A child that is forked in the middle of a transaction would have SQLite's locks and mutexes as
# they were then. So a fork waits for the end of the transaction.
_lock = ForkLock()
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


class _UnusableError(Exception):
    """The database is not to be read, nor written."""


class Table:
    """The rows of one table by their keys: as they were read last, with the changes since.

    `key` names the column of keys, which may be any texts; `columns` the others, which have texts
    of ASCII or numbers. [any thread]
    """

    def __init__(self, name: str, key: str, *columns: str) -> None:
        self.name, self.key = name, key
        self.columns = ", ".join((key, *columns))
        self.marks = ", ?" * (len(columns) + 1)
        self.rows: dict[str, tuple[Any, ...]] = {}  # replaced as a whole
        self.changes: dict[str, tuple[Any, ...] | None] = {}

    # Saving moves changes to rows. So changes are read first, or one would be in neither.

    def get(self, key: str) -> tuple[Any, ...] | None:
        """Return the values beside a key, None where there is no such row."""
        row = self.changes.get(key, ())  # which no row is
        return self.rows.get(key) if row == () else row

    def all(self) -> dict[str, tuple[Any, ...]]:
        """Return every row."""
        changes = self.changes.copy()
        found = {**self.rows, **changes}
        return {key: row for key, row in found.items() if row is not None}

    def put(self, key: str, *values: Any) -> None:
        """Set a row, until it is saved in this process only.

        One of over a megabyte is dropped, and one that is no ASCII, which nothing valid contains.
        """
        self.changes.pop(key, None)  # so that it becomes the newest
        self.changes[key] = values if _is_storable(values) else None

    def take_written(self, written: dict[str, tuple[Any, ...] | None]) -> None:
        """Make rows of changes that were written, but for those that were changed meanwhile."""
        rows = {**self.rows, **written}
        self.rows = {key: row for key, row in rows.items() if row is not None}
        for key, row in written.items():
            now = self.changes.pop(key, row)
            if now is not row:
                self.changes.setdefault(key, now)

    def drop(self, key: str) -> None:
        """Remove a row."""
        self.changes[key] = None


class Database:
    """Some tables of a file that many processes share. [any thread]

    No method raises, whatever is on the disk. `shortage` is why it could not be read the last time,
    where this process or machine has too little of something; else None. Rows belong to a `host`;
    those of others are not seen.
    """

    make_room: ClassVar[tuple[str, ...]]
    """Statements that delete the rows that are needed least."""
    lasts: ClassVar[bool] = False
    """Whether changes survive a power cut, damage is searched for, and what can be read of a
    damaged database is kept: all cost time."""

    def __init__(
        self, directory: PrivateDirectory, name: str, *tables: Table, host: str = ""
    ) -> None:
        self.directory = directory
        self.shortage: ShortageError | None = None
        self._name = name
        self._tables = tables
        self._of_host = _stored(host)
        self._version: tuple[int, int, bytes] | None = None  # of what was read
        self.refresh()

    def refresh(self) -> None:
        """Read the tables again; unsaved changes are kept, and everything in a shortage."""
        try:
            is_read = self._transact(self._read, make=False)
        except ShortageError as error:
            self.shortage = error
            return
        self.shortage = None
        if not is_read:
            self._version = None
            for table in self._tables:
                table.rows = {}
            self.save()  # what was kept of a damaged one

    def save(self) -> bool:
        """Write the changes; return whether that was possible.

        What cannot be written is kept for this process and the next `save`.
        """
        try:
            if not any(table.changes for table in self._tables):
                return True
            # once more where that found damage, into the database that replaces it
            return any(self._transact(self._write, make=True) for _ in range(1 + self.lasts))
        except ShortageError:
            return False

    @property
    def damaged(self) -> str | None:
        """The file to which a damaged database was renamed, if one is there."""
        return self.directory.real_path_of(f"{self._name}{_DAMAGED}", make=False)

    def take_over(self, used: sqlite3.Connection) -> None:
        """Put into the tables what a database of the version before has; it is dropped then."""

    # -- one transaction --------------------------------------------------------------------------

    def _read(self, used: sqlite3.Connection) -> None:
        import sqlite3  # noqa: PLC0415  (only where there is something to read or write)

        used.execute("BEGIN")
        version = _version_of_tables(used)
        rows: list[dict[str, tuple[Any, ...]]] = [{} for _ in self._tables]
        try:
            if self.lasts and (it := used.execute("PRAGMA quick_check(1)").fetchone()) != ("ok",):
                raise sqlite3.DatabaseError(str(it))
            for table, found in zip(self._tables, rows, strict=True):
                if version == _VERSION:
                    host = "(SELECT id FROM host WHERE parts = ?)"
                    select = f"SELECT {table.columns} FROM {table.name} WHERE host = {host}"
                    found.update(_rows(used.execute(f"{select} ORDER BY id", (self._of_host,))))
            for table, found in zip(self._tables, rows, strict=True):
                table.rows = found
            if version == _VERSION - 1:
                self.take_over(used)
        except (sqlite3.Error, TypeError, ValueError) as error:  # the others of a damaged key
            if self.lasts and not _is_passing(error):
                self._salvage(used)
            raise sqlite3.DatabaseError(str(error)) from error

    def _salvage(self, used: sqlite3.Connection) -> None:
        """Read what can be read of a damaged database, from both ends of each table."""
        import sqlite3  # noqa: PLC0415  (as above)

        damage = (sqlite3.Error, TypeError, ValueError)
        with suppress(*damage):
            self.take_over(used)
        for table in self._tables:
            found: dict[str, tuple[Any, ...]] = {}
            for order in ("ASC", "DESC"):
                with suppress(*damage):
                    select = f"SELECT {table.columns} FROM {table.name} ORDER BY id {order}"
                    for key, row in _rows(used.execute(select)):
                        found.setdefault(key, row)
            table.rows = {**table.rows, **{k: r for k, r in found.items() if _is_storable(r)}}

    def _write(self, used: sqlite3.Connection) -> None:
        used.execute(f"PRAGMA synchronous = {'FULL' if self.lasts else 'OFF'}")
        used.execute("BEGIN IMMEDIATE")
        version = _version_of_tables(used)
        if version == _VERSION - 1:
            self.take_over(used)
        if version != _VERSION:
            self._make_tables(used)
        used.execute("INSERT OR IGNORE INTO host (parts) VALUES (?)", (self._of_host,))
        ((host,),) = used.execute("SELECT id FROM host WHERE parts = ?", (self._of_host,))
        written = [dict(table.changes) for table in self._tables]
        for table, changes in zip(self._tables, written, strict=True):
            used.executemany(
                f"DELETE FROM {table.name} WHERE host = ? AND {table.key} = ?",
                [(host, _stored(key)) for key in changes],
            )
            used.executemany(
                f"INSERT INTO {table.name} (host, {table.columns}) VALUES (?{table.marks})",
                [(host, _stored(key), *row) for key, row in changes.items() if row is not None],
            )
        while used.execute(_PAGES_IN_USE).fetchone() > (_MOST_PAGES,):
            if not sum(used.execute(statement).rowcount for statement in self.make_room):
                break
        used.execute("COMMIT")
        for table, changes in zip(self._tables, written, strict=True):
            table.take_written(changes)

    def _make_tables(self, used: sqlite3.Connection) -> None:
        for old in ("record", "subject"):
            used.execute(f"DROP TABLE IF EXISTS {old}")
        used.execute("CREATE TABLE host (id INTEGER PRIMARY KEY, parts BLOB NOT NULL UNIQUE)")
        for table in self._tables:
            used.execute(
                f"CREATE TABLE {table.name} (id INTEGER PRIMARY KEY, host INTEGER NOT NULL,"
                f" {table.columns.replace(',', ' NOT NULL,')} NOT NULL, UNIQUE (host, {table.key}))"
            )
        used.execute(f"PRAGMA application_id = {_APPLICATION}")
        used.execute(f"PRAGMA user_version = {_VERSION}")

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
                import sqlite3  # noqa: PLC0415  (as above)
            except ImportError as error:
                _report(path, f"this Python has no SQLite ({error})")
                return False
            try:
                before = os.stat(path)
                version = _version_of(path, before)
                if not make and version == self._version:
                    return True
                self._version = None
                with closing(sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)) as used:
                    used.execute("PRAGMA trusted_schema = OFF")
                    work(used)
                self._version = None if make else version
            except _UnusableError as error:
                refuse(path, str(error))
            except (OSError, MemoryError) as error:
                raise_shortage(error)
            except sqlite3.Error as error:
                if _is_passing(error):
                    require_descriptor()
                    _report(path, str(error))
                    if "is locked" in str(error):
                        _require_no_locks(path)
                else:
                    _set_aside(path, before, str(error))
                    for table in self._tables if self.lasts else ():
                        table.changes = {**table.rows, **table.changes}
            else:
                return True
            return False


_PAGES_IN_USE = "SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count"


def oldest(table: str, order: str = "id", where: str = "TRUE") -> str:
    """Return the statement that deletes the first eighth of a table's rows."""
    eighth = f"(SELECT count(*) / 8 + 1 FROM {table})"
    first = f"SELECT id FROM {table} ORDER BY {order} LIMIT {eighth}"
    return f"DELETE FROM {table} WHERE {where} AND id IN ({first})"


def _is_storable(values: tuple[Any, ...]) -> bool:
    texts = [value for value in values if isinstance(value, str)]
    others = [value for value in values if not isinstance(value, str | int | float)]
    return not others and all(map(str.isascii, texts)) and sum(map(len, texts)) < _MOST_OF_A_VALUE


def _is_passing(error: Exception) -> bool:
    """Return whether SQLite's error says nothing of damage; some contain a damaged text."""
    message = str(error)
    is_of_text = message.startswith("Could not decode")
    return not is_of_text and any(word in message for word in _PASSING)


def _rows(found: Iterable[tuple[Any, ...]]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for key, *values in found:
        yield str(key, "utf-8", "surrogatepass"), tuple(values)


def _stored(text: str) -> bytes:
    """Return a text as it is stored; the name of a file may be no text of any encoding."""
    return text.encode("utf-8", "surrogatepass")


def _version_of(path: str, status: os.stat_result) -> tuple[int, int, bytes]:
    """Return what differs after each transaction: SQLite counts them in the file's header.

    Closing the file would end the locks of this process on it; under `_lock` there are none.
    """
    with open_owned(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW) as file:
        return status.st_dev, status.st_ino, os.pread(file.fileno(), 4, 24)


def _version_of_tables(used: sqlite3.Connection) -> int:
    """Return the version of a database's tables, 0 for one that is empty.

    Raises _UnusableError if it is of another program, or of a newer version of this one.
    """
    ((application,),) = used.execute("PRAGMA application_id")
    ((version,),) = used.execute("PRAGMA user_version")
    if application == _APPLICATION and version in (_VERSION - 1, _VERSION):
        return int(version)
    if application == _APPLICATION:
        raise _UnusableError(f"a newer version of modular_tf wrote it (format {version})")
    if application or version or used.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise _UnusableError("another program wrote it")
    return 0


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
