"""The dynamic section of a library, which the dynamic linker reads."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.discovery.elf.image import Image


ENTRY = Struct("<qQ")
"""One entry of the section: tag and value."""

DT_NULL, DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT = 0, 1, 4, 5, 6, 10, 11
_INIT, DT_SONAME, DT_RPATH, _BIND_NOW, _INIT_ARRAY = 12, 14, 15, 24, 25
DT_RUNPATH, _FLAGS, _PREINIT_ARRAY = 29, 30, 32
_GNU_HASH, DT_VERSYM, _FLAGS_1 = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFB
_VERDEF, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFE, 0x6FFFFFFF
_AUXILIARY, _FILTER = 0x7FFFFFFD, 0x7FFFFFFF
_LINKING = (DT_NEEDED, _AUXILIARY, _FILTER)
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
    """The tags of a library's dynamic section, read once; an absent table has address 0."""

    def __init__(self, image: Image) -> None:
        """Read the section; a file without one has no tags at all."""
        # offset in the file, tag and value of each, up to DT_NULL, which ends them
        self.entries = tuple(_entries(image))
        self._linking = [(tag, value) for _, tag, value in self.entries if tag in _LINKING]
        self._tags: dict[int, list[int]] = {}
        for _, tag, value in self.entries:
            self._tags.setdefault(tag, []).append(value)
        self.strings = StringTable(image, self._one(DT_STRTAB), self._one(DT_STRSZ))
        self.hash_address = self._one(DT_HASH)
        self.gnu_hash_address = self._one(_GNU_HASH)
        self.symbols_address = self._one(DT_SYMTAB)
        self.version_indices_address = self._one(DT_VERSYM)
        self.version_needs_address = self._one(DT_VERNEED)
        self.version_definitions_address = self._one(_VERDEF)

    @property
    def soname(self) -> str | None:
        """The name by which other libraries need this one."""
        return self.strings.text(self._tags[DT_SONAME][-1]) if DT_SONAME in self._tags else None

    @property
    def needed(self) -> tuple[str, ...]:
        """The names of the libraries that this one needs, in order."""
        return tuple(self.strings.text(at) for at in self._tags.get(DT_NEEDED, ()))

    @property
    def linked(self) -> tuple[LinkedName, ...]:
        """The libraries that the linker maps with this one, in order: needed ones and filters."""
        return tuple(
            LinkedName(self.strings.text(at), tag != DT_NEEDED, tag == _AUXILIARY)
            for tag, at in self._linking
        )

    @property
    def rpath(self) -> tuple[str, ...]:
        """Directories of DT_RPATH, unexpanded; an empty one is the current directory."""
        return self._paths(DT_RPATH)

    @property
    def runpath(self) -> tuple[str, ...]:
        """Directories of DT_RUNPATH, unexpanded; an empty one is the current directory."""
        return self._paths(DT_RUNPATH)

    @property
    def search_path(self) -> tuple[str, ...]:
        """Directories of DT_RPATH and of DT_RUNPATH."""
        return (*self.rpath, *self.runpath)

    @property
    def link_settings(self) -> tuple[object, ...]:
        """All in the section that decides which libraries the linker maps with this one."""
        # DT_RPATH is ignored beside a DT_RUNPATH, even an empty one.
        paths = self.rpath, self.runpath, DT_RUNPATH in self._tags
        return self.soname, self.linked, paths, self._one(_FLAGS_1) & _DF_1_NODEFLIB

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
            if tag == DT_NULL:
                return
            yield offset + at * ENTRY.size, tag, value
        offset += len(data)
    if room > _MAX_BYTES:
        raise image.source.damaged(f"the dynamic section has more than {_MAX_BYTES} bytes")
    raise image.source.damaged("the dynamic section does not end in its segment")
