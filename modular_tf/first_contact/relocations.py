"""Whether a library's relocations stay inside it.

The dynamic linker writes to each address that they name. Outside of the library that may be memory
of another library, depending on the layout of the process: a damaged file that survives its trial
may corrupt the application unnoticed. So the bytes are checked before the library is mapped.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.discovery.elf import ElfFile
from modular_tf.errors import ElfError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROGRAM_HEADERS = struct.Struct("<Q")  # e_phoff, at 32 in the header
_PROGRAM_HEADER_COUNT = struct.Struct("<HH")  # e_phentsize and e_phnum, at 54
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_DYNAMIC_ENTRY = struct.Struct("<qQ")
_PT_LOAD, _DT_NULL = 1, 0
# Address and size of the tables that have addends: the general one, and that of the functions.
_TABLES = ((7, 8), (23, 2))
_DT_PLTREL, _DT_RELA = 20, 7
_WORDS_OF_ENTRY = 3  # offset, kind and symbol, addend


def stray_relocation(path: str) -> str | None:
    """Return a message on a relocation that lies outside of the library, None for none.

    Args:
        path: The library. For one of 32 bits or of the other byte order this returns None, since
            the probe rejects it.
    """
    with suppress(ElfError), ElfFile(path) as elf:  # loading reports a file that is no ELF file
        if (elf.image.layout.bits, elf.image.layout.order) == (64, "<"):
            return _first_stray(elf)
    return None


def _first_stray(elf: ElfFile) -> str | None:
    try:
        start, end = _extent(elf)
        for target in (target for both in _targets(elf) for target in both):
            if not start <= target < end:
                return f"a relocation at {target:#x} lies outside of it"
    except ElfError as error:
        return error.message
    return None


def _extent(elf: ElfFile) -> tuple[int, int]:
    """Return the addresses between which the library's memory lies."""
    source = elf.image.source
    (offset,) = _PROGRAM_HEADERS.unpack(source.read(32, 8, "the ELF header"))
    size, count = _PROGRAM_HEADER_COUNT.unpack(source.read(54, 4, "the ELF header"))
    data = source.read(offset, size * count, "the segment table")
    spans = [
        (fields[3], fields[3] + fields[6])
        for at in range(0, size * count, size)
        if (fields := _PROGRAM_HEADER.unpack_from(data, at))[0] == _PT_LOAD
    ]
    return min((span[0] for span in spans), default=0), max((s[1] for s in spans), default=0)


def _targets(elf: ElfFile) -> Iterator[tuple[int, int]]:
    """Yield for each table the lowest and the highest address that is written to."""
    tags = dict(_tags(elf))
    for address_tag, size_tag in _TABLES:
        size = tags.get(size_tag, 0) // 24 * 24
        is_of_functions = address_tag != _DT_RELA
        if not size or (is_of_functions and tags.get(_DT_PLTREL) != _DT_RELA):
            continue
        table = elf.image.read_at(tags.get(address_tag, 0), size, "the relocation table")
        targets = memoryview(table).cast("Q")[::_WORDS_OF_ENTRY]
        yield min(targets), max(targets)


def _tags(elf: ElfFile) -> Iterator[tuple[int, int]]:
    if elf.image.dynamic is None:
        return
    offset, size = elf.image.dynamic
    size -= size % _DYNAMIC_ENTRY.size
    data = elf.image.source.read(offset, size, "the dynamic section")
    for tag, value in _DYNAMIC_ENTRY.iter_unpack(data):
        if tag == _DT_NULL:
            return
        yield tag, value
