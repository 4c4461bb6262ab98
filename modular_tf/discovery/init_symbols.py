"""The init symbols of plugins, which tell the kinds of a plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.discovery.elf import SymbolName
from modular_tf.discovery.kinds import Kind

if TYPE_CHECKING:
    from modular_tf.discovery.elf import ElfFile, Symbol

__all__ = ["init_symbols_of", "kinds_of"]

_INIT_SYMBOLS = tuple(
    (SymbolName(name), kind)
    for name, kind in (
        ("TF_InitPlugin", Kind.FILESYSTEM),
        ("SE_InitPlugin", Kind.DEVICE),
        ("TF_InitKernel", Kind.KERNEL),
        ("TF_InitGraph", Kind.GRAPH),
        ("TF_InitProfiler", Kind.PROFILER),
        ("TFNPD_InitPlugin", Kind.NEXT_DEVICE),
        ("GetPjrtApi", Kind.NEXT_DEVICE),
    )
)


def init_symbols_of(elf: ElfFile) -> dict[str, tuple[Kind, Symbol]]:
    """Return the init symbols that a library exports, with their kinds.

    Raises:
        ElfError: Its tables are damaged.
    """
    found = ((name, kind, elf.find(name)) for name, kind in _INIT_SYMBOLS)
    return {name.text: (kind, symbol) for name, kind, symbol in found if symbol is not None}


def kinds_of(elf: ElfFile) -> frozenset[Kind]:
    """Return the kinds of plugin that a library is; empty if it is none.

    Raises:
        ElfError: Its tables are damaged.
    """
    return frozenset(kind for kind, _ in init_symbols_of(elf).values())
