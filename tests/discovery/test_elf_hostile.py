"""Lies in every table of a library end in an `ElfError`, in bounded time and memory."""

import struct

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.errors import ElfError, PluginError
from tests.discovery.elf_builder import ElfBuilder


def ask_everything(path):
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


def ask_about(tmp_path, content):
    path = tmp_path / "libhostile.so"
    path.write_bytes(content)
    ask_everything(path)


def words(*numbers):
    return struct.pack(f"<{len(numbers)}I", *numbers)


class _WithoutEnd(ElfBuilder):
    """The last entry of the dynamic section, and the last bytes of the segment, is not DT_NULL."""

    def build(self):
        return super().build()[:-16] + struct.pack("<QQ", 30, 0)


_FAR = 1 << 62
_FULL = b"\xff" * 8  # a filter that has all names
_HASH_OF_GNU, _VERSIONS_COUNTED = 0x6FFFFEF5, 0x6FFFFFFF
_HASHES = {
    "chain without end": words(1, 4, 1, 5) + _FULL + words(4) + words(4) * 20_000,
    "no buckets": words(0, 1, 1, 5) + b"\xff" * 64,
    "four thousand million buckets": words(0xFFFFFFFF, 1, 1, 5) + b"\xff" * 64,
    "filter of no words": words(1, 1, 0, 5) + b"\xff" * 64,
    "filter of three words": words(1, 1, 3, 5) + b"\xff" * 64,
    "filter larger than the file": words(1, 1, 1 << 31, 5) + b"\xff" * 64,
    "filter shifted out": words(1, 1, 1, 64) + b"\xff" * 64,
    "bucket leads out": words(1, 1, 1, 5) + _FULL + words(0xFFFFFFF0),
}
_SYSV_HASHES = {
    "circle": words(1, 8, 3, 0, 2, 1, 3, 0, 0, 0, 0),
    "leads out": words(1, 8, 9999),
    "no buckets": words(0, 8),
    "endless": words(1, 0xFFFFFFFF, 1),
}
_NEEDS = {
    "point to themselves": struct.pack("<HHIII", 1, 0xFFFF, 1, 1, 1) * 9,
    "outside": struct.pack("<HHIII", 1, 1, 1, 0xFFFFFF00, 0xFFFFFF00),
}
_TAGS = {
    "gnu hash outside": {_HASH_OF_GNU: _FAR},
    "symbols outside": {6: _FAR},
    "strings outside": {5: _FAR},
    "strings longer than the file": {10: _FAR},
    "no strings": {10: None},
    "soname outside": {14: 1 << 40},
    "definitions outside": {0x6FFFFFFC: _FAR, 0x6FFFFFFD: 1},
    "version indices outside": {0x6FFFFFF0: _FAR},
}
_SEGMENTS = {
    "beyond the file": ((1, 0, 1 << 32, _FAR),),
    "in the memory of another": ((1, 0, 64, 8),),
    "at the end of all memory": ((1, 0, (1 << 64) - 8, 16),),
    "two dynamic sections": ((2, 0, 0, 64),),
    "a thousand and more": ((4, 0, 0, 0),) * 2000,
}
_COUNT = {_VERSIONS_COUNTED: 0xFFFFFFFF}
_LIES = {
    "strings without an end": ElfBuilder(tables={"strings": b"x" * 100_000}),
    "dynamic section without an end": _WithoutEnd(),
}
_LIES |= {f"hash: {name}": ElfBuilder(tables={"gnu_hash": it}) for name, it in _HASHES.items()}
_LIES |= {
    f"old hash: {name}": ElfBuilder(hash_style="sysv", tables={"sysv_hash": it})
    for name, it in _SYSV_HASHES.items()
}
_LIES |= {
    f"need: {name}": ElfBuilder(tables={"needs": it}, tags=_COUNT) for name, it in _NEEDS.items()
}
_LIES |= {f"segment: {name}": ElfBuilder(segments=it) for name, it in _SEGMENTS.items()}
_LIES |= {name: ElfBuilder(tags=tags) for name, tags in _TAGS.items()}


@pytest.mark.parametrize("lie", _LIES.values(), ids=_LIES)
def test_a_lie_is_an_elf_error(tmp_path, lie):
    with pytest.raises(ElfError) as caught:
        ask_about(tmp_path, lie.build())

    assert caught.value.rule == "LD-005"
    assert caught.value.path == str(tmp_path / "libhostile.so")
    assert caught.value.message.startswith("libhostile.so is cut off or damaged: ")
    assert isinstance(caught.value, PluginError)


def test_the_linker_reads_no_other_dynamic_section(tmp_path):
    """It goes by the address, and a file may name another place there than by the offset."""
    made = ElfBuilder(needed=("liball.so",))
    whole = made.build()
    (offset,) = struct.unpack_from("<Q", whole, 64 + 56 + 8)
    lie = struct.pack("<IIQQQQQQ", 2, 4, 64, offset, 0, len(whole) - offset, 0, 0)

    with pytest.raises(ElfError, match="lies at byte 64, and in memory comes from byte"):
        ask_about(tmp_path, whole[: 64 + 56] + lie + whole[64 + 112 :])


@pytest.mark.parametrize("size", [None, 1, 30])
def test_an_export_does_not_hide_behind_a_short_string_table(tmp_path, size):
    path = tmp_path / "libhostile.so"
    made = ElfBuilder(needed=(), soname="", tags={10: size})
    path.write_bytes(made.build())

    # The linker does not look at the size, and would find it.
    with ElfFile(str(path)) as elf:
        for ask in (lambda: elf.find("TF_InitPlugin"), elf.exports):
            with pytest.raises(ElfError, match="string"):
                ask()


def test_one_long_string_for_all_symbols_costs_a_bounded_amount(tmp_path):
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


@pytest.mark.parametrize(
    ("is_closed", "words"), [(False, "shrank while it was read"), (True, "cannot be read")]
)
def test_a_file_that_shrinks_or_is_closed_meanwhile(tmp_path, is_closed, words):
    path = tmp_path / "libgone.so"
    path.write_bytes(ElfBuilder(tables={"symbols": bytes(200_000)}).build())
    with ElfFile(str(path)) as elf:
        if is_closed:
            elf.close()
        else:
            path.write_bytes(b"")

        with pytest.raises(ElfError, match=words):
            elf.exports()
