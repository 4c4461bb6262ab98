"""The dynamic section of a library, which the dynamic linker reads."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.discovery.elf.image import Image


ENTRY = Struct("<qQ")
"""One entry of the section: tag and value."""

_NULL, _NEEDED, _HASH, _STRTAB, _SYMTAB, _STRSZ = 0, 1, 4, 5, 6, 10
_INIT, _SONAME, _RPATH, _BIND_NOW, _INIT_ARRAY = 12, 14, 15, 24, 25
_RUNPATH, _FLAGS, _PREINIT_ARRAY = 29, 30, 32
_GNU_HASH, _VERSYM, _FLAGS_1 = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFB
_VERDEF, _VERNEED = 0x6FFFFFFC, 0x6FFFFFFE
_AUXILIARY, _FILTER = 0x7FFFFFFD, 0x7FFFFFFF
_LINKING = (_NEEDED, _AUXILIARY, _FILTER)
_DF_BIND_NOW = 0x8
_DF_1_NOW, _DF_1_NOOPEN, _DF_1_NODEFLIB, _DF_1_PIE = 0x1, 0x40, 0x800, 0x08000000
# A library has about 30 entries of 16 bytes; each library that it needs adds one.
_MAX_BYTES, _STEP = 1024 * 1024, 4096
# Mangled names of C++ templates reach some ten thousand bytes.
_MAX_STRING = 64 * 1024
# Many symbols may point into one long string: without a budget a file of a few megabytes could
# ask for terabytes of names. TensorFlow's own 520 000 exports need about 60 MB.
_MAX_TOTAL = 256 * 1024 * 1024


class StringTable:
    """NUL-terminated strings by offset."""

    __slots__ = ("_budget", "_image", "_offset", "_size", "_whole")

    def __init__(self, image: Image, address: int, size: int) -> None:
        self._image = image
        self._size = size
        self._offset = image.offset_of(address, size, "the string table") if size else 0
        self._whole: bytes | None = None
        self._budget = _MAX_TOTAL

    def text(self, at: int) -> str:
        """Return the string at offset `at`; bytes that are not UTF-8 become surrogates."""
        return self._raw(at).decode("utf-8", "surrogateescape")

    def equals(self, at: int, name: bytes) -> bool:
        """Return whether the string at offset `at` is `name`."""
        length = len(name) + 1
        if at + length > self._size:
            return self._raw(at) == name
        data = self._image.source.read(self._offset + at, length, "a string")
        return data[-1] == 0 and data[:-1] == name

    def load(self) -> None:
        """Read the whole table at once; faster where many strings follow."""
        if self._whole is None:
            self._whole = self._image.source.read(self._offset, self._size, "the string table")

    def mentions(self, name: bytes) -> bool:
        """Return whether a string is `name` or ends with it: linkers let strings share tails."""
        self.load()
        return self._whole is not None and name + b"\0" in self._whole

    def _raw(self, at: int) -> bytes:
        if self._whole is not None:
            end = self._whole.find(b"\0", at, at + _MAX_STRING)
            found = self._whole[at:end] if end >= 0 else None
        else:
            found = self._read_one(at)
        if found is None:
            raise self._image.source.damaged(f"the string at {at} does not end")
        self._budget -= len(found) + 1
        if self._budget < 0:
            raise self._image.source.damaged("its strings are longer than any real library's")
        return found

    def _read_one(self, at: int) -> bytes | None:
        """Read on in growing steps, since nearly all strings are short."""
        step = 128
        while True:
            length = min(step, self._size - at)
            data = self._image.source.read(self._offset + at, max(length, 0), "a string")
            end = data.find(b"\0")
            if end >= 0:
                return data[:end]
            if length < step or step > _MAX_STRING:
                return None
            step *= 8


class LinkedName(NamedTuple):
    """The name of a library that the linker maps with another one."""

    name: str  # unexpanded
    is_filter: bool  # its symbols come before those of the library that names it
    is_optional: bool  # the linker goes on without it (DT_AUXILIARY)


class DynamicSection:
    """The tags of a library's dynamic section, read once.

    An address is 0 where the section names no such table; `hash_address` is that of the SysV table.
    """

    __slots__ = (
        "_linking",
        "_tags",
        "entries",
        "gnu_hash_address",
        "hash_address",
        "strings",
        "symbols_address",
        "version_definitions_address",
        "version_indices_address",
        "version_needs_address",
    )

    def __init__(self, image: Image) -> None:
        """Read the section; a file without one has no tags at all."""
        # offset in the file, tag and value of each, up to DT_NULL, which ends them
        self.entries = tuple(_entries(image))
        self._linking = [(tag, value) for _, tag, value in self.entries if tag in _LINKING]
        self._tags: dict[int, list[int]] = {}
        for _, tag, value in self.entries:
            self._tags.setdefault(tag, []).append(value)
        self.strings = StringTable(image, self._one(_STRTAB), self._one(_STRSZ))
        self.hash_address = self._one(_HASH)
        self.gnu_hash_address = self._one(_GNU_HASH)
        self.symbols_address = self._one(_SYMTAB)
        self.version_indices_address = self._one(_VERSYM)
        self.version_needs_address = self._one(_VERNEED)
        self.version_definitions_address = self._one(_VERDEF)

    @property
    def soname(self) -> str | None:
        """The name by which other libraries need this one."""
        return self.strings.text(self._tags[_SONAME][-1]) if _SONAME in self._tags else None

    @property
    def needed(self) -> tuple[str, ...]:
        """The names of the libraries that this one needs, in order."""
        return tuple(self.strings.text(at) for at in self._tags.get(_NEEDED, ()))

    @property
    def linked(self) -> tuple[LinkedName, ...]:
        """The libraries that the linker maps with this one, in order: needed ones and filters."""
        return tuple(
            LinkedName(self.strings.text(at), tag != _NEEDED, tag == _AUXILIARY)
            for tag, at in self._linking
        )

    @property
    def rpath(self) -> tuple[str, ...]:
        """Directories of DT_RPATH, unexpanded; an empty one is the current directory."""
        return self._paths(_RPATH)

    @property
    def runpath(self) -> tuple[str, ...]:
        """Directories of DT_RUNPATH, unexpanded; an empty one is the current directory."""
        return self._paths(_RUNPATH)

    @property
    def search_path(self) -> tuple[str, ...]:
        """Directories of DT_RPATH and of DT_RUNPATH."""
        return (*self.rpath, *self.runpath)

    @property
    def has_runpath(self) -> bool:
        """Whether there is a DT_RUNPATH, even an empty one: DT_RPATH is ignored then."""
        return _RUNPATH in self._tags

    @property
    def binds_now(self) -> bool:
        """Whether all symbols are bound on loading even if the host asks for lazy binding."""
        return (
            _BIND_NOW in self._tags
            or bool(self._one(_FLAGS) & _DF_BIND_NOW)
            or bool(self._one(_FLAGS_1) & _DF_1_NOW)
        )

    @property
    def runs_code_on_load(self) -> bool:
        """Whether dlopen runs code of the library before anything of it is called."""
        return any(tag in self._tags for tag in (_INIT, _INIT_ARRAY, _PREINIT_ARRAY))

    @property
    def refuses_dlopen(self) -> bool:
        """Whether it was linked with `-z nodlopen`."""
        return bool(self._one(_FLAGS_1) & _DF_1_NOOPEN)

    @property
    def searches_system(self) -> bool:
        """Whether default directories are searched for needed libraries (no `-z nodefaultlib`)."""
        return not self._one(_FLAGS_1) & _DF_1_NODEFLIB

    @property
    def is_program(self) -> bool:
        """Whether it is a position-independent program, which dlopen refuses."""
        return bool(self._one(_FLAGS_1) & _DF_1_PIE)

    def _one(self, tag: int) -> int:
        """Return the value of `tag`, 0 without it; the last one counts, as in ld.so."""
        values = self._tags.get(tag)
        return values[-1] if values else 0

    def _paths(self, tag: int) -> tuple[str, ...]:
        text = self.strings.text(self._one(tag)) if tag in self._tags else ""
        return tuple(text.split(":")) if text else ()


def _entries(image: Image) -> Iterator[tuple[int, int, int]]:
    """Yield the entries that the linker reads: all before DT_NULL, whatever size is given."""
    if image.dynamic is None:
        return
    offset, room = image.dynamic
    end = offset + min(room - room % ENTRY.size, _MAX_BYTES)
    while offset < end:
        data = image.source.read(offset, min(_STEP, end - offset), "the dynamic section")
        for at, (tag, value) in enumerate(ENTRY.iter_unpack(data)):
            if tag == _NULL:
                return
            yield offset + at * ENTRY.size, tag, value
        offset += len(data)
    if room > _MAX_BYTES:
        raise image.source.damaged(f"the dynamic section has more than {_MAX_BYTES} bytes")
    raise image.source.damaged("the dynamic section does not end in its segment")


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
