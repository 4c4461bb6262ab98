"""A reader of ELF libraries that trusts none of their bytes.

Every question ends in bounded work and either an answer or an `ElfError`: counts are capped,
offsets checked, chains cut, and names paid for from a budget.
"""

from __future__ import annotations

from modular_tf.discovery.elf.file import ElfFile
from modular_tf.discovery.elf.symbols import Symbol, SymbolName, UndefinedSymbol
from modular_tf.discovery.elf.versions import VersionNeed, glibc_floor, parse_glibc

__all__ = [
    "ElfFile",
    "Symbol",
    "SymbolName",
    "UndefinedSymbol",
    "VersionNeed",
    "glibc_floor",
    "parse_glibc",
]
