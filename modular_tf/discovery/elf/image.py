"""The header and the segments of a 64-bit little-endian ELF file; others are refused by name."""

from __future__ import annotations

import os
from bisect import bisect_right
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.file_identity import ELF_MAGIC
from modular_tf.rules import loading as rules

if TYPE_CHECKING:
    from modular_tf.discovery.elf.source import ByteSource

OWN_MACHINE = {"x86_64": 62, "aarch64": 183}.get(os.uname().machine, 0)
"""The number of the machine that this process runs on; 0 for one that is not supported."""

_MACHINES = {
    2: "sparc",
    3: "i386",
    4: "m68k",
    8: "mips",
    15: "parisc",
    20: "ppc",
    21: "ppc64",
    22: "s390x",
    40: "arm",
    42: "sh",
    43: "sparc64",
    50: "ia64",
    62: "x86-64",
    183: "aarch64",
    190: "cuda",
    224: "amdgpu",
    243: "riscv",
    247: "bpf",
    258: "loongarch",
    0x9026: "alpha",
}

_MAGICS = (
    (b"\xfe\xed\xfa\xce", "a Mach-O library for macOS"),
    (b"\xfe\xed\xfa\xcf", "a Mach-O library for macOS"),
    (b"\xce\xfa\xed\xfe", "a Mach-O library for macOS"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O library for macOS"),
    (b"\xca\xfe\xba\xbe", "a universal Mach-O library for macOS"),
    (b"\xca\xfe\xba\xbf", "a universal Mach-O library for macOS"),
    (b"MZ", "a PE library for Windows"),
    (b"!<arch>\n", "a static library (ar archive)"),
    (b"\0asm", "a WebAssembly module"),
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"version https://git-lfs", "a Git LFS pointer; the library itself was not fetched"),
    (b"#!", "a script"),
    (b"/* GNU ld script", "a linker script"),
    (b"INPUT(", "a linker script"),
    (b"INPUT (", "a linker script"),
    (b"GROUP (", "a linker script"),
)


def machine_name(number: int, bits: int, order: str) -> str:
    """Return the usual name of an `e_machine` value, such as "x86-64" or "ppc64le"."""
    name = _MACHINES.get(number, f"machine {number}")
    if name == "ppc64" and order == "<":
        return "ppc64le"
    if name == "aarch64" and order == ">":
        return "aarch64_be"
    if name == "mips":
        return f"mips{'64' if bits > 32 else ''}{'el' if order == '<' else ''}"  # noqa: PLR2004
    if name in {"riscv", "loongarch"}:
        return f"{name}{bits}"
    return name


def content_description(head: bytes) -> str:
    """Return a description of a file that begins with `head` and is not ELF."""
    if not head:
        return "empty"
    for magic, words in _MAGICS:
        if head.startswith(magic):
            return words
    if b"\0" not in head[:512] and _reads_as_text(head[:512]):
        return "text"
    if not head[:512].strip(b"\0"):
        return "filled with zero bytes, as an unfinished copy or download is"
    return "something else"


def _reads_as_text(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        # The end of the sample may cut a character in two.
        return error.start >= len(head) - 3
    return True


ET_DYN = 3
PT_LOAD = 1
PT_DYNAMIC = 2
PT_INTERP = 3
PT_GNU_STACK = 0x6474E551
_PF_X = 1
_STACKS_ARE_DATA_BY_DEFAULT = frozenset({183, 243, 258})  # AArch64, RISC-V, LoongArch
_SHT_DYNSYM = 11
_IDENT_BYTES = 16
_BYTES_TO_MACHINE = 20  # e_ident, e_type and e_machine
HEADER = Struct("<HHIQQQIHHHHHH")  # what follows e_ident
PROGRAM_HEADER = Struct("<IIQQQQQQ")
_SECTION = Struct("<IIQQQQIIQQ")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")  # of the linker of this process
# A library has about ten segments and fifty sections; each look-up takes time for all of them.
_MAX_SEGMENTS = 1024
_MAX_SECTIONS = 65_280


class _MappedSegment(NamedTuple):
    """A segment that the linker maps."""

    start: int  # its address
    end: int  # of its memory
    offset: int  # in the file
    size: int  # how many bytes of the file it has; the rest of its memory is zero

    @property
    def shift(self) -> int:
        """The distance between a byte in memory and in the file; equal ones map the same bytes."""
        return self.start - self.offset


class Image:
    """The header and segments of an open ELF file, which map its bytes to addresses."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self._identify()
        fields = HEADER.unpack(source.read(_IDENT_BYTES, HEADER.size, "the ELF header"))
        self.type, self.machine_number = fields[0], fields[1]  # 3 for a shared object; e_machine
        self.machine = machine_name(self.machine_number, 64, "<")
        self._sections = (fields[5], fields[10], fields[11])
        self._read_segments(offset=fields[4], entry_size=fields[8], count=fields[9])

    def offset_of(self, address: int, n_bytes: int, what: str) -> int:
        """Return the offset in the file of the memory `address` .. `address + n_bytes`."""
        start, end, offset = self._segment_of(address, what)
        if address + n_bytes > end:
            raise self.source.damaged(f"{what} leaves its segment at address {end:#x}")
        return offset + address - start

    def bytes_from(self, address: int, what: str) -> int:
        """Return how many bytes the segment holds from `address` on."""
        return self._segment_of(address, what)[1] - address

    def read_at(self, address: int, n_bytes: int, what: str) -> bytes:
        """Return `n_bytes` from memory `address`."""
        return self.source.read(self.offset_of(address, n_bytes, what), n_bytes, what)

    def interpreter(self) -> str | None:
        """Return the path of the dynamic linker that a program names; libraries name none."""
        if self._interpreter is None:
            return None
        path = self.source.read(*self._interpreter, "the path of the dynamic linker")
        return os.fsdecode(path.rstrip(b"\0"))

    def dynamic_symbol_section(self) -> tuple[int, int] | None:
        """Return offset and size of `.dynsym` by the section table, which may be stripped."""
        offset, entry_size, count = self._sections
        if not offset or entry_size < _SECTION.size or count > _MAX_SECTIONS:
            return None
        data = self.source.read(offset, entry_size * count, "the section table")
        for at in range(0, entry_size * count, entry_size):
            fields = _SECTION.unpack_from(data, at)
            if fields[1] == _SHT_DYNSYM:
                return fields[4], fields[5]
        return None

    def has_whole_section_table(self) -> bool:
        """Return whether the section table is present and not empty, if the header names one.

        It comes last in a file: where room was made for a file that is still being written, it
        is a hole.
        """
        offset, entry_size, count = self._sections
        if not offset or not count:
            return True
        return any(self.source.read(offset, entry_size * count, "the section table"))

    def _identify(self) -> None:
        source = self.source
        ident = source.read_up_to(0, 512, "the identification")
        if ident[: len(ELF_MAGIC)] != ELF_MAGIC:
            found = content_description(ident)
            raise source.error(rules.IS_ELF, f"is not an ELF file: it is {found}")
        if len(ident) < _BYTES_TO_MACHINE:
            raise source.damaged(f"it has only {len(ident)} bytes")
        class_, order = ident[4], ident[5]
        if class_ not in (1, 2) or order not in (1, 2):
            raise source.damaged(f"class {class_} or byte order {order} is unknown")
        if (class_, order) != (2, 1):
            number = int.from_bytes(ident[18:20], "little" if order == 1 else "big")
            built = f"is built for {machine_name(number, 32 * class_, '<>'[order - 1])}"
            if number != OWN_MACHINE:
                own = machine_name(OWN_MACHINE, 64, "<")
                raise source.error(rules.MACHINE, f"{built}, this process runs on {own}")
            if class_ == 1:
                raise source.error(rules.WORD_SIZE, f"{built} with 32 bits, this process has 64")
            raise source.error(
                rules.BYTE_ORDER, f"{built}, big endian, this process is little endian"
            )

    def _read_segments(self, *, offset: int, entry_size: int, count: int) -> None:
        # for each segment with bytes its address, the end of its bytes, its file offset
        self.loads: list[tuple[int, int, int]] = []
        self.extent = (0, 0)  # the addresses at which the memory of all segments begins and ends
        # File offset of the dynamic section, and the bytes from there to the end of its segment:
        # the linker reads no size of it.
        self.dynamic: tuple[int, int] | None = None
        self._interpreter: tuple[int, int] | None = None
        self._starts: list[int] = []
        # the linker lets code be run from the stacks of a process that loads it
        self.wants_executable_stack = self.machine_number not in _STACKS_ARE_DATA_BY_DEFAULT
        if not count:
            return
        if entry_size < PROGRAM_HEADER.size or count > _MAX_SEGMENTS:
            raise self.source.damaged(f"it has {count} segments described in {entry_size} bytes")
        data = self.source.read(offset, entry_size * count, "the segment table")
        mapped: list[_MappedSegment] = []
        dynamic: list[tuple[int, int]] = []
        for at in range(0, entry_size * count, entry_size):
            fields = PROGRAM_HEADER.unpack_from(data, at)
            type_, flags, start, address, _, size, n_bytes, _ = fields
            if type_ == PT_GNU_STACK:
                self.wants_executable_stack = bool(flags & _PF_X)
            elif type_ == PT_INTERP:
                self._interpreter = (start, size)
            elif type_ == PT_DYNAMIC and size:  # an empty one: debug information
                dynamic.append((address, start))
            elif type_ == PT_LOAD:
                mapped.append(_MappedSegment(address, address + n_bytes, start, size))
        self._take_mapped(mapped)
        if len(dynamic) > 1 and self.loads:
            raise self.source.damaged(f"it has {len(dynamic)} dynamic sections")
        for address, start in dynamic if self.loads else ():
            # The linker finds the section by its address; its offset must agree.
            in_file = self.offset_of(address, 0, "the dynamic section")
            if in_file != start:
                raise self.source.damaged(
                    f"the dynamic section lies at byte {start}, and in memory comes from byte"
                    f" {in_file}"
                )
            self.dynamic = start, self.bytes_from(address, "the dynamic section")

    def _take_mapped(self, segments: list[_MappedSegment]) -> None:
        """Check that each address is mapped from one place of the file, as the linker maps it."""
        for segment in segments:
            if segment.offset + segment.size > self.source.size and segment.size:
                raise self.source.damaged(
                    f"a segment ends at byte {segment.offset + segment.size},"
                    f" the file has {self.source.size}"
                )
            if segment.start + segment.size > segment.end or segment.end > 1 << 64:
                raise self.source.damaged(
                    f"the segment at address {segment.start:#x} has {segment.size} bytes in the"
                    f" file, and in memory ends at address {segment.end:#x}"
                )
            if segment.shift % _PAGE_BYTES:
                raise self.source.damaged(
                    f"the segment at address {segment.start:#x} does not begin at the same place of"
                    f" a page, at byte {segment.offset} of the file; strip after patchelf does that"
                )
        for one, other in pairwise(segments):
            if other.start < one.end:
                raise self.source.damaged(
                    f"the segment at address {other.start:#x} follows one that ends at"
                    f" {one.end:#x}: they overlap, or are not in the order of their addresses"
                )
            shares_page = other.start - other.start % _PAGE_BYTES < one.end
            if shares_page and other.shift != one.shift:
                raise self.source.damaged(
                    "two segments have different bytes of the file on one page of memory, at"
                    f" address {other.start:#x}"
                )
        if segments:
            self.extent = segments[0].start, segments[-1].end
        self.loads = [(it.start, it.start + it.size, it.offset) for it in segments if it.size]
        self._starts = [start for start, _, _ in self.loads]

    def _segment_of(self, address: int, what: str) -> tuple[int, int, int]:
        at = bisect_right(self._starts, address) - 1
        if at >= 0 and address < self.loads[at][1]:
            return self.loads[at]
        raise self.source.damaged(f"{what} lies at address {address:#x}, outside all segments")
