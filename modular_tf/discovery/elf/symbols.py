"""The dynamic symbols of a library: those that it defines and those that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf.gnu_hash import GnuHashTable, gnu_hash
from modular_tf.discovery.elf.sysv_hash import SysvHashTable, sysv_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from modular_tf.discovery.elf.dynamic import DynamicSection
    from modular_tf.discovery.elf.image import Image

__all__ = ["Symbol", "SymbolName", "SymbolTable", "UndefinedSymbol"]

_UNDEFINED_SECTION = 0
_WEAK = 2
_LINKABLE_BINDINGS = frozenset((1, _WEAK, 10))  # global, weak, GNU unique
_VISIBLE = frozenset((0, 3))  # default, protected
_CALLABLE_TYPES = frozenset((0, 2, 10))  # untyped, function, GNU indirect function
_MAX_SYMBOLS = 4_000_000  # TensorFlow's largest library has 521 000
_HIDDEN_VERSION = 0x8000


class SymbolName:
    """A symbol's name with both of its hashes, for look-ups in many libraries."""

    __slots__ = ("_sysv", "gnu", "raw", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw = text.encode("utf-8", "surrogateescape")
        self.gnu = gnu_hash(self.raw)
        self._sysv: int | None = None

    @property
    def sysv(self) -> int:
        """The SysV hash; rarely needed, so computed on demand."""
        if self._sysv is None:
            self._sysv = sysv_hash(self.raw)
        return self._sysv


class Symbol(NamedTuple):
    """A symbol that a library defines and exports."""

    name: str
    value: int
    size: int
    is_callable: bool


class UndefinedSymbol(NamedTuple):
    """A symbol that a library needs and other libraries must define.

    Attributes:
        name: The name, mangled if it is C++.
        weak: Whether it may stay undefined.
        version: The symbol version asked for, such as "GLIBC_2.34".
    """

    name: str
    weak: bool
    version: str | None


class SymbolTable:
    """The dynamic symbol table of one library."""

    __slots__ = ("_dynamic", "_gnu", "_image", "_offset", "_room", "_sysv")

    def __init__(self, image: Image, dynamic: DynamicSection) -> None:
        self._image = image
        self._dynamic = dynamic
        address = dynamic.symbols_address
        what = "the symbol table"
        self._room = image.room_at(address, what) if address else 0
        self._offset = image.offset_of(address, 0, what) if address else 0
        gnu, sysv = dynamic.gnu_hash_address, dynamic.hash_address
        self._gnu = GnuHashTable(image, gnu) if gnu and address else None
        self._sysv = SysvHashTable(image, sysv) if sysv and address and not gnu else None

    def find(self, name: SymbolName) -> Symbol | None:
        """Return the exported symbol of this name, as dlsym would; cheap in any library.

        Raises:
            ElfError: The tables are damaged.
        """
        for index in self._candidates(name):
            symbol = self._exported_if_named(index, name)
            if symbol is not None:
                return symbol
        return None

    def exports(self) -> frozenset[str]:
        """Return the names of all symbols that the library offers; costs time in their number.

        Raises:
            ElfError: The tables are damaged.
        """
        self._dynamic.strings.load()
        name_at, info_at, other_at, section_at, _, _ = self._image.layout.symbol_fields
        text = self._dynamic.strings.text
        return frozenset(
            text(fields[name_at])
            for fields in self._records(self._gnu.first if self._gnu else 1)
            if fields[section_at] != _UNDEFINED_SECTION
            and fields[info_at] >> 4 in _LINKABLE_BINDINGS
            and fields[other_at] & 3 in _VISIBLE
        )

    def undefined(self, versions: Mapping[int, str]) -> tuple[UndefinedSymbol, ...]:
        """Return all symbols that others have to define, in the order of the table.

        Args:
            versions: Names of the needed versions by their index.

        Raises:
            ElfError: The tables are damaged.
        """
        name_at, info_at, _, section_at, _, _ = self._image.layout.symbol_fields
        wanted = [
            (index, fields[name_at], fields[info_at] >> 4 == _WEAK)
            for index, fields in enumerate(self._records(1), 1)
            if fields[section_at] == _UNDEFINED_SECTION
            and fields[info_at] >> 4 in _LINKABLE_BINDINGS
            and fields[name_at]
        ]
        if len(wanted) > 64:  # noqa: PLR2004  (one large read beats many small ones from here on)
            self._dynamic.strings.load()
        text = self._dynamic.strings.text
        version_of = self.version_indices(wanted[-1][0] + 1 if wanted else 0)
        return tuple(
            UndefinedSymbol(text(at), weak, versions.get(version_of[index]))
            for index, at, weak in wanted
        )

    def count(self) -> int:
        """Return the number of symbols, the empty first one included.

        Raises:
            ElfError: There are absurdly many, or more than the file holds.
        """
        count = self._claimed_count()
        if count > _MAX_SYMBOLS or count * self._image.layout.symbol.size > self._room:
            raise self._image.source.damaged(f"it claims {count} symbols")
        return count

    def _claimed_count(self) -> int:
        if not self._room:
            return 0
        table = self._gnu or self._sysv
        counted = table.symbol_count() if table is not None else 0
        if counted:
            return counted
        section = self._image.dynamic_symbol_section()
        if section is None or section[0] != self._offset:
            return 0
        return section[1] // self._image.layout.symbol.size

    def _candidates(self, name: SymbolName) -> Iterator[int]:
        if self._gnu is not None:
            return self._gnu.candidates(name.gnu)
        if self._sysv is not None:
            return self._sysv.candidates(name.sysv)
        return iter(())  # without a hash table the run-time linker finds nothing either

    def _exported_if_named(self, index: int, name: SymbolName) -> Symbol | None:
        record = self._image.layout.symbol
        at = self._offset + index * record.size
        fields = record.unpack(self._image.source.read(at, record.size, f"symbol {index}"))
        string, info, other, section, value, size = (
            fields[at] for at in self._image.layout.symbol_fields
        )
        if (
            section == _UNDEFINED_SECTION
            or info >> 4 not in _LINKABLE_BINDINGS
            or other & 3 not in _VISIBLE
            or not self._dynamic.strings.equals(string, name.raw)
        ):
            return None
        return Symbol(name.text, value, size, info & 15 in _CALLABLE_TYPES)

    def _records(self, first: int) -> Iterator[tuple[int, ...]]:
        record = self._image.layout.symbol
        n_bytes = max(self.count() - first, 0) * record.size
        at = self._offset + first * record.size
        return record.iter_unpack(self._image.source.read(at, n_bytes, "the symbol table"))

    def version_indices(self, count: int) -> tuple[int, ...]:
        """Return the version index of each of the first `count` symbols; 0 and 1 mean none.

        Raises:
            ElfError: The table is damaged.
        """
        address = self._dynamic.version_indices_address
        if not address:
            return (0,) * count
        data = self._image.read_at(address, 2 * count, "the version indices")
        return tuple(
            index & ~_HIDDEN_VERSION for (index,) in self._image.layout.half.iter_unpack(data)
        )
