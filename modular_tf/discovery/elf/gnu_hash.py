"""Look-up in a GNU hash table (DT_GNU_HASH): a few reads, however large the library is."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.discovery.elf.image import Image

__all__ = ["GnuHashTable", "gnu_hash"]

# Linkers aim at one to eight symbols a bucket; the bound keeps a chain without an end short.
_MAX_CHAIN = 4096
_MAX_WORDS = 16 * 1024 * 1024
_CHAIN_STEP = 16


def gnu_hash(name: bytes) -> int:
    """Return the hash of a symbol name in 32 bits."""
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


class GnuHashTable:
    """A hash table of exported symbols: filter, buckets, and chains of hashes."""

    __slots__ = (
        "_bloom_at",
        "_bloom_shift",
        "_bloom_words",
        "_buckets",
        "_buckets_at",
        "_chains_at",
        "_chains_end",
        "_first",
        "_layout",
        "_source",
    )

    def __init__(self, image: Image, address: int) -> None:
        """Read the head of the table at `address`.

        Raises:
            ElfError: Its numbers cannot be right.
        """
        self._source = image.source
        self._layout = layout = image.layout
        head = image.read_at(address, 16, "the GNU hash table")
        numbers: tuple[int, int, int, int] = Struct(layout.order + "4I").unpack(head)
        self._buckets, self._first, self._bloom_words, self._bloom_shift = numbers
        self._check_head()
        bloom_bytes = self._bloom_words * layout.bloom_word.size
        n_bytes = 16 + bloom_bytes + 4 * self._buckets
        start = image.offset_of(address, n_bytes, "the GNU hash table")
        self._bloom_at = start + 16
        self._buckets_at = self._bloom_at + bloom_bytes
        self._chains_at = start + n_bytes
        self._chains_end = start + image.room_at(address, "the GNU hash table")

    def candidates(self, hash_: int) -> Iterator[int]:
        """Yield the indices of the symbols that have this hash, but for the lowest bit.

        Raises:
            ElfError: A chain leaves the file or does not end.
        """
        if not self._may_hold(hash_):
            return
        at = self._buckets_at + 4 * (hash_ % self._buckets)
        index = self._word(at, "a bucket")
        if index >= self._first:
            for found, value in self._chain(index):
                if (value | 1) == (hash_ | 1):
                    yield found

    def symbol_count(self) -> int:
        """Return how many symbols there are, unhashed ones included; 0 if the table is empty.

        An empty table does not tell: some linkers let it begin at symbol 1 all the same.
        """
        data = self._source.read(self._buckets_at, 4 * self._buckets, "the buckets")
        start: int = max(index for (index,) in self._layout.word.iter_unpack(data))
        if start < self._first:
            return 0
        return 1 + max(index for index, _ in self._chain(start))

    @property
    def first(self) -> int:
        """Index of the first symbol in the table; those before it are never found."""
        return self._first

    def _check_head(self) -> None:
        words = self._bloom_words
        if not 0 < self._buckets <= _MAX_WORDS or not 0 < words <= _MAX_WORDS:
            raise self._source.damaged(
                f"its GNU hash table claims {self._buckets} buckets and {words} filter words"
            )
        if words & (words - 1) or self._bloom_shift >= self._layout.bits:
            raise self._source.damaged("the filter of its GNU hash table is malformed")

    def _may_hold(self, hash_: int) -> bool:
        record, bits = self._layout.bloom_word, self._layout.bits
        at = self._bloom_at + (hash_ // bits & (self._bloom_words - 1)) * record.size
        word = record.unpack(self._source.read(at, record.size, "the hash filter"))[0]
        return bool(word >> hash_ % bits & word >> (hash_ >> self._bloom_shift) % bits & 1)

    def _word(self, at: int, what: str) -> int:
        value: int = self._layout.word.unpack(self._source.read(at, 4, what))[0]
        return value

    def _chain(self, index: int) -> Iterator[tuple[int, int]]:
        """Yield index and hash of each symbol of one chain."""
        at = self._chains_at + 4 * (index - self._first)
        last = index + _MAX_CHAIN
        while index < last:
            length = min(4 * _CHAIN_STEP, (self._chains_end - at) & ~3)
            data = self._source.read(at, max(length, 4), "a hash chain")
            for (value,) in self._layout.word.iter_unpack(data):
                yield index, value
                if value & 1:
                    return
                index += 1
            at += len(data)
        raise self._source.damaged(f"a hash chain has more than {_MAX_CHAIN} symbols")
