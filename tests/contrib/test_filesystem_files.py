"""Open files: what is read, written, appended and mapped. Row numbers are the catalogue's."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.contrib.outcome import FAILED_PRECONDITION, OK, OUT_OF_RANGE
from tests.contrib.world import CONTENT, EMPTY, FILE, OTHER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contrib.world import World

MEBIBYTE = 1 << 20


@pytest.fixture
def reader(world: World) -> Iterator[int]:
    """F, open for reading."""
    number = world.open("new_random_access_file", FILE)
    yield number
    world.plugin.cleanup("reader", number)


@pytest.mark.parametrize(
    ("row", "span", "code", "data"),
    [
        (56, (0, 4), OK, b"abcd"),
        (57, (1, 2), OK, b"bc"),
        (58, (0, 10), OUT_OF_RANGE, b"abcd"),
        (58, (2, 10), OUT_OF_RANGE, b"cd"),
        (59, (4, 1), OUT_OF_RANGE, b""),
        (59, (100, 1), OUT_OF_RANGE, b""),
        (60, (0, 0), OK, b""),
    ],
)
def test_read(world: World, row: int, span: tuple[int, int], code: int, data: bytes) -> None:
    reader = world.open("new_random_access_file", FILE)
    outcome = world.plugin.read(reader, *span)
    world.plugin.cleanup("reader", reader)
    assert (outcome.code, outcome.value) == (code, (len(data), data)), row


@pytest.mark.parametrize(
    "offset", [(1 << 62), (1 << 63) - 5, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
)
@pytest.mark.parametrize("size", [1, 100])
def test_read_at_an_impossible_offset_finds_the_end(
    world: World, reader: int, offset: int, size: int
) -> None:
    """Row 64: no file is as long, so nothing is there."""
    outcome = world.plugin.read(reader, offset, size)
    assert (outcome.code, outcome.value) == (OUT_OF_RANGE, (0, b""))


def test_read_of_an_empty_file(world: World) -> None:
    """Row 61."""
    assert world.read(EMPTY) == b""


def test_big_file_in_odd_chunks(world: World) -> None:
    """Rows 65, 78."""
    data = random.Random(1).randbytes(5 * MEBIBYTE)
    world.write("big", data)
    number = world.open("new_random_access_file", "big")
    pieces, offset = [], 0
    while offset < len(data):
        outcome = world.plugin.read(number, offset, 77_777)
        pieces.append(outcome.value[1])
        offset += outcome.value[0]
    world.plugin.cleanup("reader", number)
    assert b"".join(pieces) == data


def test_reads_in_parallel_on_one_handle(world: World, reader: int) -> None:
    """Row 66."""
    jobs = [[("read", reader, offset, 1)] * 50 for offset in (0, 1, 2, 3)]
    for offset, results in enumerate(world.plugin.parallel(jobs)):
        assert {result.value for result in results} == {(1, CONTENT[offset : offset + 1])}


def test_read_after_deletion_sees_the_old_bytes(world: World, reader: int) -> None:
    """Row 67."""
    assert world.call("delete_file", FILE).code == OK
    assert world.plugin.read(reader, 0, 4).value == (4, CONTENT)


def test_open_and_cleanup_leak_no_descriptor(world: World) -> None:
    """Rows 68, 105."""
    before = world.plugin.descriptors()
    for _ in range(50):
        for slot, kind in (
            ("new_random_access_file", "reader"),
            ("new_appendable_file", "writer"),
            ("new_read_only_memory_region_from_file", "region"),
        ):
            world.plugin.cleanup(kind, world.open(slot, FILE))
        world.plugin.open("new_random_access_file", world.uri("missing"))
        world.plugin.open("new_random_access_file", world.uri("dir"))
        world.call("copy_file", FILE, "copy")
        world.plugin.get_children(world.uri(FILE))
    assert world.plugin.descriptors() == before


def test_created_file_exists_at_once(world: World) -> None:
    """Row 70."""
    file = world.open("new_writable_file", "new")
    assert world.plugin.writer("close", file).code == OK
    world.plugin.cleanup("writer", file)
    assert world.call("get_file_size", "new").value == 0


def test_create_truncates(world: World) -> None:
    """Rows 74, 75."""
    world.write(OTHER, b"z")
    assert world.read(OTHER) == b"z"
    world.write(OTHER, b"")
    assert world.read(OTHER) == b""


def test_appends_keep_their_order(world: World) -> None:
    """Rows 76, 77, 78."""
    pieces = [
        b"asdf",
        b"",
        b"\0\0",
        bytes(MEBIBYTE),
        *[bytes([i % 256]) for i in range(1000)],
        b"e",
    ]
    file = world.open("new_writable_file", "new")
    for piece in pieces:
        assert world.plugin.append(file, piece).code == OK
    assert world.plugin.writer("close", file).code == OK
    world.plugin.cleanup("writer", file)
    assert world.read("new") == b"".join(pieces)


def test_tell(world: World) -> None:
    """Rows 79, 80, 94."""
    file = world.open("new_writable_file", "new")
    assert world.plugin.writer("tell", file).value == 0
    world.plugin.append(file, b"four")
    assert [world.plugin.writer("tell", file).value for _ in range(2)] == [4, 4]
    world.plugin.append(file, bytes(MEBIBYTE))
    assert world.plugin.writer("tell", file).value == MEBIBYTE + 4
    world.plugin.cleanup("writer", file)
    appended = world.open("new_appendable_file", FILE)
    assert world.plugin.writer("tell", appended).value == len(CONTENT)
    world.plugin.cleanup("writer", appended)


@pytest.mark.parametrize("slot", ["flush", "sync"])
def test_flushed_bytes_are_seen_by_others(world: World, slot: str) -> None:
    """Row 82."""
    file = world.open("new_writable_file", "new")
    world.plugin.append(file, b"early")
    assert world.plugin.writer(slot, file).code == OK
    assert world.read("new") == b"early"
    world.plugin.cleanup("writer", file)


def test_cleanup_without_close_keeps_the_bytes(world: World) -> None:
    """Row 85."""
    before = world.plugin.descriptors()
    file = world.open("new_writable_file", "new")
    world.plugin.append(file, b"left behind")
    world.plugin.cleanup("writer", file)
    assert world.plugin.descriptors() == before
    assert world.read("new") == b"left behind"


@pytest.mark.parametrize("slot", ["tell", "flush", "sync", "close"])
def test_use_after_close_is_refused(world: World, slot: str) -> None:
    """Rows 86, 89: the handle can still be cleaned up."""
    file = world.open("new_writable_file", "new")
    assert world.plugin.writer("close", file).code == OK
    assert world.plugin.writer(slot, file).code == FAILED_PRECONDITION
    assert world.plugin.append(file, b"late").code == FAILED_PRECONDITION
    world.plugin.cleanup("writer", file)
    assert world.read("new") == b""


def test_two_writers_in_two_threads(world: World) -> None:
    """Row 90."""
    files = [world.open("new_writable_file", f"new{i}") for i in range(2)]
    jobs = [[("append", file, bytes([65 + file % 2]) * 10)] * 100 for file in files]
    results = world.plugin.parallel(jobs)
    assert {outcome.code for result in results for outcome in result} == {OK}
    for number, file in enumerate(files):
        world.plugin.writer("close", file)
        world.plugin.cleanup("writer", file)
        assert world.read(f"new{number}") == bytes([65 + file % 2]) * 1000


@pytest.mark.parametrize(
    ("row", "name", "data", "expected"),
    [
        (92, "new", b"", b""),
        (92, "new", b"x", b"x"),
        (93, FILE, b"qwer", b"abcdqwer"),
        (98, FILE, b"", b"abcd"),
    ],
)
def test_append_to(world: World, row: int, name: str, data: bytes, expected: bytes) -> None:
    world.write(name, data, "new_appendable_file")
    assert world.read(name) == expected, row


def test_region(world: World) -> None:
    """Rows 99, 103, 104, 105."""
    region = world.open("new_read_only_memory_region_from_file", FILE)
    address, data = world.plugin.region(region)
    assert (data, address % 64) == (CONTENT, 0)
    world.call("delete_file", FILE)
    results = world.plugin.parallel([[("region", region)] * 20] * 4)
    assert {found for result in results for found in result} == {(address, CONTENT)}
    world.plugin.cleanup("region", region)


def test_region_and_reader_outlive_a_new_file_of_the_name(ram: World) -> None:
    """Row 67: in memory, a file that is created anew is a new file."""
    ram.populate()
    region = ram.open("new_read_only_memory_region_from_file", FILE)
    reader = ram.open("new_random_access_file", FILE)
    ram.write(FILE, b"replaced")
    assert ram.plugin.region(region)[1] == CONTENT
    assert ram.plugin.read(reader, 0, 4).value == (4, CONTENT)
    assert ram.read(FILE) == b"replaced"
    ram.plugin.cleanup("region", region)
    ram.plugin.cleanup("reader", reader)
