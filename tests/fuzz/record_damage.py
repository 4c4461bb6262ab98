"""What may happen to a database, by accident and on purpose."""

from __future__ import annotations

import json
import shutil
import sqlite3
import weakref
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from modular_tf.service.storage.private_directory import PrivateDirectory

_NAME = "given.sqlite"
_IN_MEMORY = Path("/dev/shm")  # where nobody waits for a disk
_ODD_VALUES = (
    None, True, False, 0, -1, 1.5, 1e308, 2**63, 10**40, "", "x", "\udcff", "\0", "LD-060",
    "device", [], [[]], [None] * 5, [0] * 5, {}, {"rule": 1}, {"": []},
)  # fmt: skip
ODD_TEXTS = (
    b"[" * 20_000, b'{"a":' * 5000, b"9" * 5000, b"-", b"NaN", b"Infinity", b"1e999", b'"\\ud800"',
    b"\xff\xfe", b"", b" ", b"nul", b'"\\u0000"', b"\xef\xbb\xbf[]",
)  # fmt: skip


class StoredFile(NamedTuple):
    """The bytes of a database, and whether somebody meant it to be believed."""

    content: bytes
    forged: bool

    def kind(self, recalled):
        return f"{'forged' if self.forged else 'damaged'}, {recalled} recalled"


class GivenDirectory(PrivateDirectory):
    """A directory in which the database has the bytes that it was given, or that were written."""

    def __init__(self, data=b""):
        folder = mkdtemp(dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None)
        super().__init__(folder)
        weakref.finalize(self, shutil.rmtree, folder)
        self.file = Path(folder) / _NAME
        if data:
            self.file.write_bytes(data)

    def real_path_of(self, name, *, make):
        if make:
            self.file.touch()
        return str(self.file) if self.file.exists() else None

    def read(self, name, most):
        """Find no other file."""

    @property
    def data(self):
        return self.file.read_bytes()


def made_file(bases, forgeable, table, dice):
    """Return a file after accidents, or one of which somebody forged an entry of a table."""
    if dice.random() < 0.3:
        return StoredFile(_forged(dice.choice(forgeable), table, dice), forged=True)
    content = dice.choice(bases)
    for _ in range(dice.choice((0, 1, 1, 1, 2, 3, 8))):
        content = dice.choice(_ACCIDENTS)(content, bases, dice)
    return StoredFile(content, forged=False)


def _forged(base, table, dice):
    directory = GivenDirectory(base)
    with closing(sqlite3.connect(directory.file)) as used:
        at, text = dice.choice(used.execute(f"SELECT id, entry FROM {table}").fetchall())
        if dice.random() < 0.15:
            value = dice.choice(ODD_TEXTS)
        else:
            value = json.dumps(changed(json.loads(text), dice))
        used.execute(f"UPDATE {table} SET entry = ? WHERE id = ?", (value, at))
        used.commit()
    return directory.data


def changed(value, dice):
    """Return JSON that differs in one place."""
    if not isinstance(value, (dict, list)) or not value or dice.random() < 0.15:
        return dice.choice(_ODD_VALUES)
    copy = value.copy()
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


def _cut(content, _, dice):
    return content[: dice.randint(0, len(content))]


def _flip(content, _, dice):
    data = bytearray(content)
    for _number in range(min(len(data), dice.choice((1, 1, 2, 16)))):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(data)


def _overwrite(content, _, dice):
    """As after a power cut: a block of zeros, or of something else."""
    at, length = dice.randint(0, len(content)), dice.choice((1, 8, 64, 512, 4096))
    filler = bytes(length) if dice.random() < 0.5 else dice.randbytes(length)
    return content[:at] + filler + content[at + length :]


def _remove(content, _, dice):
    at = dice.randint(0, len(content))
    return content[:at] + content[at + dice.choice((1, 1, 2, 9, 100)) :]


def _insert(content, bases, dice):
    at, other = dice.randint(0, len(content)), dice.choice(bases)
    start = dice.randint(0, len(other))
    return content[:at] + other[start : start + dice.randint(1, 300)] + content[at:]


def _splice(content, bases, dice):
    """As when two processes wrote at once."""
    other = dice.choice(bases)
    at = dice.randint(0, min(len(content), len(other)))
    return content[:at] + other[at:]


_ACCIDENTS = (_cut, _flip, _flip, _overwrite, _remove, _insert, _splice)
