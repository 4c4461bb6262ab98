"""A file of records that many processes read and change: a key and a JSON value in each line.

Each line has a checksum over the file's title, its key and its value, so that damage to the file
costs only the damaged lines. Readers take no lock; a writer merges its changes into the file.
"""

from __future__ import annotations

import re
from json import JSONDecoder, dumps
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any
from zlib import crc32

from modular_tf.concurrency.computed_once import computed_once
from modular_tf.rules.shortage import ShortageError
from modular_tf.service.kept.storage.private_directory import lock, unlock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from modular_tf.service.kept.storage.private_directory import PrivateDirectory

_decode = JSONDecoder().raw_decode
_DIGEST = rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])"  # compiled where there is something new
_MOST_BYTES = 32 * 1024 * 1024  # of a file that is read; none is written that has more
_MOST_BYTES_OF_A_LINE = 1024 * 1024
_MOST_RECORDS = 16384  # ten times as many plugins as a large installation has


_UNCHANGED = b""  # in the place of a change; no JSON text is empty


class _Read:
    """The content of the file, None where it was not read but written, and its lines."""

    def __init__(self, content: bytes | None, lines: dict[bytes, bytes]) -> None:
        self.content = content
        self.lines = lines

    @computed_once
    def keys_by_digest(self) -> dict[bytes, dict[bytes, None]]:
        found: dict[bytes, dict[bytes, None]] = {}
        for key, line in self.lines.items():
            _note_digests(found, key, line)
        return found


class RecordFile:
    """The records of one file when it was last read, with the changes since.

    No method raises, whatever is on the disk. [any thread] No lock is held while the disk is
    waited for: each change of an attribute or a dictionary is one step of the interpreter.

    Attributes:
        directory: The directory that the file is in.
        name: The file's name there.
        title: What the file is about; one with another title counts as empty.
        shortage: Why the file could not be read the last time, for what this process or machine has
            too little of; None where that is not why.
    """

    def __init__(
        self,
        directory: PrivateDirectory,
        name: str,
        title: str,
        rank: Callable[[Any], int] = lambda _: 0,
    ) -> None:
        """Read the file's records.

        Args:
            directory: The directory.
            name: The file's name.
            title: What it is about: a kind of content, its version, whatever it is valid for.
            rank: Where there is no room, values go for which this returns less, and of those with
                the same rank the oldest. Takes any value that JSON can hold, and None.
        """
        self.directory = directory
        self.name = name
        self.title = title
        self._rank = rank
        self._seed = crc32(_text(title))
        self.shortage: ShortageError | None = None
        self._read = _Read(None, {})
        self._changes: dict[bytes, bytes | None] = {}
        self._changed_by_digest: dict[bytes, dict[bytes, None]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read the file again; unsaved changes are kept, and everything in a shortage."""
        self._read_again()

    def _read_again(self) -> _Read | None:
        """Read the file again and return what was read; None in a shortage."""
        while True:
            before = self._read
            try:
                content = self.directory.read(self.name, _MOST_BYTES) or b""
            except ShortageError as error:
                self.shortage = error
                return None
            self.shortage = None
            is_same = content == before.content
            read = before if is_same else _Read(content, self._lines_of(content))
            if self._read is before:  # else another thread has read or written the file meanwhile
                self._read = read
                return read

    @property
    def is_empty(self) -> bool:
        """Whether there is no record."""
        return not self._read.lines and not self._changes

    @property
    def has_changes(self) -> bool:
        """Whether there is anything to save."""
        return bool(self._changes)

    def get(self, key: str) -> Any | None:
        """Return the value of a key; None if there is none, or it is damaged."""
        encoded = _text(key)
        changed = self._changes.get(encoded, _UNCHANGED)
        if changed is not _UNCHANGED:
            return _value(changed)
        line = self._read.lines.get(encoded)
        return None if line is None else self._checked(encoded, line)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield every key with its value, in the order in which they were put."""
        changes = dict(self._changes)
        for encoded in [*(k for k in self._read.lines if k not in changes), *changes]:
            key = _value(encoded)
            if isinstance(key, str) and (value := self.get(key)) is not None:
                yield key, value

    def keys_with_digest(self, digest: str) -> list[str]:
        """Return the keys whose value may hold a SHA-256, as 64 hexadecimal digits.

        A value that was changed since may hold it no longer.
        """
        wanted = digest.encode("ascii")
        saved, changed = self._read.keys_by_digest, self._changed_by_digest
        found = {**saved.get(wanted, {}), **changed.get(wanted, {})}
        keys = [_value(key) for key in found]
        return [key for key in keys if isinstance(key, str)]

    def put(self, key: str, value: Any) -> None:
        """Set the value of a key, for this process until it is saved.

        Args:
            key: Any string.
            value: What JSON can hold, and not None. One of more than a megabyte is not kept.
        """
        encoded = _text(value)
        small = len(encoded) < _MOST_BYTES_OF_A_LINE
        self._change(_text(key), encoded if small else None)

    def renew(self, key: str) -> None:
        """Make a key the newest one."""
        encoded = _text(key)
        changed = self._changes.get(encoded, _UNCHANGED)
        if changed is not _UNCHANGED:
            self._change(encoded, changed)

    def drop(self, key: str) -> None:
        """Remove the record of a key."""
        self._change(_text(key), None)

    def save(self) -> bool:
        """Merge the changes into the file; return whether that was possible.

        What cannot be written is kept for this process and the next `save`.
        """
        if not self._changes:
            return True
        with self.directory.open_for_locks() as file:
            try:
                lock(file)
                return self._save()
            finally:
                unlock(file)

    def _save(self) -> bool:
        read = self._read_again()
        if read is None:  # what others wrote would be lost
            return False
        changes = dict(self._changes)
        merged = self._merged(read.lines, changes)
        if not self.directory.replace(self.name, self._as_bytes(merged)):
            return False
        self._read = _Read(None, merged)
        for key, value in changes.items():
            newest = self._changes.pop(key, _UNCHANGED)
            if newest is not value and newest is not _UNCHANGED:  # it was changed meanwhile
                self._changes.setdefault(key, newest)
        return True

    # -- lines ----------------------------------------------------------------------------------

    def _change(self, key: bytes, value: bytes | None) -> None:
        try:
            self._changes.pop(key, None)  # so that it becomes the newest
        finally:  # also where a signal handler raises
            self._changes[key] = value
        _note_digests(self._changed_by_digest, key, value)

    def _merged(
        self, lines: Mapping[bytes, bytes], changes: Mapping[bytes, bytes | None]
    ) -> dict[bytes, bytes]:
        """Return all lines by key, the oldest first, as far as there is room."""
        kept = {key: line for key, line in lines.items() if key not in changes}
        changed = {
            key: self._line(key, value) for key, value in changes.items() if value is not None
        }
        return self._fitting({**kept, **changed})

    def _fitting(self, lines: dict[bytes, bytes]) -> dict[bytes, bytes]:
        """Return the lines without those for which there is no room."""
        size = len(_text(self.title)) + sum(map(_size, lines.items())) + 1
        if size <= _MOST_BYTES and len(lines) <= _MOST_RECORDS:
            return lines
        left = dict(lines)
        for key in sorted(lines, key=lambda key: self._rank(self._checked(key, lines[key]))):
            if size <= _MOST_BYTES and len(left) <= _MOST_RECORDS:
                break
            size -= _size((key, left.pop(key)))
        return left

    def _line(self, key: bytes, value: bytes) -> bytes:
        return b"%08x\t%s" % (self._sum(key, value), value)

    def _sum(self, key: bytes, value: bytes) -> int:
        return crc32(value, crc32(key + b"\t", self._seed))

    def _checked(self, key: bytes, line: bytes) -> Any | None:
        checksum, _, value = line.partition(b"\t")
        return _value(value) if checksum == b"%08x" % self._sum(key, value) else None

    def _as_bytes(self, lines: dict[bytes, bytes]) -> bytes:
        rows = [b"%s\t%s" % (key, line) for key, line in lines.items()]
        return b"\n".join([_text(self.title), *rows, b""])

    def _lines_of(self, content: bytes) -> dict[bytes, bytes]:
        title, _, rows = content.partition(b"\n")
        if title != _text(self.title):
            return {}
        return dict(_split(rows))


def _note_digests(keys: dict[bytes, dict[bytes, None]], key: bytes, line: bytes | None) -> None:
    for digest in re.findall(_DIGEST, line or b""):
        keys.setdefault(digest, {})[key] = None


def _size(row: tuple[bytes, bytes]) -> int:
    """Return how many bytes a row takes, with its tab and its end."""
    return len(row[0]) + len(row[1]) + 2


def _split(rows: bytes) -> Iterator[tuple[bytes, bytes]]:
    for row in rows.split(b"\n", 2 * _MOST_RECORDS):
        key, _, line = row.partition(b"\t")
        if line and len(line) <= 2 * _MOST_BYTES_OF_A_LINE:
            yield key, line


def _text(value: Any) -> bytes:
    """Return JSON in one line of ASCII, without tabs."""
    text = encode_basestring_ascii(value) if type(value) is str else dumps(value)
    return text.encode("ascii")


def _value(text: bytes | None) -> Any | None:
    if text is None:
        return None
    try:
        decoded = text.decode("ascii")
        value, end = _decode(decoded)  # what `loads` does, in half the time
    except (ValueError, RecursionError):
        return None
    return value if end == len(decoded) else None
