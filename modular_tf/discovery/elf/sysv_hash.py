"""Look-up in a SysV hash table (DT_HASH), for libraries that have no GNU one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.discovery.elf.machine import EM_ALPHA, EM_S390

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.discovery.elf.image import Image

__all__ = ["SysvHashTable", "sysv_hash"]

_MAX_CHAIN = 4096
_MAX_WORDS = 16 * 1024 * 1024


def sysv_hash(name: bytes) -> int:
    """Return the hash of a symbol name in 28 bits."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value >> 24 & 0xF0)) & 0x0FFFFFFF
    return value


class SysvHashTable:
    """A hash table of all dynamic symbols: buckets and linked chains of indices."""

    __slots__ = ("_at", "_buckets", "_chains", "_source", "_word")

    def __init__(self, image: Image, address: int) -> None:
        """Read the head of the table at `address`.

        Raises:
            ElfError: Its numbers cannot be right.
        """
        self._source = image.source
        layout = image.layout
        # Two 64-bit ABIs have eight-byte entries here, against the specification.
        odd = image.machine_number in (EM_ALPHA, EM_S390)
        self._word = layout.bloom_word if odd else layout.word
        size = self._word.size
        start = image.offset_of(address, 2 * size, "the hash table")
        self._at = start
        self._buckets, self._chains = self._entry(0), self._entry(1)
        if not 0 < self._buckets <= _MAX_WORDS or self._chains > _MAX_WORDS:
            raise self._source.damaged(
                f"its hash table claims {self._buckets} buckets and {self._chains} symbols"
            )
        image.offset_of(address, (2 + self._buckets + self._chains) * size, "the hash table")

    def candidates(self, hash_: int) -> Iterator[int]:
        """Yield the indices of the symbols in the bucket of this hash.

        Raises:
            ElfError: A chain leaves the table or runs in a circle.
        """
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
        size = self._word.size
        data = self._source.read(self._at + at * size, size, "the hash table")
        value: int = self._word.unpack(data)[0]
        return value
