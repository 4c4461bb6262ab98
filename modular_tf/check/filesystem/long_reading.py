"""Checks of reads that are many, and of those that are long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.answers import code_found
from modular_tf.check.check import ROBUST, Suite
from modular_tf.check.expectation import expect, expect_equal
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.filesystem.prepared_files import long_content
from modular_tf.check.repetition import expect_no_leak, rounds_of

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

suite = Suite("filesystem", "long-reading", level=ROBUST, traits="writes")

_FILES = 4
_POOL = 32  # requests after which a plugin has all the threads that it will keep


@suite.check("FS-331", "new_random_access_file", "read")
def reads_leave_nothing_behind(fs: FilesystemGround) -> None:
    """Reading again and again leaves no descriptors, mappings or memory behind.

    Otherwise: A long job runs out of descriptors, and then every open of the process fails.
    Remedy: Keep one connection for each file or pool, and release what a request took.
    Source: filesystem.h, read
    """
    with fs.subject.new_random_access_file(fs.make_file("read-often")).opened() as reader:

        def read_a_byte() -> None:
            answer = reader.read(1, 1)
            expect(answer.value == CONTENT[1:2], "read(1, 1) failed", found=code_found(answer))

        for _ in range(_POOL):
            read_a_byte()
        expect_no_leak(read_a_byte, rounds_of(fs.target.options), "reading a byte")


@suite.check("FS-332", "new_random_access_file", "read", seconds=60)
def reads_megabytes_at_once(fs: FilesystemGround) -> None:
    """One read of several megabytes gives all of them.

    Otherwise: Reading a whole file in one call crashes the program, or gives less than there is.
    Remedy: Grow buffers by what arrives; loop over short answers of the store.
    Source: filesystem.h, read; published plugins, observed

    What overflows depends on how the bytes arrive.
    """
    content = long_content(fs.target.options)
    length = len(content)
    for number in range(_FILES):
        with fs.subject.new_random_access_file(
            fs.make_file(f"in-one-read-{number}", content)
        ).opened() as reader:
            answer = reader.read(0, length)
        answer.must_be_ok()
        expect_equal(len(answer.value), length, f"the length of read(0, {length})")
        expect(answer.value == content, f"read(0, {length}) gave other bytes")
