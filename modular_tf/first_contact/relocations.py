"""Whether a library's relocations stay inside it.

The dynamic linker writes to each address that they name. Outside of the library that may be memory
of another library, depending on the layout of the process: a damaged file that survives its trial
may corrupt the application unnoticed. So the bytes are checked before the library is mapped.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.discovery.elf import ElfFile
from modular_tf.errors import ElfError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Address and size of the tables that have addends: the general one, and that of the functions.
_TABLES = ((7, 8), (23, 2))
_DT_PLTREL, _DT_RELA = 20, 7
_WORDS_OF_ENTRY = 3  # offset, kind and symbol, addend


def stray_relocation(path: str) -> str | None:
    """Return a message on a relocation that lies outside of the library, None for none."""
    with suppress(ElfError), ElfFile(path) as elf:  # loading reports a file that cannot be read
        return _first_stray(elf)
    return None


def _first_stray(elf: ElfFile) -> str | None:
    start, end = elf.image.extent
    try:
        for target in (target for both in _targets(elf) for target in both):
            if not start <= target < end:
                return f"a relocation at {target:#x} lies outside of it"
    except ElfError as error:
        return error.message
    return None


def _targets(elf: ElfFile) -> Iterator[tuple[int, int]]:
    """Yield for each table the lowest and the highest address that is written to."""
    tags = {tag: value for _, tag, value in elf.dynamic.entries}  # the last counts, as in ld.so
    for address_tag, size_tag in _TABLES:
        size = tags.get(size_tag, 0) // 24 * 24
        is_of_functions = address_tag != _DT_RELA
        if not size or (is_of_functions and tags.get(_DT_PLTREL) != _DT_RELA):
            continue
        table = elf.image.read_at(tags.get(address_tag, 0), size, "the relocation table")
        targets = memoryview(table).cast("Q")[::_WORDS_OF_ENTRY]
        yield min(targets), max(targets)
