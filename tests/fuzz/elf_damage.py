"""Damage to libraries: mostly to the numbers that their tables are made of, some to any byte."""

from __future__ import annotations

_EDGES = (0, 1, 2, 3, 4, 0x7F, 0xFF, 0xFFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)
_WIDE_EDGES = ((1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 40)


def damaged(base, dice):
    """Return the library with up to six damages, none at all in one of some twenty cases."""
    data = bytearray(base.content)
    for _ in range(dice.choice((0, *(1,) * 9, 2, 2, 2, 2, 3, 3, 3, 4, 5, 6))):
        dice.choices(_DAMAGES, _WEIGHTS)[0](data, base, dice)
    return bytes(data)


def _number(data, base, dice):
    at, size = dice.choice(base.fields)
    if at + size > len(data):
        return
    order = "little" if base.order == "<" else "big"
    old = int.from_bytes(data[at : at + size], order)
    new = dice.choice(
        (
            old + dice.choice((-1, 1, -8, 8, -4, 4, 16, -16, 0x1000)),
            dice.choice(_EDGES),
            dice.choice(_WIDE_EDGES) if size == 8 else old ^ (1 << dice.randrange(8 * size)),
            dice.choice(base.addresses),
            len(data) - dice.choice((0, 1, 8, 16, 24)),
        )
    )
    data[at : at + size] = (new % (1 << 8 * size)).to_bytes(size, order)


def _flip(data, _base, dice):
    if data:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def _cut(data, _base, dice):
    del data[dice.randrange(len(data) + 1) :]


def _piece(data, _base, dice):
    if len(data) > 64:
        at, to = dice.randrange(len(data) - 64), dice.randrange(len(data) - 64)
        length = dice.randrange(1, 64)
        data[to : to + length] = data[at : at + length]


_DAMAGES = (_number, _flip, _piece, _cut)
_WEIGHTS = (70, 15, 10, 5)
