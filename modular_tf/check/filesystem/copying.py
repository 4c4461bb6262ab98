"""Checks of `copy_file`."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import ROBUST, WARNING, Suite
from modular_tf.check.expectation import Unsupported, expect, expect_equal, note
from modular_tf.check.filesystem.expected_state import (
    expect_content,
    expect_directory,
    expect_missing,
)
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.filesystem.local_disk import file_size_limit, local_path
from modular_tf.check.outcome import Pass

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

suite = Suite("filesystem", "copying", traits="writes", source="filesystem.h")

_LONG = 5 << 20  # longer than the buffers of all hosts and plugins that are known
_BEYOND_INT = (1 << 31) + 4096  # bytes; more than 32 bits with a sign can count
_LIMIT = 1 << 20  # bytes that a file may have while a copy is to fail


def _expect_copied(fs: FilesystemGround, source: str, target: str, content: bytes) -> None:
    fs.subject.copy_file(source, target).must_be_ok()
    expect_content(fs, target, content, "the content of the copy")
    expect_content(fs, source, content, "the content of the copied file")


@suite.check("FS-244", "copy_file")
def copies_a_file(fs: FilesystemGround) -> None:
    """copy_file leaves two files with the same content.

    Otherwise: The copy is short, empty or something else, and the caller was told OK.
    Remedy: Copy until the source ends, close the target, then report OK.
    """
    _expect_copied(fs, fs.make_file(), fs.path("copied"), CONTENT)


@suite.check("FS-245", "copy_file")
def replaces_a_longer_file(fs: FilesystemGround) -> None:
    """copy_file replaces a longer target wholly: nothing of it stays behind the copy.

    Otherwise: The copy ends in bytes of another file.
    Remedy: Truncate the target, or write beside it and rename.
    """
    target = fs.make_file("longer", b"something longer than that")
    _expect_copied(fs, fs.make_file(), target, CONTENT)


@suite.check("FS-246", "copy_file")
def misses_a_missing_file(fs: FilesystemGround) -> None:
    """copy_file of a missing file is NOT_FOUND, and no target appears.

    Otherwise: An empty file appears that looks like a copy.
    Remedy: Open the source before the target is created.
    """
    target = fs.path("Y")
    fs.subject.copy_file(fs.missing(), target).must_be(Code.NOT_FOUND)
    expect_missing(fs, target, "the refused copy_file(X, Y) left a file Y")


@suite.check("FS-247", "copy_file", traits="writes directories")
def refuses_a_directory(fs: FilesystemGround) -> None:
    """copy_file of a directory is FAILED_PRECONDITION, and no target appears.

    Otherwise: A file appears that pretends to be the directory's copy.
    Remedy: Refuse a directory as the source with FAILED_PRECONDITION.
    Source: TensorFlow's test of filesystem plugins
    """
    directory, target = fs.make_dir(), fs.missing()
    fs.subject.copy_file(directory, target).must_be(Code.FAILED_PRECONDITION)
    expect_missing(fs, target, "the refused copy_file(D, X) left X")


@suite.check("FS-248", "copy_file", traits="writes directories")
def keeps_a_directory_that_is_the_target(fs: FilesystemGround) -> None:
    """copy_file onto a directory is FAILED_PRECONDITION, or copies into it.

    Otherwise: The directory is replaced, or the copy is somewhere unknown.
    Remedy: Refuse with FAILED_PRECONDITION; the header allows a copy below the source's name too.
    """
    file, directory = fs.make_file(), fs.make_dir()
    answer = fs.subject.copy_file(file, directory)
    answer.must_be(Code.FAILED_PRECONDITION, Code.OK)
    expect_directory(fs, directory, "copy_file(F, D) replaced D")
    if not answer.ok:
        return
    copied = f"{directory}/F"
    expect(fs.exists(copied), "copy_file(F, D) is OK, and there is no D/F")
    expect_content(fs, copied, CONTENT, "the content of D/F after copy_file(F, D)")
    if fs.subject.has("copy_file"):
        note("copy_file(F, D) copies into the directory; TensorFlow's test wants a refusal")


@suite.check("FS-249", "copy_file", traits="writes file-as-directory")
def refuses_names_below_files(fs: FilesystemGround) -> None:
    """copy_file from a name below a file, or to one, is FAILED_PRECONDITION.

    Otherwise: The caller takes a wrong path for a missing file.
    Remedy: Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).
    Source: TensorFlow's test of filesystem plugins
    """
    below, target, refused = fs.below_file(), fs.path("Y"), Code.FAILED_PRECONDITION
    fs.subject.copy_file(below, target).must_be(refused)
    fs.subject.copy_file(fs.make_file("G"), below).must_be(refused)


@suite.check("FS-250", "copy_file", traits="writes parents")
def misses_a_missing_directory(fs: FilesystemGround) -> None:
    """copy_file into a missing directory is NOT_FOUND.

    Otherwise: The copy ends where no listing shows it.
    Remedy: Check the target's directory; do not create it.
    """
    source = fs.make_file()
    fs.subject.copy_file(source, fs.below_missing()).must_be(Code.NOT_FOUND)


@suite.check("FS-251", "copy_file", traits="writes empty-files")
def copies_an_empty_file(fs: FilesystemGround) -> None:
    """copy_file of an empty file makes an empty file.

    Otherwise: Empty markers such as _SUCCESS are lost.
    Remedy: Create the target even where there is nothing to write.
    """
    source, target = fs.make_empty_file(), fs.path("empty")
    fs.subject.copy_file(source, target).must_be_ok()
    expect(fs.exists(target), "copy_file(E, X) is OK, and there is no X")
    expect_content(fs, target, b"", "the content of the copy")


@suite.check("FS-252", "copy_file")
def survives_its_own_name(fs: FilesystemGround) -> None:
    """copy_file of a file onto itself keeps its content.

    Otherwise: Opening the target truncates the source: the file is lost, and the caller was told
    OK.
    Remedy: Compare the two names (or device and inode) before the target is opened.
    """
    file = fs.make_file()
    fs.subject.copy_file(file, file)
    expect(fs.exists(file), "copy_file(F, F) lost the file")
    expect_content(fs, file, CONTENT, "the content after copy_file(F, F)")


@suite.check("FS-253", "copy_file")
def copies_a_long_file(fs: FilesystemGround) -> None:
    """copy_file copies each byte of a file of several MiB.

    Otherwise: Data is lost at the borders of buffers.
    Remedy: Go on after a short read or write, at the offset that was reached.
    """
    length = int(fs.target.options.get("large_bytes", _LONG))
    content = fs.random.randbytes(length)
    source, target = fs.make_file("long", content), fs.path("copied_long")
    fs.subject.copy_file(source, target).must_be_ok()
    copied = fs.content(target)
    expect_equal(len(copied), length, "the length of the copy")
    found, expected = sha256(copied).hexdigest(), sha256(content).hexdigest()
    expect_equal(found, expected, "the SHA-256 digest of the copy")


@suite.check("FS-254", "copy_file", level=ROBUST, seconds=600)
def copies_beyond_two_gigabytes(fs: FilesystemGround) -> None:
    """copy_file copies files of more than 2 GiB.

    Otherwise: A count kept in 32 bits overflows: the copy ends early or never.
    Remedy: Keep counts and offsets in 64 bits, and repeat sendfile until nothing is left.
    Source: TensorFlow 2.21, observed

    Only where the option `large_files` asks for it: true, or a length in bytes.
    """
    wished = fs.target.options.get("large_files")
    if not wished:
        raise Unsupported("files of more than 2 GiB are tried with the option large_files only")
    length = _BEYOND_INT if wished is True else int(wished)
    source, target = _make_sparse(fs, length), fs.path("beyond")
    fs.subject.copy_file(source, target).must_be_ok()
    expect_equal(fs.subject.stat(target).value.length, length, "the length of the copy")


def _make_sparse(fs: FilesystemGround, length: int) -> str:
    """Make a file of zeros: of holes on a local disk, of bytes elsewhere."""
    uri = fs.make_empty_file("sparse")
    path = local_path(fs, uri)
    if path is not None:
        os.truncate(path, length)
        return uri
    writer = fs.subject.new_writable_file(uri).must_be_ok()
    block = bytes(min(length, 1 << 24))
    for offset in range(0, length, len(block)):
        writer.append(block[: length - offset]).must_be_ok()
    writer.close().must_be_ok()
    writer.cleanup()
    return uri


@suite.check("FS-255", "copy_file", level=ROBUST, severity=WARNING)
def keeps_the_target_of_a_failure(fs: FilesystemGround) -> None:
    """A copy_file that fails leaves the target as it was.

    Otherwise: A failed copy costs the caller the old file as well.
    Remedy: Write beside the target and rename, or open the source before truncating.
    """
    target = fs.make_file("kept")
    answer = fs.subject.copy_file(fs.missing(), target)
    expect(not answer.ok, "copy_file(X, F) is OK")
    expect_content(fs, target, CONTENT, "the target's content after copy_file(X, F)")
    source = fs.make_file("long", bytes(2 * _LIMIT))
    if local_path(fs, source) is None:
        return
    with file_size_limit(_LIMIT):
        answer = fs.subject.copy_file(source, target)
    by_default = fs.target.reached is Pass.HOST and not fs.subject.has("copy_file")
    if answer.ok or (by_default and not fs.exists(target)):
        return  # the host's own copy deletes what it cannot complete
    expect_content(fs, target, CONTENT, "the target's content after a copy that failed")
