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
    """The facts of one library."""

    machine: str  # that it is built for, such as "x86-64"
    bits: int  # word size; only libraries of 64 bits are read
    byte_order: str  # only those in "little" are read
    size: int  # of the file, in bytes
    soname: str | None  # the name by which others need it
    needed: tuple[str, ...]  # names of the libraries that it needs
    rpath: tuple[str, ...]  # directories of DT_RPATH, unexpanded
    runpath: tuple[str, ...]  # directories of DT_RUNPATH, unexpanded
    init_symbols: tuple[str, ...]  # that it exports
    undefined: tuple[UndefinedSymbol, ...]  # symbols that others have to define
    version_needs: tuple[VersionNeed, ...]
    glibc_floor: str | None  # the oldest glibc that it runs with, such as "GLIBC_2.34"
    binds_now: bool  # it asks for all symbols on loading
    runs_code_on_load: bool  # dlopen already runs code of it


def read_facts(elf: ElfFile, init_symbols: Iterable[str]) -> ElfFacts:
    """Return the facts about an open library; raises `ElfError` if its tables are damaged."""
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
