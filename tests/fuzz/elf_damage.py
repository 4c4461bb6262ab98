"""Small libraries, and damage to them: mostly to the numbers that their tables are made of."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from modular_tf.discovery.linking.dynamic_linker import running_program
from tests.discovery.elf_builder import ElfBuilder

_EDGES = (0, 1, 2, 3, 4, 0x7F, 0xFF, 0xFFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)
_WIDE_EDGES = ((1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 40)
_MOST_TABLES = 0x2000  # tables of small libraries lie at their front


@cache
def bases():
    """Return whole libraries: for three machines with each kind of hash table, and real ones."""
    made = []
    for machine in (running_program().machine, 183, 243):
        for style in ("gnu", "sysv", "both"):
            builder = ElfBuilder(
                machine=machine,
                flags=6,
                hash_style=style,
                needed=("libc.so.6", "libtensorflow_framework.so.2"),
                paths={"rpath": "$ORIGIN/a:/b"} if style == "gnu" else {"runpath": "/c"},
            )
            made.append(builder.build())
    maps = Path("/proc/self/maps").read_text(errors="replace")
    folder = Path(re.search(r"(/\S+)/libc\.so\.6$", maps, re.MULTILINE)[1])
    return (*made, *(path.read_bytes() for path in sorted(folder.glob("libanl.so.*"))))


def damaged(content, dice):
    """Return the library with up to six damages, none at all in one of some twenty cases."""
    data = bytearray(content)
    for _ in range(dice.choice((0, *(1,) * 9, 2, 2, 2, 2, 3, 3, 3, 4, 5, 6))):
        dice.choices((_number, _flip, _piece, _cut), (70, 15, 10, 5))[0](data, dice)
    return bytes(data)


def _number(data, dice):
    size = dice.choice((1, 2, 4, 4, 8, 8, 8))
    count = min(len(data), _MOST_TABLES) // size
    if not count:
        return
    at, other = size * dice.randrange(count), size * dice.randrange(count)
    old = int.from_bytes(data[at : at + size], "little")
    new = dice.choice(
        (
            old + dice.choice((-1, 1, -8, 8, -4, 4, 16, -16, 0x1000)),
            dice.choice(_EDGES),
            dice.choice(_WIDE_EDGES) if size == 8 else old ^ (1 << dice.randrange(8 * size)),
            int.from_bytes(data[other : other + size], "little"),  # an address, perhaps
            len(data) - dice.choice((0, 1, 8, 16, 24)),
        )
    )
    data[at : at + size] = (new % (1 << 8 * size)).to_bytes(size, "little")


def _flip(data, dice):
    if data:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def _cut(data, dice):
    del data[dice.randrange(len(data) + 1) :]


def _piece(data, dice):
    if len(data) > 64:
        at, to = dice.randrange(len(data) - 64), dice.randrange(len(data) - 64)
        length = dice.randrange(1, 64)
        data[to : to + length] = data[at : at + length]
