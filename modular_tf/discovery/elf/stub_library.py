"""A library without code that exists to need others, and to name functions that lie elsewhere.

The dynamic linker looks a plugin's symbols up in the *root* of a `dlopen` and in what that needs.
So a stub that needs first the host runtime and then the plugin binds the plugin to the runtime,
although the plugin's file, which stays as it is, does not name it, and nothing becomes global.
"""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING

from modular_tf.discovery.elf import dynamic, image
from modular_tf.discovery.elf.symbols import SYMBOL, sysv_hash

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_IDENTIFICATION = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
_HEADER_BYTES = len(_IDENTIFICATION) + image.HEADER.size
_GLOBAL_FUNCTION = 1 << 4 | 2
_ABSOLUTE = 0xFFF1  # the value is an address as it is; so since glibc 2.28
_READ_WRITE = 6  # the dynamic linker relocates pointers of the dynamic section in place
_PAGE = 0x10000  # the largest page size of the machines we run on


def stub_library(
    soname: str, needed: Sequence[str], machine: int, functions: Mapping[str, int] | None = None
) -> bytes:
    """Return the bytes of a 64-bit little-endian shared object.

    No other library in the process may have its `soname`. It needs `needed`, names or absolute
    paths, in that order. `machine` is the ELF number of the processor. `functions` are the names
    that it defines, each with the address of a function in this process.
    """
    functions = functions or {}
    strings = bytearray(b"\0")

    def string(name: str) -> int:
        nonlocal strings
        at = len(strings)
        strings += name.encode("utf-8", "surrogateescape") + b"\0"
        return at

    entries = [(dynamic.DT_NEEDED, string(name)) for name in needed]
    entries.append((dynamic.DT_SONAME, string(soname)))
    symbols = bytes(SYMBOL.size) + b"".join(
        SYMBOL.pack(string(name), _GLOBAL_FUNCTION, 0, _ABSOLUTE, address, 0)
        for name, address in functions.items()
    )
    names = _hash_table(list(functions))
    dynamic_at = _HEADER_BYTES + 3 * image.PROGRAM_HEADER.size
    n_bytes = dynamic.ENTRY.size * (len(entries) + 6)
    symbols_at = dynamic_at + n_bytes
    names_at = symbols_at + len(symbols)
    strings_at = names_at + len(names)
    entries += [
        (dynamic.DT_HASH, names_at),
        (dynamic.DT_STRTAB, strings_at),
        (dynamic.DT_SYMTAB, symbols_at),
        (dynamic.DT_STRSZ, len(strings)),
        (dynamic.DT_SYMENT, SYMBOL.size),
        (dynamic.DT_NULL, 0),
    ]
    header = image.HEADER.pack(
        *(image.ET_DYN, machine, 1, 0, _HEADER_BYTES, 0, 0),
        *(_HEADER_BYTES, image.PROGRAM_HEADER.size, 3, 64, 0, 0),
    )
    segments = (
        (image.PT_LOAD, 0, strings_at + len(strings), _PAGE),
        (image.PT_DYNAMIC, dynamic_at, n_bytes, 8),
        (image.PT_GNU_STACK, 0, 0, 16),
    )
    head = _IDENTIFICATION + header
    for kind, at, size, alignment in segments:
        head += image.PROGRAM_HEADER.pack(kind, _READ_WRITE, at, at, at, size, size, alignment)
    section = b"".join(dynamic.ENTRY.pack(*entry) for entry in entries)
    return head + section + symbols + names + bytes(strings)


def _hash_table(names: Sequence[str]) -> bytes:
    """Return the table by which the dynamic linker finds symbols; the first has number 1."""
    n_buckets = max(1, len(names))
    buckets, chains = [0] * n_buckets, [0] * (len(names) + 1)
    for number, name in enumerate(names, 1):
        bucket = sysv_hash(name.encode("utf-8", "surrogateescape")) % n_buckets
        chains[number], buckets[bucket] = buckets[bucket], number
    words = (n_buckets, len(chains), *buckets, *chains)
    return pack(f"<{len(words)}I", *words)
