"""Checks of files that are opened for writing at their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import WARNING, Suite
from modular_tf.check.expectation import expect, expect_equal
from modular_tf.check.filesystem.expected_state import expect_content, expect_empty
from modular_tf.check.filesystem.ground import CONTENT

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

suite = Suite(
    "filesystem", "appending", traits="writes append", source="filesystem.h, new_appendable_file"
)


def _append(fs: FilesystemGround, uri: str, added: bytes, what: str) -> None:
    writer = fs.subject.new_appendable_file(uri).must_be_ok()
    expect(writer is not None, f"new_appendable_file({what}) is OK and left no file")
    try:
        if added:
            writer.append(added).must_be_ok()
        writer.close().must_be_ok()
    finally:
        writer.cleanup()


def _expect_appended(
    fs: FilesystemGround, uri: str, added: bytes, expected: bytes, what: str
) -> None:
    _append(fs, uri, added, what)
    expect_content(fs, uri, expected, f"the content of {what} after it")


@suite.check("FS-192", "new_appendable_file", traits="writes append empty-files")
def creates_a_file(fs: FilesystemGround) -> None:
    """new_appendable_file creates a missing file, empty.

    Otherwise: The first run of a program that continues its log fails.
    Remedy: Create the file where it is missing.
    """
    uri = fs.path("log")
    _append(fs, uri, b"", "X")
    expect(fs.exists(uri), "a file that was opened for appending and closed is not there")
    expect_empty(fs, uri, "the length of a file that nothing was appended to")


@suite.check("FS-193", "new_appendable_file")
def keeps_what_is_there(fs: FilesystemGround) -> None:
    """new_appendable_file keeps what is there, and appends go behind it.

    Otherwise: A log that is continued loses what was in it.
    Remedy: Open without truncating, and write at the end.
    """
    _expect_appended(fs, fs.make_file("continued"), b"qwer", b"abcdqwer", "F")


@suite.check("FS-194", "new_appendable_file", "tell", severity=WARNING)
def tells_the_end(fs: FilesystemGround) -> None:
    """tell of a file that was just opened for appending is its length.

    Otherwise: Offsets that a writer notes down are wrong by the length of the old content.
    Remedy: Start at the length of the file, not at 0.
    """
    with fs.subject.new_appendable_file(fs.make_file("end-told")).opened() as writer:
        position = writer.tell().must_be_ok()
        writer.close()
    expect_equal(position, len(CONTENT), "tell of a file of 4 bytes, opened for appending")


@suite.check("FS-195", "new_appendable_file", traits="writes append parents")
def misses_a_missing_directory(fs: FilesystemGround) -> None:
    """new_appendable_file in a missing directory is NOT_FOUND.

    Otherwise: Callers tell cases apart by the code: they take the wrong branch, or give up.
    Remedy: Set TF_NOT_FOUND and create no parents.
    """
    fs.subject.new_appendable_file(fs.below_missing()).must_be(Code.NOT_FOUND)


@suite.check("FS-196", "new_appendable_file", traits="writes append directories")
def refuses_a_directory(fs: FilesystemGround) -> None:
    """new_appendable_file on a directory is FAILED_PRECONDITION.

    Otherwise: Callers tell cases apart by the code: they take the wrong branch, or give up.
    Remedy: Look at the kind of the entry, and set TF_FAILED_PRECONDITION.
    """
    fs.subject.new_appendable_file(fs.make_dir()).must_be(Code.FAILED_PRECONDITION)


@suite.check("FS-197", "new_appendable_file", traits="writes append file-as-directory")
def refuses_a_name_below_a_file(fs: FilesystemGround) -> None:
    """new_appendable_file below a file is FAILED_PRECONDITION.

    Otherwise: Callers tell cases apart by the code: they take the wrong branch, or give up.
    Remedy: Set TF_FAILED_PRECONDITION where a parent is a file.
    """
    fs.subject.new_appendable_file(fs.below_file()).must_be(Code.FAILED_PRECONDITION)


@suite.check("FS-198", "new_appendable_file")
def changes_nothing_without_appends(fs: FilesystemGround) -> None:
    """Opening for appending and closing again changes nothing.

    Otherwise: Files are emptied by those who only look whether they can be written.
    Remedy: Do not truncate, and do not write an empty object at close.
    """
    _expect_appended(fs, fs.make_file("untouched"), b"", CONTENT, "F")
