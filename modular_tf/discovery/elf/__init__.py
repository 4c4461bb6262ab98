"""A reader of ELF libraries that trusts none of their bytes.

Every call does a bounded amount of work and returns a result or raises an `ElfError`: counts,
chains and the total length of names are limited, and offsets are checked.
"""

from __future__ import annotations

from modular_tf.discovery.elf.file import ElfFile, VersionNeed, glibc_floor, parse_glibc
from modular_tf.discovery.elf.symbols import Symbol, UndefinedSymbol

__all__ = ["ElfFile", "Symbol", "UndefinedSymbol", "VersionNeed", "glibc_floor", "parse_glibc"]
