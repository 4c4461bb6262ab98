"""The record formats of the four variants of ELF (32 or 64 bits, little or big endian)."""

from __future__ import annotations

from functools import cache
from struct import Struct
from typing import NamedTuple

__all__ = ["Layout", "layout_for"]


class Layout(NamedTuple):
    """The record formats of one variant.

    Attributes:
        bits: 32 or 64.
        order: "<" for little endian, ">" for big endian.
        header: The file header after its 16 identification bytes.
        program_header: One segment; `program_fields` gives the positions of type, offset,
            address, size in the file, size in memory and flags.
        dynamic: Tag and value.
        symbol: One symbol; `symbol_fields` gives the positions of name, info, other, section,
            value and size.
        section: One section header.
        bloom_word: One word of the filter of a GNU hash table.
        word: Four bytes.
        half: Two bytes.
    """

    bits: int
    order: str
    header: Struct
    program_header: Struct
    program_fields: tuple[int, int, int, int, int, int]
    dynamic: Struct
    symbol: Struct
    symbol_fields: tuple[int, int, int, int, int, int]
    section: Struct
    bloom_word: Struct
    word: Struct
    half: Struct


@cache
def layout_for(bits: int, order: str) -> Layout:
    """Return the layout for 32 or 64 `bits` and byte `order` "<" or ">"."""
    wide = bits == 64  # noqa: PLR2004  (the number is the word size itself)
    return Layout(
        bits=bits,
        order=order,
        header=Struct(order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH")),
        program_header=Struct(order + ("IIQQQQQQ" if wide else "IIIIIIII")),
        program_fields=(0, 2, 3, 5, 6, 1) if wide else (0, 1, 2, 4, 5, 6),
        dynamic=Struct(order + ("qQ" if wide else "iI")),
        symbol=Struct(order + ("IBBHQQ" if wide else "IIIBBH")),
        symbol_fields=(0, 1, 2, 3, 4, 5) if wide else (0, 3, 4, 5, 1, 2),
        section=Struct(order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII")),
        bloom_word=Struct(order + ("Q" if wide else "I")),
        word=Struct(order + "I"),
        half=Struct(order + "H"),
    )
