"""Symbol versions: what a library needs of others, and what it defines."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.discovery.elf.dynamic import DynamicSection
    from modular_tf.discovery.elf.image import Image

__all__ = [
    "VersionNeed",
    "VersionRecord",
    "glibc_floor",
    "parse_glibc",
    "version_definitions",
    "version_needs",
    "version_records",
]

_WEAK = 2
_HIDDEN = 0x8000  # a mark on the number, no part of it
# A library needs some ten versions; glibc itself defines about fifty.
_MAX_RECORDS = 16_384


class VersionNeed(NamedTuple):
    """One version that a library needs."""

    library: str  # SONAME of the library that must define it
    version: str  # such as "GLIBC_2.34"
    weak: bool  # the library may go without
    number: int  # by which symbols refer to it


class VersionRecord(NamedTuple):
    """What a library needs of one other library."""

    address: int  # its last four bytes are the distance to the next record, 0 in the last one
    library: str  # SONAME of the other library
    needs: tuple[VersionNeed, ...]


def version_needs(image: Image, dynamic: DynamicSection) -> tuple[VersionNeed, ...]:
    """Return the versions that a library needs, in the order of its table."""
    return tuple(need for record in version_records(image, dynamic) for need in record.needs)


def version_records(image: Image, dynamic: DynamicSection) -> tuple[VersionRecord, ...]:
    """Return the records of the libraries of which a library needs versions, in their order."""
    address = dynamic.version_needs_address
    if not address:
        return ()
    records = []
    n_needs = 0
    for at, (_, _, file, aux, _) in _linked(image, address, Struct("<HHIII")):
        library = dynamic.strings.text(file)
        needs = []
        for _, need in _linked(image, at + aux, Struct("<IHHII")):
            _, flags, number, name, _ = need
            version = dynamic.strings.text(name)
            needs.append(VersionNeed(library, version, bool(flags & _WEAK), number & ~_HIDDEN))
            n_needs += 1
            if n_needs > _MAX_RECORDS:
                raise image.source.damaged(f"it needs more than {_MAX_RECORDS} symbol versions")
        records.append(VersionRecord(at, library, tuple(needs)))
    return tuple(records)


def version_definitions(image: Image, dynamic: DynamicSection) -> frozenset[str]:
    """Return the names of the versions that a library defines; empty if it is unversioned."""
    address = dynamic.version_definitions_address
    if not address:
        return frozenset()
    names = set()
    for at, fields in _linked(image, address, Struct("<HHHHIII")):
        # The first of the linked names is the version's own, the rest are its parents.
        data = image.read_at(at + fields[5], 8, "a version definition")
        names.add(dynamic.strings.text(Struct("<II").unpack(data)[0]))
    return frozenset(names)


def parse_glibc(version: str) -> tuple[int, ...] | None:
    """Return the numbers of "GLIBC_2.34"; None for any other version name."""
    prefix, _, numbers = version.partition("_")
    parts = numbers.split(".")
    if prefix != "GLIBC" or not all(p.isascii() and p.isdigit() and len(p) < 6 for p in parts):  # noqa: PLR2004
        return None
    return tuple(int(part) for part in parts)


def glibc_floor(needs: tuple[VersionNeed, ...]) -> str | None:
    """Return the newest glibc version among `needs` that is not weak, such as "GLIBC_2.34"."""
    known = [(parse_glibc(need.version), need.version) for need in needs if not need.weak]
    found = [(numbers, name) for numbers, name in known if numbers is not None]
    return max(found)[1] if found else None


def _linked(image: Image, address: int, record: Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield address and fields of records that each end in the distance to the next.

    The dynamic linker reads no count of them, so none is trusted here.
    """
    for _ in range(_MAX_RECORDS):
        fields = record.unpack(image.read_at(address, record.size, "a symbol version"))
        yield address, fields
        if fields[-1] == 0:
            return
        address += fields[-1]
    raise image.source.damaged(f"it has more than {_MAX_RECORDS} records of symbol versions")
