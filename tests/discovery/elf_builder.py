"""Writes small ELF libraries from bytes, whole or with chosen lies in them.

Address equals offset: one segment maps the whole file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from mmap import PAGESIZE

from modular_tf.discovery.elf.symbols import gnu_hash, sysv_hash

X86_64 = 62
_PT_LOAD, _PT_DYNAMIC = 1, 2
_PATH_TAGS = {"rpath": 15, "runpath": 29}
_GLOBAL_FUNCTION, _WEAK_UNTYPED = 0x12, 0x20
_HEADER = struct.Struct("<HHIQQQIHHHHHH")
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")


@dataclass
class ElfBuilder:
    """What to write; `tags` and `tables` replace what would be right.

    Attributes:
        bits: Word size by the first bytes; all records are of 64 bits.
        order: Byte order of the machine's number and by the first bytes; all records are "<".
        tags: Values for dynamic tags by number; None leaves the tag out.
        tables: Bytes for "strings", "symbols", "gnu_hash", "sysv_hash", "needs".
        filters: Dynamic tag (DT_AUXILIARY or DT_FILTER) and name of each filter.
        segments: More program headers: (type, offset, address, size).
        flags: Of all segments: 4 to read, 2 to write, 1 to execute.
    """

    bits: int = 64
    order: str = "<"
    machine: int = X86_64
    type: int = 3
    soname: str = "libmade.so"
    needed: tuple[str, ...] = ("libc.so.6",)
    paths: dict[str, str] = field(default_factory=dict)
    filters: tuple[tuple[int, str], ...] = ()
    exports: tuple[str, ...] = ("TF_InitPlugin", "another_export", "third")
    undefined: tuple[str, ...] = ("TF_SetStatus", "malloc")
    weak: tuple[str, ...] = ("maybe",)
    hash_style: str = "gnu"
    tags: dict[int, int | None] = field(default_factory=dict)
    tables: dict[str, bytes] = field(default_factory=dict)
    segments: tuple[tuple[int, int, int, int], ...] = ()
    flags: int = 5

    def build(self):
        """Return the bytes of the library."""
        self._strings = bytearray(b"\0")
        symbols, gnu, sysv = self._symbols()
        named = [(1, self._string(name)) for name in self.needed]
        named += [(tag, self._string(name)) for tag, name in self.filters]
        named.append((14, self._string(self.soname)))
        named += [(_PATH_TAGS[kind], self._string(text)) for kind, text in self.paths.items()]
        parts = {"symbols": symbols, "gnu_hash": gnu, "sysv_hash": sysv, "strings": b""}
        parts["strings"] = bytes(self._strings)
        parts |= self.tables
        return self._assemble(parts, named)

    def _assemble(self, parts, named):
        head = 16 + _HEADER.size
        count = 2 + len(self.segments)
        at = _aligned(head + count * _PROGRAM_HEADER.size)
        body, where = b"", {}
        for name, data in parts.items():
            where[name] = at + len(body)
            body += data + bytes(_aligned(len(data)) - len(data))
        dynamic_at = at + len(body)
        dynamic = self._dynamic(parts, where, named)
        size = dynamic_at + len(dynamic)
        headers = [(_PT_LOAD, 0, 0, size), (_PT_DYNAMIC, dynamic_at, dynamic_at, len(dynamic))]
        headers += self.segments
        front = self._header(count) + b"".join(self._program_header(*h) for h in headers)
        return front + bytes(at - len(front)) + body + dynamic

    def _dynamic(self, parts, where, named):
        tags = {
            5: where["strings"],
            10: len(parts["strings"]),
            6: where["symbols"],
            0x6FFFFEF5: where["gnu_hash"] if self.hash_style in {"gnu", "both"} else None,
            4: where["sysv_hash"] if self.hash_style in {"sysv", "both"} else None,
            0x6FFFFFFE: where.get("needs"),
            0x6FFFFFFF: 1 if "needs" in parts else None,
        }
        tags |= self.tags
        entries = [*named, *((tag, value) for tag, value in tags.items() if value is not None)]
        return b"".join(struct.pack("<qQ", tag, value) for tag, value in [*entries, (0, 0)])

    def _header(self, count):
        ident = b"\x7fELF" + bytes([self.bits // 32, 1 if self.order == "<" else 2, 1])
        table, entry = 16 + _HEADER.size, _PROGRAM_HEADER.size
        machine = self.machine if self.order == "<" else self.machine << 8 | self.machine >> 8
        fields = (self.type, machine & 0xFFFF, 1, 0, table, 0, 0, table, entry, count, 0, 0, 0)
        return ident.ljust(16, b"\0") + _HEADER.pack(*fields)

    def _program_header(self, type_, offset, address, size):
        alignment = PAGESIZE if type_ == _PT_LOAD else 0
        # In memory it is as long as in the file.
        return _PROGRAM_HEADER.pack(type_, self.flags, offset, address, 0, size, size, alignment)

    def _symbols(self):
        buckets = 2
        hashed = sorted(self.exports, key=lambda name: gnu_hash(name.encode()) % buckets)
        rows = [("", 0, 0), *((name, _GLOBAL_FUNCTION, 0) for name in self.undefined)]
        rows += [(name, _WEAK_UNTYPED, 0) for name in self.weak]
        first = len(rows)
        rows += [(name, _GLOBAL_FUNCTION, 1) for name in hashed]
        symbols = b"".join(self._symbol(*row) for row in rows)
        gnu = self._gnu_hash([name.encode() for name in hashed], first, buckets)
        return symbols, gnu, self._sysv_hash([row[0].encode() for row in rows])

    def _symbol(self, name, info, section):
        value = 0x40 if section else 0
        return struct.pack("<IBBHQQ", self._string(name), info, 0, section, value, 0)

    def _gnu_hash(self, names, first, buckets):
        hashes = [gnu_hash(name) for name in names]
        bloom = 0
        for value in hashes:
            bloom |= 1 << value % 64 | 1 << (value >> 5) % 64
        places = [value % buckets for value in hashes]
        heads = [first + places.index(b) if b in places else 0 for b in range(buckets)]
        last = [at + 1 == len(places) or places[at + 1] != b for at, b in enumerate(places)]
        chain = [value & ~1 | end for value, end in zip(hashes, last, strict=True)]
        words = struct.pack(f"<{buckets + len(chain)}I", *heads, *chain)
        return self.gnu_head(buckets, first) + struct.pack("<Q", bloom) + words

    def gnu_head(self, buckets, first, words=1, shift=5):
        """Return the four numbers at the front of a GNU hash table."""
        return struct.pack("<4I", buckets, first, words, shift)

    def _sysv_hash(self, names):
        heads, chain = [0] * 3, [0] * len(names)
        for index, name in enumerate(names):
            if index:
                place = sysv_hash(name) % 3
                chain[index], heads[place] = heads[place], index
        numbers = [3, len(names), *heads, *chain]
        return struct.pack(f"<{len(numbers)}I", *numbers)

    def _string(self, text):
        if not text:
            return 0
        at = len(self._strings)
        self._strings += text.encode() + b"\0"
        return at


def on_one_page(shown, other, *, n_bytes=8, page=1):
    """Return a library with two segments on one page of memory.

    The linker maps the page of the second one over that of the first, and refuses a library whose
    last segment lies on such a page.

    Args:
        shown: What is on the first page of the file.
        other: What is on the second page; of the same size.
        n_bytes: How many bytes the second segment has.
        page: The page of the file that it comes from.
    """
    last = (_PT_LOAD, 4 * PAGESIZE, 4 * PAGESIZE, 8)
    size = len(replace(shown, segments=(last, last)).build())
    both = ((_PT_LOAD, page * PAGESIZE + size, size, n_bytes), last)
    pages = [replace(each, segments=both).build() for each in (shown, other)]
    return b"".join(data.ljust(PAGESIZE, b"\0") for data in pages).ljust(5 * PAGESIZE, b"\0")


def _aligned(size):
    return (size + 7) & ~7
