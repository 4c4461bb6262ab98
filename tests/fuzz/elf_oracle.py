"""What pyelftools says of the bytes of a library, asked as the run-time linker would ask.

The frame of the questions is the linker's: the dynamic segment, its last tag of a kind, tables by
address. The section table counts for nothing, but where our reader too has only that. Parsing is
pyelftools' own throughout.
"""

from __future__ import annotations

from functools import cached_property
from io import BytesIO
from typing import Any, NamedTuple

from elftools.common.utils import parse_cstring_from_stream, struct_parse
from elftools.construct.lib.container import Container
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
from elftools.elf.hash import ELFHashTable, GNUHashTable

_MOST_SYMBOLS = 100_000
_MOST_RECORDS = 16_384
_NUMBER = 0x7FFF  # of a version; the bit above marks it as hidden
_BINDINGS = ("STB_GLOBAL", "STB_WEAK", "STB_LOOS")
# pyelftools reads three bits, as Solaris does, where the linker reads two.
_VISIBLE = ("STV_DEFAULT", "STV_PROTECTED", "STV_EXPORTED", 7)


class UnclearError(Exception):
    """The bytes allow more than one answer, or more work than the oracle does."""


class Found(NamedTuple):
    name: str
    value: int
    size: int
    is_exported: bool


class Oracle:
    """The answers, each of which may fail in pyelftools' own ways.

    Args:
        content: The whole file.
    """

    def __init__(self, content):
        self._content = content
        self.elf = ELFFile(BytesIO(_without_sections(content)))
        # From here on the bytes as they are: damaged tables may point into the header itself.
        self._stream = self.elf.stream = BytesIO(content)
        self._segments = list(self.elf.iter_segments())
        self._tags = self._all_tags()
        self._offsets = {}

    # -- the frame ------------------------------------------------------------------------------

    def machine(self):
        return struct_parse(self.elf.structs.Elf_half(""), self._stream, 18)

    def soname(self):
        return self._string(self._tags["DT_SONAME"][-1]) if "DT_SONAME" in self._tags else None

    def needed(self):
        return tuple(self._string(at) for at in self._tags.get("DT_NEEDED", ()))

    def paths(self, tag):
        """Return the parts of DT_RPATH or DT_RUNPATH, of which some may be empty."""
        text = self._string(self._tags[tag][-1]) if tag in self._tags else ""
        return tuple(text.split(":")) if text else ()

    def binds_now(self):
        """Tell whether a tag or a flag asks for all symbols at once."""
        flags, flags_1 = self._last("DT_FLAGS"), self._last("DT_FLAGS_1")
        return "DT_BIND_NOW" in self._tags or bool(flags & 8) or bool(flags_1 & 1)

    # -- symbols --------------------------------------------------------------------------------

    def exports(self):
        first = self._gnu_hash.params["symoffset"] if self._last("DT_GNU_HASH") else 1
        return {self._name(raw) for raw in self._symbols(first) if _is_exported(raw)}

    def undefined(self):
        versions = {number: version for _, version, _, number in self.version_needs()}
        return [
            (self._name(raw), raw["st_info"]["bind"] == "STB_WEAK", versions.get(self._version(at)))
            for at, raw in enumerate(self._symbols(1), 1)
            if raw["st_shndx"] == "SHN_UNDEF"
            and raw["st_info"]["bind"] in _BINDINGS
            and raw["st_name"]
        ]

    def find(self, name):
        """Return what the hash table has under a name."""
        if not self._last("DT_SYMTAB"):
            return None
        if self._last("DT_GNU_HASH"):
            return self._gnu_hash.get_symbol(name)
        if self._last("DT_HASH"):
            return self._sysv_hash.get_symbol(name)
        return None

    def get_symbol(self, index):
        """Return one symbol; pyelftools' hash tables ask for it."""
        self._patience -= 1
        if self._patience < 0:
            raise UnclearError("a chain that goes on and on")
        raw = self._symbol(index)
        return Found(self._name(raw), raw["st_value"], raw["st_size"], _is_exported(raw))

    _patience = _MOST_SYMBOLS
    _read: list[Any] | None = None

    # -- versions -------------------------------------------------------------------------------

    def version_needs(self):
        records = self._records(_VersionNeeds, "DT_VERNEED", "vn_next")
        return [
            (
                self._string(need["vn_file"]),
                aux.name,
                bool(aux["vna_flags"] & 2),
                aux["vna_other"] & _NUMBER,
            )
            for need, auxes in records
            for aux in _until_last(auxes, "vna_next", lambda aux: aux.entry)
        ]

    def version_definitions(self):
        records = self._records(_VersionDefinitions, "DT_VERDEF", "vd_next")
        return {next(iter(auxes)).name for _, auxes in records}

    def _records(self, kind, tag, next_field):
        if not self._last(tag):
            return iter(())
        head = Container(
            sh_offset=self._offset(self._last(tag)),
            sh_info=_MOST_RECORDS + 1,
            sh_size=0,
            sh_flags=0,
            sh_type="",
            sh_addralign=0,
        )
        section = kind(head, "", self.elf, _Strings(self))
        return _until_last(section.iter_versions(), next_field, lambda pair: pair[0].entry)

    # -- parts ----------------------------------------------------------------------------------

    def _all_tags(self):
        # The linker wants a segment to map, and takes an empty section for debug information.
        mapped = any(it["p_type"] == "PT_LOAD" and it["p_filesz"] for it in self._segments)
        dynamic = [it for it in self._segments if it["p_type"] == "PT_DYNAMIC" and it["p_filesz"]]
        if not dynamic or not mapped:
            return {}
        tags = {}
        for tag in dynamic[-1]._iter_tags():  # it looks at no size, but for the end mark
            if tag["d_tag"] == "DT_NULL":
                break
            tags.setdefault(tag["d_tag"], []).append(tag["d_val"])
        return tags

    def _last(self, tag):
        return self._tags.get(tag, [0])[-1]

    def _offset(self, address):
        if address not in self._offsets:
            self._offsets[address] = set(self.elf.address_offsets(address))
        offsets = self._offsets[address]
        if len(offsets) > 1:
            raise UnclearError(f"two segments hold address {address:#x}")
        if not offsets:
            raise ValueError(f"no segment holds address {address:#x}")
        return next(iter(offsets))

    def _string(self, at):
        start = self._offset(self._last("DT_STRTAB")) + at
        raw = parse_cstring_from_stream(self._stream, start)
        if raw is None:
            raise ValueError(f"the string at {at} does not end")
        return raw.decode("utf-8", "surrogateescape")

    def _name(self, raw):
        return self._string(raw["st_name"])

    def _symbol(self, index):
        size = self.elf.structs.Elf_Sym.sizeof()
        start = self._offset(self._last("DT_SYMTAB")) + index * size
        return struct_parse(self.elf.structs.Elf_Sym, self._stream, start)

    def _symbols(self, first):
        count = self._symbol_count() if self._last("DT_SYMTAB") else 0
        if count > _MOST_SYMBOLS:
            raise UnclearError(f"{count} symbols")
        if self._read is None:
            self._read = [self._symbol(index) for index in range(count)]
        return iter(self._read[first:])

    def _symbol_count(self):
        counted = 0
        if self._last("DT_GNU_HASH"):
            table = self._gnu_hash
            counted = table.get_number_of_symbols()
            if max(table.params["buckets"]) < table.params["symoffset"]:
                counted = 0
        elif self._last("DT_HASH"):
            counted = self._sysv_hash.get_number_of_symbols()
        return counted or self._count_by_section()

    def _count_by_section(self):
        if self._content == _without_sections(self._content):
            return 0
        elf = ELFFile(BytesIO(self._content))
        if not elf["e_shnum"] or elf["e_shentsize"] < elf.structs.Elf_Shdr.sizeof():
            raise UnclearError("a section table that nobody can count")
        headers = map(elf._get_section_header, range(elf["e_shnum"]))
        section = next((each for each in headers if each["sh_type"] == "SHT_DYNSYM"), None)
        if section is None or section["sh_offset"] != self._offset(self._last("DT_SYMTAB")):
            return 0
        return section["sh_size"] // elf.structs.Elf_Sym.sizeof()

    def _version(self, index):
        address = self._last("DT_VERSYM")
        if not address:
            return 0
        start = self._offset(address) + 2 * index
        return struct_parse(self.elf.structs.Elf_half(""), self._stream, start) & _NUMBER

    @cached_property
    def _gnu_hash(self):
        start = self._offset(self._last("DT_GNU_HASH"))
        return GNUHashTable(self.elf, start, self)

    @cached_property
    def _sysv_hash(self):
        start = self._offset(self._last("DT_HASH"))
        return ELFHashTable(self.elf, start, None, self)


class _LinkedRecords:
    """Records of versions up to the last link, since the linker looks at no count of them."""

    def _iter_version_auxiliaries(self, entry_offset, count):
        del count
        return super()._iter_version_auxiliaries(entry_offset, _MOST_RECORDS + 1)


class _VersionNeeds(_LinkedRecords, GNUVerNeedSection):
    pass


class _VersionDefinitions(_LinkedRecords, GNUVerDefSection):
    pass


class _Strings:
    """The string table, under the name by which pyelftools' sections ask for it."""

    def __init__(self, oracle):
        self.get_string = oracle._string


def _is_exported(raw):
    return (
        raw["st_shndx"] != "SHN_UNDEF"
        and raw["st_info"]["bind"] in _BINDINGS
        and raw["st_other"]["visibility"] in _VISIBLE
    )


def _until_last(records, next_field, entry):
    """Yield records up to the one that says that none follows, as the linker does."""
    for at, record in enumerate(records):
        if at >= _MOST_RECORDS:
            raise UnclearError("records without an end")
        yield record
        if entry(record)[next_field] == 0:
            return


def _without_sections(content):
    """Zero what the header says of the section table."""
    if len(content) < 64 or content[:4] != b"\x7fELF" or content[4] not in (1, 2):
        return content
    data = bytearray(content)
    start, size, counts = (40, 8, 60) if content[4] == 2 else (32, 4, 48)
    data[start : start + size] = bytes(size)
    data[counts : counts + 4] = bytes(4)
    return bytes(data)
