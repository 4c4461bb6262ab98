"""A library without code that exists to need others.

The dynamic linker looks a plugin's symbols up in what the *root* of a `dlopen` needs. So a stub
that needs first the host runtime and then the plugin binds the plugin to the runtime, although
the plugin's file, which stays as it is, does not name it, and nothing becomes global.
"""

from __future__ import annotations

import struct

_HEADER = "<16sHHIQQQIHHHHHH"
_SEGMENT = "<IIQQQQQQ"
_PT_LOAD, _PT_DYNAMIC, _PT_GNU_STACK = 1, 2, 0x6474E551
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_SONAME = (
    0, 1, 5, 6, 10, 11, 14,
)  # fmt: skip
_SYMBOL_SIZE = 24
_READ_WRITE = 6  # the dynamic linker relocates pointers of the dynamic section in place
_PAGE = 0x10000  # the largest page size of the machines we run on


def stub_library(soname: str, needed: list[str], machine: int) -> bytes:
    """Return the bytes of a 64-bit little-endian shared object.

    Args:
        soname: Its own name, which no other library in the process may have.
        needed: Names or absolute paths of what it needs, in order.
        machine: The ELF number of the processor.
    """
    strings = bytearray(b"\0")
    offsets = []
    for name in (*needed, soname):
        offsets.append(len(strings))
        strings += name.encode("utf-8", "surrogateescape") + b"\0"
    n_entries = len(needed) + 6
    dynamic_at = struct.calcsize(_HEADER) + 3 * struct.calcsize(_SEGMENT)
    symbols_at = dynamic_at + 16 * n_entries
    strings_at = symbols_at + _SYMBOL_SIZE
    size = strings_at + len(strings)
    entries = [(_DT_NEEDED, offset) for offset in offsets[:-1]]
    entries += [
        (_DT_SONAME, offsets[-1]),
        (_DT_STRTAB, strings_at),
        (_DT_SYMTAB, symbols_at),
        (_DT_STRSZ, len(strings)),
        (_DT_SYMENT, _SYMBOL_SIZE),
        (_DT_NULL, 0),
    ]
    return b"".join(
        (
            _header(machine),
            _segment(_PT_LOAD, 0, size, _PAGE),
            _segment(_PT_DYNAMIC, dynamic_at, 16 * n_entries, 8),
            _segment(_PT_GNU_STACK, 0, 0, 16),
            b"".join(struct.pack("<qQ", *entry) for entry in entries),
            bytes(_SYMBOL_SIZE),
            bytes(strings),
        )
    )


def _header(machine: int) -> bytes:
    identification = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header_size, segment_size = struct.calcsize(_HEADER), struct.calcsize(_SEGMENT)
    return struct.pack(
        _HEADER, identification, 3, machine, 1, 0, header_size, 0, 0, header_size, segment_size, 3,
        64, 0, 0,
    )  # fmt: skip


def _segment(kind: int, offset: int, size: int, alignment: int) -> bytes:
    return struct.pack(_SEGMENT, kind, _READ_WRITE, offset, offset, offset, size, size, alignment)
