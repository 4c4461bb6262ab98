"""What may happen to a database, by accident and on purpose."""

from __future__ import annotations

import json
import shutil
import sqlite3
import weakref
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from modular_tf.service.storage.private_directory import PrivateDirectory

if TYPE_CHECKING:
    import random

NAME = "given.sqlite"
_ODD_VALUES = (
    None, True, False, 0, -1, 1.5, 1e308, 2**63, 10**40, "", "x", "\udcff", "\0", "LD-060",
    "device", [], [[]], [None] * 5, [0] * 5, {}, {"rule": 1}, {"": []},
)  # fmt: skip
ODD_TEXTS = (
    b"[" * 20_000, b'{"a":' * 5000, b"9" * 5000, b"-", b"NaN", b"Infinity", b"1e999", b'"\\ud800"',
    b"\xff\xfe", b"", b" ", b"nul", b'"\\u0000"', b"\xef\xbb\xbf[]",
)  # fmt: skip


class GivenDirectory(PrivateDirectory):
    """A directory in which the database has the bytes that it was given, or that were written."""

    def __init__(self, data: bytes = b"") -> None:
        folder = mkdtemp()
        super().__init__(folder)
        weakref.finalize(self, shutil.rmtree, folder)
        self._file = Path(folder) / NAME
        if data:
            self._file.write_bytes(data)

    def real_path_of(self, name: str, *, make: bool) -> str | None:
        """Return the path of the database."""
        del name
        if make:
            self._file.touch()
        return str(self._file) if self._file.exists() else None

    def read(self, name: str, most: int) -> bytes | None:
        """Find no other file."""
        del name, most

    @property
    def data(self) -> bytes:
        """The bytes of the database."""
        return self._file.read_bytes()


def damaged(bases: tuple[bytes, ...], dice: random.Random) -> bytes:
    """Return a file after accidents."""
    content = dice.choice(bases)
    for _ in range(dice.choice((0, 1, 1, 1, 2, 3, 8))):
        content = dice.choice(_ACCIDENTS)(content, bases, dice)
    return content


def forged(base: bytes, table: str, dice: random.Random) -> bytes:
    """Return a file of which one entry of a table says something else."""
    directory = GivenDirectory(base)
    with closing(sqlite3.connect(Path(directory.path or "") / NAME)) as used:
        at, text = dice.choice(used.execute(f"SELECT id, entry FROM {table}").fetchall())
        if dice.random() < 0.15:
            value: Any = dice.choice(ODD_TEXTS)
        else:
            value = json.dumps(changed(json.loads(text), dice))
        used.execute(f"UPDATE {table} SET entry = ? WHERE id = ?", (value, at))
        used.commit()
    return directory.data


def changed(value: Any, dice: random.Random) -> Any:
    """Return JSON that differs in one place."""
    if not isinstance(value, (dict, list)) or not value or dice.random() < 0.15:
        return dice.choice(_ODD_VALUES)
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    place = dice.choice(list(copy) if isinstance(copy, dict) else range(len(copy)))
    deed = dice.random()
    if deed < 0.1:
        del copy[place]
    elif deed < 0.2 and isinstance(copy, list):
        copy.insert(place, dice.choice(_ODD_VALUES))
    elif deed < 0.2:
        copy[dice.choice(("", "rule", "more"))] = dice.choice(_ODD_VALUES)
    else:
        copy[place] = changed(copy[place], dice)
    return copy


# -- accidents ------------------------------------------------------------------------------


def _cut(content: bytes, _: tuple[bytes, ...], dice: random.Random) -> bytes:
    return content[: dice.randint(0, len(content))]


def _flip(content: bytes, _: tuple[bytes, ...], dice: random.Random) -> bytes:
    data = bytearray(content)
    for _number in range(min(len(data), dice.choice((1, 1, 2, 16)))):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(data)


def _overwrite(content: bytes, _: tuple[bytes, ...], dice: random.Random) -> bytes:
    """As after a power cut: a block of zeros, or of something else."""
    at, length = dice.randint(0, len(content)), dice.choice((1, 8, 64, 512, 4096))
    filler = bytes(length) if dice.random() < 0.5 else dice.randbytes(length)
    return content[:at] + filler + content[at + length :]


def _remove(content: bytes, _: tuple[bytes, ...], dice: random.Random) -> bytes:
    at = dice.randint(0, len(content))
    return content[:at] + content[at + dice.choice((1, 1, 2, 9, 100)) :]


def _insert(content: bytes, bases: tuple[bytes, ...], dice: random.Random) -> bytes:
    at = dice.randint(0, len(content))
    other = dice.choice(bases)
    start = dice.randint(0, len(other))
    piece = dice.choice((b"\n", b"\t", b'"', b"\0", other[start : start + dice.randint(1, 300)]))
    return content[:at] + piece + content[at:]


def _splice(content: bytes, bases: tuple[bytes, ...], dice: random.Random) -> bytes:
    """As when two processes wrote at once."""
    other = dice.choice(bases)
    at = dice.randint(0, min(len(content), len(other)))
    return content[:at] + other[at:]


def _mix_lines(content: bytes, bases: tuple[bytes, ...], dice: random.Random) -> bytes:
    """Take lines of several files, in any order, some twice, under the title of this one."""
    title, *rows = content.split(b"\n")
    rows += dice.choice(bases).split(b"\n")[1:]
    chosen = [dice.choice(rows) for _ in range(len(rows))] if rows else []
    return b"\n".join([title, *chosen, b""])


def _mix_cells(content: bytes, _: tuple[bytes, ...], dice: random.Random) -> bytes:
    """Give a record the key, checksum or value of another."""
    rows = [row.split(b"\t") for row in content.split(b"\n")]
    one, other = dice.choice(rows), dice.choice(rows)
    column = dice.randrange(3)
    if min(len(one), len(other)) > column:
        one[column] = other[column]
    return b"\n".join(b"\t".join(row) for row in rows)


_ACCIDENTS = (_cut, _flip, _flip, _overwrite, _remove, _insert, _splice, _mix_lines, _mix_cells)
