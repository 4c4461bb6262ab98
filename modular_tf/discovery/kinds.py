"""The kinds of plugins, told by the init symbols that a library exports."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from modular_tf.discovery.elf import SymbolName

if TYPE_CHECKING:
    from modular_tf.discovery.elf import ElfFile, Symbol

__all__ = ["SERVED_KINDS", "Kind", "init_symbols_of", "kinds_of"]


class Kind(Enum):
    """What a plugin brings."""

    FILESYSTEM = "filesystem"
    DEVICE = "device"
    KERNEL = "kernel"
    GRAPH = "graph"
    PROFILER = "profiler"
    NEXT_DEVICE = "next_device"

    def __str__(self) -> str:
        return self.value


SERVED_KINDS = frozenset((Kind.FILESYSTEM, Kind.DEVICE))
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
