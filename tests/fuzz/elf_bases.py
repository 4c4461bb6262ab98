"""The libraries that fuzzing damages: small ones, real and made from bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from pathlib import Path

from elftools.elf.elffile import ELFFile

from modular_tf.discovery.linking.dynamic_linker import running_program
from tests.discovery.elf_builder import ElfBuilder

_SMALL = 80_000
_SYSTEM_LIBRARIES = (
    "libdl.so.2",
    "libutil.so.1",
    "libanl.so.1",
    "librt.so.1",
    "libBrokenLocale.so.1",
)


@dataclass(frozen=True)
class Base:
    """A whole library, and where its records lie.

    Attributes:
        content: Its bytes.
        order: "<" or ">".
        fields: Offset and size of each number that its headers and tables are made of.
        addresses: Numbers that occur in it as addresses and sizes.
    """

    content: bytes
    order: str
    fields: tuple[tuple[int, int], ...]
    addresses: tuple[int, ...] = field(repr=False)


@cache
def bases():
    """Return all of them; the same on each call, the real ones as this machine makes them."""
    return tuple(_mapped(content) for content in (*_made(), *_of_the_system()))


def _made():
    for machine in (running_program().machine, 183, 243):
        for style in ("gnu", "sysv", "both"):
            yield ElfBuilder(
                machine=machine,
                flags=6,
                hash_style=style,
                needed=("libc.so.6", "libtensorflow_framework.so.2"),
                paths={"rpath": "$ORIGIN/a:/b"} if style == "gnu" else {"runpath": "/c"},
            ).build()


def _of_the_system():
    maps = Path("/proc/self/maps").read_text(errors="replace")
    found = re.search(r"(/\S+)/libc\.so\.6$", maps, re.MULTILINE)
    folder = Path(found[1]) if found else Path("/lib")
    for name in _SYSTEM_LIBRARIES:
        path = folder / name
        if path.is_file() and path.stat().st_size <= _SMALL:
            yield path.read_bytes()


def _mapped(content):
    elf = ELFFile(BytesIO(content))
    fields = list(_fields(elf, content))
    order = "<" if elf.little_endian else ">"
    numbers = {
        int.from_bytes(content[a : a + s], "little" if order == "<" else "big") for a, s in fields
    }
    return Base(content, order, tuple(fields), tuple(sorted(numbers)))


def _fields(elf, content):
    word = elf.elfclass // 8
    yield from ((4, 1), (5, 1), (16, 2), (18, 2), (24 + word, word), (24 + 2 * word, word))
    sizes_and_counts = 24 + 3 * word + 4
    yield from ((sizes_and_counts + 2 * at, 2) for at in range(6))
    for index in range(elf["e_phnum"]):
        start = elf["e_phoff"] + index * elf["e_phentsize"]
        yield from ((start, 4), (start + 4, 4))
        yield from ((start + at, word) for at in range(8, elf["e_phentsize"], word))
    yield from _fields_of_tables(elf, content, word)


def _fields_of_tables(elf, content, word):
    dynamic = next(elf.iter_segments("PT_DYNAMIC"))
    tags = list(dynamic._iter_tags())
    yield from ((dynamic["p_offset"] + word * at, word) for at in range(2 * len(tags)))
    starts = {tag["d_tag"]: next(elf.address_offsets(tag["d_ptr"]), None) for tag in tags}
    for name, length, step in (
        ("DT_SYMTAB", 24 * 24, 4),
        ("DT_GNU_HASH", 160, 4),
        ("DT_HASH", 160, 4),
        ("DT_VERNEED", 128, 2),
        ("DT_VERDEF", 128, 2),
        ("DT_VERSYM", 64, 2),
        ("DT_STRTAB", 96, 1),
    ):
        start = starts.get(name)
        if start is not None:
            yield from (
                (at, step) for at in range(start, min(start + length, len(content) - step), step)
            )
