"""The init symbols of plugins, which show the kinds of a plugin."""

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
# That of the first draft of kernels. Any library may use that name, so it must register some.
_EARLY_KERNEL_INIT = SymbolName("InitPlugin")
_REGISTERS_KERNELS = "TF_RegisterKernelBuilder"


def init_symbols_of(elf: ElfFile) -> dict[str, tuple[Kind, Symbol]]:
    """Return the exported init symbols with their kinds; raises `ElfError` for damaged tables."""
    names = ((name, kind, elf.find(name)) for name, kind in _INIT_SYMBOLS)
    found = {name.text: (kind, symbol) for name, kind, symbol in names if symbol is not None}
    if not any(kind is Kind.KERNEL for kind, _ in found.values()):
        early = elf.find(_EARLY_KERNEL_INIT)
        if early is not None and any(it.name == _REGISTERS_KERNELS for it in elf.undefined()):
            found[_EARLY_KERNEL_INIT.text] = Kind.KERNEL, early
    return found


def kinds_of(elf: ElfFile) -> frozenset[Kind]:
    """Return the kinds of plugin that a library is, none if it is no plugin.

    Raises `ElfError` if its tables are damaged.
    """
    return frozenset(kind for kind, _ in init_symbols_of(elf).values())
