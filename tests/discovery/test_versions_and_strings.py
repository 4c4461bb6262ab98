"""Versions of symbols, names without a hash table, and the bounds of strings."""

import struct
from pathlib import Path

import _cffi_backend
import pytest

from modular_tf.discovery.elf import parse_glibc
from modular_tf.discovery.elf.file import ElfFile
from tests.discovery.elf_builder import ElfBuilder

_GNU_HASH, _UNKNOWN_TAG = 0x6FFFFEF5, 0x6FFFFE00
_VERSIONS_NEEDED = 0x6FFFFFFF


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("GLIBC_2.34", (2, 34)),
        ("GLIBC_2.99999", (2, 99999)),
        ("GLIBC_2.100000", None),
        ("GLIBC_PRIVATE", None),
        ("GLIBC_2.\N{ARABIC-INDIC DIGIT THREE}", None),
        ("GLIBCXX_3.4", None),
    ],
)
def test_a_version_of_glibc_is_numbers_only(version, numbers):
    assert parse_glibc(version) == numbers


def test_a_chain_of_versions_ends_at_distance_zero_and_a_mark_is_no_part_of_a_number(tmp_path):
    """As for the dynamic linker, whatever number of them is claimed."""
    hidden = 0x8000
    needed = struct.pack("<HHIII", 1, 9, 1, 16, 0)
    version = struct.pack("<IHHII", 0, 0, hidden | 2, 1, 0)
    library = tmp_path / "liba.so"
    builder = ElfBuilder(tables={"needs": needed + version}, tags={_VERSIONS_NEEDED: 9})
    library.write_bytes(builder.build())

    with ElfFile(str(library)) as elf:
        assert [need.number for need in elf.version_needs()] == [2]


def test_without_a_hash_table_the_sections_say_how_many_symbols_there_are(tmp_path):
    whole = Path(_cffi_backend.__file__)
    data = whole.read_bytes()
    hidden = tmp_path / "libhidden.so"
    tag = struct.pack("<Q", _GNU_HASH)
    assert data.count(tag) == 1
    hidden.write_bytes(data.replace(tag, struct.pack("<Q", _UNKNOWN_TAG)))

    with ElfFile(str(whole)) as one, ElfFile(str(hidden)) as other:
        assert one.undefined()
        assert list(other.undefined()) == list(one.undefined())
