"""Lies in every table of a library end in an `ElfError`, in bounded time and memory."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.errors import ElfError, PluginError
from tests.discovery.elf_builder import ElfBuilder
from tests.fixtures.broken_libraries import BROKEN_LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.broken_libraries import LibraryBreaker


def ask_everything(path: Path | str) -> None:
    """Ask all questions that the reader answers."""
    with ElfFile(str(path)) as elf:
        dynamic = elf.dynamic
        names = (dynamic.soname or "", *dynamic.needed, *dynamic.rpath, *dynamic.runpath)
        assert all(isinstance(name, str) for name in names)
        elf.find("TF_InitPlugin")
        elf.find("absent")
        elf.version_needs()
        elf.version_definitions()
        elf.undefined()
        elf.exports()
        elf.require_shared_object()


def ask_about(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "libhostile.so"
    path.write_bytes(content)
    ask_everything(path)


def words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)


def _endless_gnu_chain() -> ElfBuilder:
    head = ElfBuilder().gnu_head(1, 4)
    return ElfBuilder(tables={"gnu_hash": head + b"\xff" * 8 + words(4) + words(4) * 20_000})


def _gnu_head(buckets: int, first: int, n_words: int = 1, shift: int = 5) -> ElfBuilder:
    head = ElfBuilder().gnu_head(buckets, first, n_words, shift)
    return ElfBuilder(tables={"gnu_hash": head + b"\xff" * 64})


def _sysv(*numbers: int) -> ElfBuilder:
    return ElfBuilder(hash_style="sysv", tables={"sysv_hash": words(*numbers)})


def _needs(data: bytes) -> ElfBuilder:
    return ElfBuilder(tables={"needs": data}, tags={0x6FFFFFFF: 0xFFFFFFFF})


class _WithoutEnd(ElfBuilder):
    """The last entry of the dynamic section, and the last bytes of the segment, is not DT_NULL."""

    def build(self) -> bytes:
        return super().build()[:-16] + struct.pack("<QQ", 30, 0)


_FAR = 1 << 62
_LIES: dict[str, Callable[[], ElfBuilder]] = {
    "gnu hash: chain without end": _endless_gnu_chain,
    "gnu hash: no buckets": lambda: _gnu_head(0, 1),
    "gnu hash: four thousand million buckets": lambda: _gnu_head(0xFFFFFFFF, 1),
    "gnu hash: filter of no words": lambda: _gnu_head(1, 1, n_words=0),
    "gnu hash: filter of three words": lambda: _gnu_head(1, 1, n_words=3),
    "gnu hash: filter larger than the file": lambda: _gnu_head(1, 1, n_words=1 << 31),
    "gnu hash: filter shifted out": lambda: _gnu_head(1, 1, shift=64),
    "gnu hash: outside": lambda: ElfBuilder(tags={0x6FFFFEF5: _FAR}),
    "gnu hash: bucket leads out": lambda: ElfBuilder(
        tables={
            "gnu_hash": ElfBuilder().gnu_head(1, 1) + b"\xff" * 8 + words(0xFFFFFFF0),
        }
    ),
    "sysv hash: circle": lambda: _sysv(1, 8, 3, 0, 2, 1, 3, 0, 0, 0, 0),
    "sysv hash: leads out": lambda: _sysv(1, 8, 9999),
    "sysv hash: no buckets": lambda: _sysv(0, 8),
    "sysv hash: endless": lambda: _sysv(1, 0xFFFFFFFF, 1),
    "symbols: outside": lambda: ElfBuilder(tags={6: _FAR}),
    "strings: outside": lambda: ElfBuilder(tags={5: _FAR}),
    "strings: longer than the file": lambda: ElfBuilder(tags={10: _FAR}),
    "strings: none": lambda: ElfBuilder(tags={10: None}),
    "strings: without an end": lambda: ElfBuilder(tables={"strings": b"x" * 100_000}),
    "soname: outside": lambda: ElfBuilder(tags={14: 1 << 40}),
    "needs: point to themselves": lambda: _needs(struct.pack("<HHIII", 1, 0xFFFF, 1, 1, 1) * 9),
    "needs: outside": lambda: _needs(struct.pack("<HHIII", 1, 1, 1, 0xFFFFFF00, 0xFFFFFF00)),
    "definitions: outside": lambda: ElfBuilder(tags={0x6FFFFFFC: _FAR, 0x6FFFFFFD: 1}),
    "version indices: outside": lambda: ElfBuilder(tags={0x6FFFFFF0: _FAR}),
    "segment: beyond the file": lambda: ElfBuilder(segments=((1, 0, 1 << 32, _FAR),)),
    "segment: in the memory of another": lambda: ElfBuilder(segments=((1, 0, 64, 8),)),
    "segment: at the end of all memory": lambda: ElfBuilder(segments=((1, 0, (1 << 64) - 8, 16),)),
    "segments: two dynamic sections": lambda: ElfBuilder(segments=((2, 0, 0, 64),)),
    "dynamic section: without an end": _WithoutEnd,
    "segments: a thousand and more": lambda: ElfBuilder(segments=((4, 0, 0, 0),) * 2000),
}


@pytest.mark.parametrize("lie", _LIES.values(), ids=_LIES.keys())
def test_a_lie_is_an_elf_error(tmp_path: Path, lie: Callable[[], ElfBuilder]) -> None:
    with pytest.raises(ElfError) as caught:
        ask_about(tmp_path, lie().build())

    assert caught.value.rule == "LD-005"
    assert caught.value.path == str(tmp_path / "libhostile.so")
    assert caught.value.message.startswith("libhostile.so is cut off or damaged: ")
    assert isinstance(caught.value, PluginError)


def test_the_linker_reads_no_other_dynamic_section(tmp_path: Path) -> None:
    """It goes by the address, and a file may name another place there than by the offset."""
    made = ElfBuilder(needed=("liball.so",))
    whole = made.build()
    (offset,) = struct.unpack_from("<Q", whole, 64 + 56 + 8)
    lie = struct.pack("<IIQQQQQQ", 2, 4, 64, offset, 0, len(whole) - offset, 0, 0)

    with pytest.raises(ElfError, match="lies at byte 64, and in memory comes from byte"):
        ask_about(tmp_path, whole[: 64 + 56] + lie + whole[64 + 112 :])


@pytest.mark.parametrize("size", [None, 1, 30])
def test_an_export_does_not_hide_behind_a_short_string_table(
    tmp_path: Path, size: int | None
) -> None:
    path = tmp_path / "libhostile.so"
    made = ElfBuilder(needed=(), soname="", tags={10: size})
    path.write_bytes(made.build())

    # The linker does not look at the size, and would find it.
    with ElfFile(str(path)) as elf, pytest.raises(ElfError, match="string"):
        elf.find("TF_InitPlugin")


def test_the_builder_itself_tells_no_lies(tmp_path: Path) -> None:
    ask_about(tmp_path, ElfBuilder().build())
    ask_about(tmp_path, ElfBuilder(hash_style="both").build())


def test_one_long_string_for_all_symbols_costs_a_bounded_amount(tmp_path: Path) -> None:
    count, name = 50_000, b"n" * 60_000
    symbol = struct.pack("<IBBHQQ", 1, 0x12, 0, 0, 0, 0)
    tables = {
        "symbols": bytes(24) + symbol * count,
        "strings": b"\0" + name + b"\0",
        "sysv_hash": words(1, count + 1, 0, *[0] * (count + 1)),
    }

    with pytest.raises(ElfError, match="longer than any real library's"):
        ask_about(
            tmp_path, ElfBuilder(hash_style="sysv", needed=(), tables=tables, tags={14: 0}).build()
        )


def test_a_sparse_file_of_a_terabyte(tmp_path: Path) -> None:
    path = tmp_path / "libsparse.so"
    path.write_bytes(ElfBuilder(tags={10: 1 << 39}, segments=((1, 0, 1 << 30, 1 << 39),)).build())
    with path.open("r+b") as stream:
        stream.truncate(1 << 40)

    with pytest.raises(ElfError, match="damaged"):
        ask_everything(path)


def test_every_cut_of_a_library(tmp_path: Path) -> None:
    whole = ElfBuilder(hash_style="both").build()

    for size in range(len(whole)):
        with pytest.raises(ElfError) as caught:
            ask_about(tmp_path, whole[:size])
        assert caught.value.rule in {"LD-004", "LD-005"}


def test_every_byte_set_to_all_ones(tmp_path: Path) -> None:
    whole = ElfBuilder(hash_style="both").build()
    errors = 0

    for at in range(len(whole)):
        try:
            ask_about(tmp_path, whole[:at] + b"\xff" + whole[at + 1 :])
        except ElfError:
            errors += 1
    assert errors > len(whole) // 10


@pytest.mark.parametrize("damage", BROKEN_LIBRARIES)
def test_damaged_copies_of_a_compiled_plugin(broken_library: LibraryBreaker, damage: str) -> None:
    path = broken_library(damage)
    if damage in {"sections-behind-the-end", "other-machine"}:
        ask_everything(path)  # whole, as far as loading goes
        return

    with pytest.raises(ElfError) as caught:
        ask_everything(path)
    assert caught.value.rule in {"LD-004", "LD-005", "LD-006", "LD-008", "LD-009"}


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "libshrinks.so"
    path.write_bytes(ElfBuilder(tables={"symbols": bytes(200_000)}).build())

    with ElfFile(str(path)) as elf:
        path.write_bytes(b"")
        with pytest.raises(ElfError, match="shrank while it was read"):
            elf.exports()


def test_a_closed_reader_says_so(tmp_path: Path) -> None:
    path = tmp_path / "libclosed.so"
    path.write_bytes(ElfBuilder(tables={"symbols": bytes(200_000)}).build())
    elf = ElfFile(str(path))
    elf.close()
    elf.close()

    with pytest.raises(ElfError, match="cannot be read"):
        elf.exports()
