"""A library without code that exists to need others, and to name functions that lie elsewhere.

The dynamic linker looks a plugin's symbols up in the *root* of a `dlopen` and in what that needs.
So a stub that needs first the host runtime and then the plugin binds the plugin to the runtime,
although the plugin's file, which stays as it is, does not name it, and nothing becomes global.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from modular_tf.discovery.elf.symbols import sysv_hash

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HEADER = "<16sHHIQQQIHHHHHH"
_SEGMENT = "<IIQQQQQQ"
_PT_LOAD, _PT_DYNAMIC, _PT_GNU_STACK = 1, 2, 0x6474E551
_DT_NULL, _DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_SONAME = (
    0, 1, 4, 5, 6, 10, 11, 14,
)  # fmt: skip
_SYMBOL = "<IBBHQQ"
_SYMBOL_SIZE = struct.calcsize(_SYMBOL)
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
    strings = _Strings()
    entries = [(_DT_NEEDED, strings.add(name)) for name in needed]
    entries.append((_DT_SONAME, strings.add(soname)))
    symbols = bytes(_SYMBOL_SIZE) + b"".join(
        struct.pack(_SYMBOL, strings.add(name), _GLOBAL_FUNCTION, 0, _ABSOLUTE, address, 0)
        for name, address in functions.items()
    )
    names = _hash_table(list(functions))
    dynamic_at = struct.calcsize(_HEADER) + 3 * struct.calcsize(_SEGMENT)
    n_bytes = 16 * (len(entries) + 6)
    symbols_at = dynamic_at + n_bytes
    names_at = symbols_at + len(symbols)
    strings_at = names_at + len(names)
    size = strings_at + len(strings.bytes)
    entries += [
        (_DT_HASH, names_at),
        (_DT_STRTAB, strings_at),
        (_DT_SYMTAB, symbols_at),
        (_DT_STRSZ, len(strings.bytes)),
        (_DT_SYMENT, _SYMBOL_SIZE),
        (_DT_NULL, 0),
    ]
    return b"".join(
        (
            _header(machine),
            _segment(_PT_LOAD, 0, size, _PAGE),
            _segment(_PT_DYNAMIC, dynamic_at, n_bytes, 8),
            _segment(_PT_GNU_STACK, 0, 0, 16),
            b"".join(struct.pack("<qQ", *entry) for entry in entries),
            symbols,
            names,
            bytes(strings.bytes),
        )
    )


class _Strings:
    """The string table as it grows."""

    def __init__(self) -> None:
        self.bytes = bytearray(b"\0")

    def add(self, name: str) -> int:
        """Return where a name is."""
        position = len(self.bytes)
        self.bytes += _raw(name) + b"\0"
        return position


def _hash_table(names: Sequence[str]) -> bytes:
    """Return the table by which the dynamic linker finds symbols; the first has number 1."""
    n_buckets = max(1, len(names))
    buckets, chains = [0] * n_buckets, [0] * (len(names) + 1)
    for number, name in enumerate(names, 1):
        bucket = sysv_hash(_raw(name)) % n_buckets
        chains[number], buckets[bucket] = buckets[bucket], number
    words = (n_buckets, len(chains), *buckets, *chains)
    return struct.pack(f"<{len(words)}I", *words)


def _raw(name: str) -> bytes:
    """Return the bytes of a name that was read from a library, whatever they are."""
    return name.encode("utf-8", "surrogateescape")


def _header(machine: int) -> bytes:
    identification = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header_size, segment_size = struct.calcsize(_HEADER), struct.calcsize(_SEGMENT)
    return struct.pack(
        _HEADER, identification, 3, machine, 1, 0, header_size, 0, 0, header_size, segment_size, 3,
        64, 0, 0,
    )  # fmt: skip


def _segment(kind: int, offset: int, size: int, alignment: int) -> bytes:
    return struct.pack(_SEGMENT, kind, _READ_WRITE, offset, offset, offset, size, size, alignment)
