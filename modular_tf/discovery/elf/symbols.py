"""The dynamic symbols of a library: those that it defines and those that it needs."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from modular_tf.discovery.elf.dynamic import DynamicSection
    from modular_tf.discovery.elf.image import Image

SYMBOL = Struct("<IBBHQQ")  # name, info, other, section, value, size
_WORD, _HALF, _BLOOM_WORD = Struct("<I"), Struct("<H"), Struct("<Q")
_BLOOM_BITS = 64
_UNDEFINED_SECTION = 0
_WEAK = 2
_LINKABLE_BINDINGS = frozenset((1, _WEAK, 10))  # global, weak, GNU unique
_VISIBLE = frozenset((0, 3))  # default, protected
_CALLABLE_TYPES = frozenset((0, 2, 10))  # untyped, function, GNU indirect function
_MAX_SYMBOLS = 4_000_000  # TensorFlow's largest library has 521 000
_HIDDEN_VERSION = 0x8000
# Linkers aim at one to eight symbols a bucket; the bound keeps a chain without an end short.
_MAX_CHAIN = 4096
_MAX_HASH_WORDS = 16 * 1024 * 1024
_CHAIN_STEP = 16


@lru_cache(maxsize=4096)  # one name is looked up in many libraries
def gnu_hash(name: bytes) -> int:
    """Return the hash of a symbol name in 32 bits."""
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


@lru_cache(maxsize=4096)
def sysv_hash(name: bytes) -> int:
    """Return the hash of a symbol name in 28 bits."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value >> 24 & 0xF0)) & 0x0FFFFFFF
    return value


class Symbol(NamedTuple):
    """A symbol that a library defines and exports."""

    name: str
    value: int
    size: int
    is_callable: bool


class UndefinedSymbol(NamedTuple):
    """A symbol that a library needs and other libraries must define."""

    name: str  # mangled if it is C++
    weak: bool  # it may stay undefined
    version: str | None  # that is asked for, such as "GLIBC_2.34"


class GnuHashTable:
    """A hash table of exported symbols: filter, buckets, and chains of hashes."""

    def __init__(self, image: Image, address: int) -> None:
        """Read the head of the table at `address`; symbols before `first` are never found."""
        self._source = image.source
        head = image.read_at(address, 16, "the GNU hash table")
        numbers: tuple[int, int, int, int] = Struct("<4I").unpack(head)
        self._buckets, self.first, words, self._bloom_shift = numbers
        if not 0 < self._buckets <= _MAX_HASH_WORDS or not 0 < words <= _MAX_HASH_WORDS:
            raise self._source.damaged(
                f"its GNU hash table claims {self._buckets} buckets and {words} filter words"
            )
        if words & (words - 1) or self._bloom_shift >= _BLOOM_BITS:
            raise self._source.damaged("the filter of its GNU hash table is malformed")
        self._bloom_words = words
        bloom_bytes = words * _BLOOM_WORD.size
        n_bytes = 16 + bloom_bytes + 4 * self._buckets
        start = image.offset_of(address, n_bytes, "the GNU hash table")
        self._bloom_at = start + 16
        self._buckets_at = self._bloom_at + bloom_bytes
        self._chains_at = start + n_bytes
        self._chains_end = start + image.bytes_from(address, "the GNU hash table")

    def candidates(self, hash_: int) -> Iterator[int]:
        """Yield the indices of the symbols that have this hash, but for the lowest bit."""
        at = self._bloom_at + (hash_ // _BLOOM_BITS & (self._bloom_words - 1)) * _BLOOM_WORD.size
        data = self._source.read(at, _BLOOM_WORD.size, "the hash filter")
        word = _BLOOM_WORD.unpack(data)[0]
        if not word >> hash_ % _BLOOM_BITS & word >> (hash_ >> self._bloom_shift) % _BLOOM_BITS & 1:
            return
        at = self._buckets_at + 4 * (hash_ % self._buckets)
        index: int = _WORD.unpack(self._source.read(at, 4, "a bucket"))[0]
        if index >= self.first:
            for found, value in self._chain(index):
                if (value | 1) == (hash_ | 1):
                    yield found

    def symbol_count(self) -> int:
        """Return how many symbols there are, unhashed ones included; 0 if the table is empty.

        An empty table does not give the number: some linkers let it begin at symbol 1 anyway.
        """
        data = self._source.read(self._buckets_at, 4 * self._buckets, "the buckets")
        start: int = max(index for (index,) in _WORD.iter_unpack(data))
        if start < self.first:
            return 0
        return 1 + max(index for index, _ in self._chain(start))

    def _chain(self, index: int) -> Iterator[tuple[int, int]]:
        """Yield index and hash of each symbol of one chain."""
        at = self._chains_at + 4 * (index - self.first)
        last = index + _MAX_CHAIN
        while index < last:
            length = min(4 * _CHAIN_STEP, (self._chains_end - at) & ~3)
            data = self._source.read(at, max(length, 4), "a hash chain")
            for (value,) in _WORD.iter_unpack(data):
                yield index, value
                if value & 1:
                    return
                index += 1
            at += len(data)
        raise self._source.damaged(f"a hash chain has more than {_MAX_CHAIN} symbols")


class SysvHashTable:
    """A hash table of all dynamic symbols: buckets and linked chains of indices."""

    def __init__(self, image: Image, address: int) -> None:
        """Read the head of the table at `address`."""
        self._source = image.source
        start = image.offset_of(address, 2 * _WORD.size, "the hash table")
        self._at = start
        self._buckets, self._chains = self._entry(0), self._entry(1)
        if not 0 < self._buckets <= _MAX_HASH_WORDS or self._chains > _MAX_HASH_WORDS:
            raise self._source.damaged(
                f"its hash table claims {self._buckets} buckets and {self._chains} symbols"
            )
        image.offset_of(address, (2 + self._buckets + self._chains) * _WORD.size, "the hash table")

    def candidates(self, hash_: int) -> Iterator[int]:
        """Yield the indices of the symbols in the bucket of this hash."""
        index = self._entry(2 + hash_ % self._buckets)
        for _ in range(_MAX_CHAIN):
            if index == 0:
                return
            yield index
            if index >= self._chains:
                raise self._source.damaged(f"a hash chain leads to symbol {index}")
            index = self._entry(2 + self._buckets + index)
        raise self._source.damaged(f"a hash chain has more than {_MAX_CHAIN} symbols")

    def symbol_count(self) -> int:
        """Return how many symbols there are."""
        return self._chains

    def _entry(self, at: int) -> int:
        data = self._source.read(self._at + at * _WORD.size, _WORD.size, "the hash table")
        value: int = _WORD.unpack(data)[0]
        return value


class SymbolTable:
    """The dynamic symbol table of one library."""

    def __init__(self, image: Image, dynamic: DynamicSection) -> None:
        self._image = image
        self._dynamic = dynamic
        address = dynamic.symbols_address
        what = "the symbol table"
        self._room = image.bytes_from(address, what) if address else 0
        self._offset = image.offset_of(address, 0, what) if address else 0
        gnu, sysv = dynamic.gnu_hash_address, dynamic.hash_address
        self._gnu = GnuHashTable(image, gnu) if gnu and address else None
        self._sysv = SysvHashTable(image, sysv) if sysv and address and not gnu else None

    def find(self, name: str) -> Symbol | None:
        """Return the exported symbol of this name, as dlsym would; cheap in any library."""
        raw = name.encode("utf-8", "surrogateescape")
        candidates: Iterator[int] = iter(())  # without a hash table the linker finds nothing either
        if self._gnu is not None:
            candidates = self._gnu.candidates(gnu_hash(raw))
        elif self._sysv is not None:
            candidates = self._sysv.candidates(sysv_hash(raw))
        for index in candidates:
            at = self._offset + index * SYMBOL.size
            data = self._image.source.read(at, SYMBOL.size, f"symbol {index}")
            string, info, other, section, value, size = SYMBOL.unpack(data)
            if _is_exported(info, other, section) and self._dynamic.strings.equals(string, raw):
                return Symbol(name, value, size, info & 15 in _CALLABLE_TYPES)
        return None

    def exports(self) -> frozenset[str]:
        """Return the names of all symbols that the library offers; takes time for each."""
        self._dynamic.strings.load()
        text = self._dynamic.strings.text
        records = self._records(self._gnu.first if self._gnu else 1)
        return frozenset(
            text(name)
            for name, info, other, section, _, _ in records
            if _is_exported(info, other, section)
        )

    def undefined(self, versions: Mapping[int, str]) -> tuple[UndefinedSymbol, ...]:
        """Return all symbols that others have to define, in the order of the table."""
        wanted = [
            (index, name, info >> 4 == _WEAK)
            for index, (name, info, _, section, _, _) in enumerate(self._records(1), 1)
            if section == _UNDEFINED_SECTION and info >> 4 in _LINKABLE_BINDINGS and name
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
        """Return the number of symbols, the empty first one included."""
        table, count = self._gnu or self._sysv, 0
        if table is not None and self._room:
            count = table.symbol_count()
        if not count and self._room:
            section = self._image.dynamic_symbol_section()
            if section is not None and section[0] == self._offset:
                count = section[1] // SYMBOL.size
        if count > _MAX_SYMBOLS or count * SYMBOL.size > self._room:
            raise self._image.source.damaged(f"it claims {count} symbols")
        return count

    def _records(self, first: int) -> Iterator[tuple[int, ...]]:
        n_bytes = max(self.count() - first, 0) * SYMBOL.size
        at = self._offset + first * SYMBOL.size
        return SYMBOL.iter_unpack(self._image.source.read(at, n_bytes, "the symbol table"))

    def version_indices(self, count: int) -> tuple[int, ...]:
        """Return the version index of each of the first `count` symbols; 0 and 1 mean none."""
        address = self._dynamic.version_indices_address
        if not address:
            return (0,) * count
        data = self._image.read_at(address, 2 * count, "the version indices")
        return tuple(index & ~_HIDDEN_VERSION for (index,) in _HALF.iter_unpack(data))


def _is_exported(info: int, other: int, section: int) -> bool:
    is_defined = section != _UNDEFINED_SECTION
    return is_defined and info >> 4 in _LINKABLE_BINDINGS and other & 3 in _VISIBLE
