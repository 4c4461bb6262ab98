"""The facts about a library that are kept after its file is closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.discovery.elf import ElfFile, UndefinedSymbol, VersionNeed, glibc_floor

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ElfFacts", "read_facts"]


@dataclass(frozen=True, slots=True)
class ElfFacts:
    """The facts of one library.

    Attributes:
        machine: Name of the machine it is built for, such as "x86-64".
        bits: Word size; only libraries of 64 bits are read.
        byte_order: Only those in "little" are read.
        size: Length of the file in bytes.
        soname: The name by which others need it.
        needed: Names of the libraries that it needs.
        rpath: Directories of DT_RPATH, unexpanded.
        runpath: Directories of DT_RUNPATH, unexpanded.
        init_symbols: The init symbols that it exports.
        undefined: The symbols that others have to define.
        version_needs: The symbol versions that it needs.
        glibc_floor: The oldest glibc that it runs with, such as "GLIBC_2.34".
        binds_now: Whether it asks for all symbols on loading.
        runs_code_on_load: Whether dlopen already runs code of it.
    """

    machine: str
    bits: int
    byte_order: str
    size: int
    soname: str | None
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]
    init_symbols: tuple[str, ...]
    undefined: tuple[UndefinedSymbol, ...]
    version_needs: tuple[VersionNeed, ...]
    glibc_floor: str | None
    binds_now: bool
    runs_code_on_load: bool


def read_facts(elf: ElfFile, init_symbols: Iterable[str]) -> ElfFacts:
    """Return the facts about an open library.

    Raises:
        ElfError: Its tables are damaged.
    """
    dynamic, needs = elf.dynamic, elf.version_needs()
    return ElfFacts(
        machine=elf.image.machine,
        bits=64,
        byte_order="little",
        size=elf.size,
        soname=dynamic.soname,
        needed=dynamic.needed,
        rpath=dynamic.rpath,
        runpath=dynamic.runpath,
        init_symbols=tuple(init_symbols),
        undefined=elf.undefined(),
        version_needs=needs,
        glibc_floor=glibc_floor(needs),
        binds_now=dynamic.binds_now,
        runs_code_on_load=dynamic.runs_code_on_load,
    )
