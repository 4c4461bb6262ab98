"""Checks of files that are offered as memory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import expect_ok
from modular_tf.check.check import CheckList
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.expectation import expect, expect_equal
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.filesystem.open_files import expect_refused, expect_step, region_of
from modular_tf.check.level import Level
from modular_tf.check.repetition import expect_no_leak, rounds_of

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround
    from modular_tf.check.filesystem.subject import Region

CHECKS = CheckList("filesystem", "regions")

_SLOT = "new_read_only_memory_region_from_file"
_NEEDS = (_SLOT,)
_WRITES = ("writes",)
_ALIGNMENT = 64  # bytes; what TensorFlow asks of memory that tensors map
_THREADS = 8
_CALLS_OF_A_THREAD = 50


@CHECKS.check("FS-199", Level.WORKS, needs=_NEEDS, traits=_WRITES, rows=(99,))
def maps_a_file(ground: FilesystemGround) -> None:
    """Tried on a file."""
    uri = ground.make_file("mapped")
    region = expect_ok(ground.subject.new_read_only_memory_region_from_file(uri), f"{_SLOT}(F)")
    expect(region is not None, f"{_SLOT}(F) is OK and left no region")
    try:
        expect_equal(region.length(), len(CONTENT), "the length of the region")
        expect(region.address() != 0, "data of a region with bytes is NULL")
        expect_equal(region.content(), CONTENT, "the bytes of the region")
    finally:
        region.close()


def _expect_unmappable(ground: FilesystemGround, uri: str, what: str, code: Code) -> None:
    answer = ground.subject.new_read_only_memory_region_from_file(uri)
    expect_refused(answer, f"{_SLOT}({what})", code)


@CHECKS.check("FS-200", Level.WORKS, needs=_NEEDS, traits=("writes", "empty-files"), rows=(100,))
def refuses_an_empty_file(ground: FilesystemGround) -> None:
    """Tried on an empty file."""
    _expect_unmappable(ground, ground.make_empty_file(), "E", Code.INVALID_ARGUMENT)


@CHECKS.check("FS-201", Level.WORKS, needs=_NEEDS, rows=(101,))
def misses_missing_names(ground: FilesystemGround) -> None:
    """Tried on a missing name, and on a name in a missing directory."""
    _expect_unmappable(ground, ground.missing(), "X", Code.NOT_FOUND)
    _expect_unmappable(ground, ground.below_missing(), "X/y", Code.NOT_FOUND)


@CHECKS.check(
    "FS-202",
    Level.WORKS,
    needs=_NEEDS,
    traits=("writes", "directories", "file-as-directory"),
    rows=(102,),
)
def refuses_what_is_no_file(ground: FilesystemGround) -> None:
    """Tried on a directory, and on a name below a file."""
    _expect_unmappable(ground, ground.make_dir(), "D", Code.FAILED_PRECONDITION)
    _expect_unmappable(ground, ground.below_file(), "F/x", Code.FAILED_PRECONDITION)


@CHECKS.check("FS-203", Level.ROBUST, needs=_NEEDS, traits=_WRITES, rows=(103,))
def stays_in_its_place(ground: FilesystemGround) -> None:
    """Eight threads that ask again and again, while the file grows into a new one."""
    uri = ground.make_file("stable")
    with region_of(ground, uri) as region:
        place = (region.address(), region.length())
        ground.make_file("another", CONTENT * 1000)
        found = run_at_once([partial(_places, region) for _ in range(_THREADS)])
        expect_equal(set().union(*found), {place}, "data and length, asked again")
        expect_equal(region.content(), CONTENT, "the bytes of the region, later")


def _places(region: Region) -> set[tuple[int, int]]:
    return {(region.address(), region.length()) for _ in range(_CALLS_OF_A_THREAD)}


@CHECKS.check("FS-204", Level.WORKS, needs=_NEEDS, traits=_WRITES, rows=(104,))
def aligns_its_memory(ground: FilesystemGround) -> None:
    """Tried on files of several lengths."""
    for length in (1, 100, 4097):
        uri = ground.make_file(f"aligned-{length}", b"x" * length)
        with region_of(ground, uri) as region:
            address = region.address()
        expect(
            address % _ALIGNMENT == 0,
            f"the memory of a file of {length} bytes is not aligned",
            expected=f"a multiple of {_ALIGNMENT}",
            found=hex(address),
        )


@CHECKS.check("FS-205", Level.ROBUST, needs=_NEEDS, traits=_WRITES, rows=(105,))
def outlives_its_file(ground: FilesystemGround) -> None:
    """A file that is deleted below its region; then mapping, again and again."""
    uri = ground.make_file("doomed")
    with region_of(ground, uri) as region:
        expect_step(ground.subject.delete_file(uri), "delete_file(F)")
        expect_equal(region.content(), CONTENT, "the bytes of a region whose file is deleted")
    often = ground.make_file("often")

    def map_and_leave() -> None:
        with region_of(ground, often):
            pass

    expect_no_leak(map_and_leave, rounds_of(ground.target.options), "mapping a file")
