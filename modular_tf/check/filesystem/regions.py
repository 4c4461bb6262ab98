"""Checks of files that are offered as memory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import ROBUST, WARNING, Suite
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.expectation import expect, expect_equal
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.repetition import expect_no_leak, rounds_of

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround
    from modular_tf.check.filesystem.subject import Region

suite = Suite(
    "filesystem", "regions", traits="writes", source="filesystem.h, TF_ReadOnlyMemoryRegionOps"
)

_SLOT = "new_read_only_memory_region_from_file"
_ALIGNMENT = 64  # bytes; what TensorFlow asks of memory that tensors map
_THREADS = 8
_CALLS_OF_A_THREAD = 50


@suite.check("FS-199", "new_read_only_memory_region_from_file")
def maps_a_file(fs: FilesystemGround) -> None:
    """A region of a file has the file's length and its bytes.

    Otherwise: Models that are mapped, as by ImmutableConst, hold wrong values.
    Remedy: Return the file's length from length, and its first byte from data.
    """
    uri = fs.make_file("mapped")
    region = fs.subject.new_read_only_memory_region_from_file(uri).must_be_ok()
    expect(region is not None, f"{_SLOT}(F) is OK and left no region")
    try:
        expect_equal(region.length(), len(CONTENT), "the length of the region")
        expect(region.address() != 0, "data of a region with bytes is NULL")
        expect_equal(region.content(), CONTENT, "the bytes of the region")
    finally:
        region.close()


@suite.check("FS-200", "new_read_only_memory_region_from_file", traits="writes empty-files")
def refuses_an_empty_file(fs: FilesystemGround) -> None:
    """A region of an empty file is INVALID_ARGUMENT.

    Otherwise: Callers get a region with no memory behind it.
    Remedy: Look at the length first, and set TF_INVALID_ARGUMENT where it is 0.
    Source: filesystem.h, new_read_only_memory_region_from_file
    """
    fs.subject.new_read_only_memory_region_from_file(fs.make_empty_file()).must_be(
        Code.INVALID_ARGUMENT
    )


@suite.check("FS-201", "new_read_only_memory_region_from_file", traits="")
def misses_missing_names(fs: FilesystemGround) -> None:
    """A region of a missing name, or of one in a missing directory, is NOT_FOUND.

    Otherwise: Callers tell cases apart by the code: they take the wrong branch, or give up.
    Remedy: Set TF_NOT_FOUND, as when a file is opened for reading.
    Source: filesystem.h, new_read_only_memory_region_from_file
    """
    fs.subject.new_read_only_memory_region_from_file(fs.missing()).must_be(Code.NOT_FOUND)
    fs.subject.new_read_only_memory_region_from_file(fs.below_missing()).must_be(Code.NOT_FOUND)


@suite.check(
    "FS-202", "new_read_only_memory_region_from_file", traits="writes directories file-as-directory"
)
def refuses_what_is_no_file(fs: FilesystemGround) -> None:
    """A region of a directory, or of a name below a file, is FAILED_PRECONDITION.

    Otherwise: Callers tell cases apart by the code: they take the wrong branch, or give up.
    Remedy: Set TF_FAILED_PRECONDITION, as when a file is opened for reading.
    Source: filesystem.h, new_read_only_memory_region_from_file
    """
    fs.subject.new_read_only_memory_region_from_file(fs.make_dir()).must_be(
        Code.FAILED_PRECONDITION
    )
    fs.subject.new_read_only_memory_region_from_file(fs.below_file()).must_be(
        Code.FAILED_PRECONDITION
    )


@suite.check("FS-203", "new_read_only_memory_region_from_file", level=ROBUST)
def stays_in_its_place(fs: FilesystemGround) -> None:
    """data and length answer the same on every call and thread until cleanup.

    Otherwise: Tensors point into memory that has moved.
    Remedy: Get the memory once, in new_read_only_memory_region_from_file.
    """
    uri = fs.make_file("stable")
    with fs.subject.new_read_only_memory_region_from_file(uri).opened() as region:
        place = (region.address(), region.length())
        fs.make_file("another", CONTENT * 1000)
        found = run_at_once([partial(_places, region) for _ in range(_THREADS)])
        expect_equal(set().union(*found), {place}, "data and length, asked again")
        expect_equal(region.content(), CONTENT, "the bytes of the region, later")


def _places(region: Region) -> set[tuple[int, int]]:
    return {(region.address(), region.length()) for _ in range(_CALLS_OF_A_THREAD)}


@suite.check("FS-204", "new_read_only_memory_region_from_file", severity=WARNING)
def aligns_its_memory(fs: FilesystemGround) -> None:
    """The memory of a region is aligned to 64 bytes.

    Otherwise: TensorFlow refuses to make tensors of it: ImmutableConst answers INTERNAL.
    Remedy: Map the file, or allocate with aligned_alloc(64, ...).
    Source: TensorFlow 2.21, observed
    """
    for length in (1, 100, 4097):
        uri = fs.make_file(f"aligned-{length}", b"x" * length)
        with fs.subject.new_read_only_memory_region_from_file(uri).opened() as region:
            address = region.address()
        expect(
            address % _ALIGNMENT == 0,
            f"the memory of a file of {length} bytes is not aligned",
            expected=f"a multiple of {_ALIGNMENT}",
            found=hex(address),
        )


@suite.check("FS-205", "new_read_only_memory_region_from_file", level=ROBUST, severity=WARNING)
def outlives_its_file(fs: FilesystemGround) -> None:
    """A region outlives its file, and mapping again and again leaves nothing behind.

    Otherwise: A model that is replaced on disk takes its users down, or memory runs out.
    Remedy: Hold the file's memory until cleanup, and release mapping and descriptor there.
    """
    uri = fs.make_file("doomed")
    with fs.subject.new_read_only_memory_region_from_file(uri).opened() as region:
        fs.subject.delete_file(uri).needed()
        expect_equal(region.content(), CONTENT, "the bytes of a region whose file is deleted")
    often = fs.make_file("often")

    def map_and_leave() -> None:
        with fs.subject.new_read_only_memory_region_from_file(often).opened():
            pass

    expect_no_leak(map_and_leave, rounds_of(fs.target.options), "mapping a file")
