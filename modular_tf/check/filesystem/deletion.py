"""Checks of deleting files, directories and trees."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import RAW, ROBUST, WARNING, Suite
from modular_tf.check.expectation import Unsupported, expect, expect_equal
from modular_tf.check.filesystem.access_rights import read_only
from modular_tf.check.filesystem.expected_state import (
    expect_content,
    expect_directory,
    expect_missing,
)
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.filesystem.local_disk import local_path

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

suite = Suite("filesystem", "deletion", source="filesystem.h, {slot}")


@suite.check("FS-220", "delete_file", traits="writes")
def deletes_a_file(fs: FilesystemGround) -> None:
    """delete_file deletes the file; a second call is NOT_FOUND.

    Otherwise: Old checkpoints pile up, or are listed after they were deleted.
    Remedy: Delete the entry before OK, and forget what is cached of it.
    """
    uri = fs.make_file("deleted")
    fs.subject.delete_file(uri).must_be_ok()
    expect_missing(fs, uri, "delete_file(F) is OK, and F is still there")
    fs.subject.delete_file(uri).must_be(Code.NOT_FOUND)


@suite.check("FS-221", "delete_file")
def misses_a_missing_file(fs: FilesystemGround) -> None:
    """delete_file of a missing name is NOT_FOUND.

    Otherwise: Callers tell cases apart by the code: they take the wrong branch, or give up.
    Remedy: Look whether it is there where the store's delete does not say.
    """
    fs.subject.delete_file(fs.missing()).must_be(Code.NOT_FOUND)


@suite.check("FS-222", "delete_file", traits="writes directories")
def takes_no_directory_for_a_file(fs: FilesystemGround) -> None:
    """delete_file of a directory is FAILED_PRECONDITION, and the directory stays.

    Otherwise: A whole directory goes where one file was meant.
    Remedy: Look at the kind of the entry, and set TF_FAILED_PRECONDITION.
    """
    uri = fs.make_dir()
    fs.subject.delete_file(uri).must_be(Code.FAILED_PRECONDITION)
    expect_directory(fs, uri, "the refused delete_file(D) lost D")


@suite.check("FS-223", "delete_file", traits="writes file-as-directory")
def deletes_nothing_below_a_file(fs: FilesystemGround) -> None:
    """delete_file below a file is FAILED_PRECONDITION, and the file stays.

    Otherwise: Callers tell cases apart by the code: they take the wrong branch, or give up.
    Remedy: Set TF_FAILED_PRECONDITION where a parent is a file.
    """
    fs.subject.delete_file(fs.below_file()).must_be(Code.FAILED_PRECONDITION)
    expect_content(fs, fs.path("F"), CONTENT, "the content of F after delete_file(F/x)")


@suite.check("FS-224", "delete_dir", traits="writes directories")
def deletes_an_empty_directory(fs: FilesystemGround) -> None:
    """delete_dir deletes an empty directory; a second call is NOT_FOUND.

    Otherwise: Empty directories cannot be got rid of.
    Remedy: Delete the entry before OK, and forget what is cached of it.
    """
    uri = fs.make_dir("deleted-dir")
    fs.subject.delete_dir(uri).must_be_ok()
    expect_missing(fs, uri, "delete_dir(D) is OK, and D is still there")
    fs.subject.delete_dir(uri).must_be(Code.NOT_FOUND)


@suite.check("FS-225", "delete_dir", traits="directories")
def misses_a_missing_directory(fs: FilesystemGround) -> None:
    """delete_dir of a missing name is NOT_FOUND.

    Otherwise: Callers tell cases apart by the code: they take the wrong branch, or give up.
    Remedy: Set TF_NOT_FOUND where nothing is there.
    """
    fs.subject.delete_dir(fs.missing()).must_be(Code.NOT_FOUND)


@suite.check("FS-226", "delete_dir", traits="writes")
def keeps_a_full_directory(fs: FilesystemGround) -> None:
    """delete_dir of a directory with a file in it is FAILED_PRECONDITION, and all stays.

    Otherwise: Data is lost by a call that must never lose any.
    Remedy: Look for children first, and set TF_FAILED_PRECONDITION where there is one.
    """
    uri = fs.make_full_dir()
    fs.subject.delete_dir(uri).must_be(Code.FAILED_PRECONDITION)
    expect_content(fs, f"{uri}/file", CONTENT, "the content of N/file after delete_dir(N)")


@suite.check("FS-227", "delete_dir", traits="writes file-as-directory")
def takes_no_file_for_a_directory(fs: FilesystemGround) -> None:
    """delete_dir of a file, or below one, is FAILED_PRECONDITION, and the file stays.

    Otherwise: A file goes where a directory was meant.
    Remedy: Look at the kind of the entry, and set TF_FAILED_PRECONDITION.
    """
    below, file = fs.below_file(), fs.path("F")
    fs.subject.delete_dir(file).must_be(Code.FAILED_PRECONDITION)
    fs.subject.delete_dir(below).must_be(Code.FAILED_PRECONDITION)
    expect_content(fs, file, CONTENT, "the content of F after delete_dir")


def _delete_all(fs: FilesystemGround, uri: str, what: str) -> None:
    """Demand that a deletion works, and that nothing is said to be left."""
    answer = fs.subject.delete_recursively(uri)
    answer.must_be_ok()
    expect_equal(answer.value, (0, 0), f"what delete_recursively({what}) says is left")
    expect_missing(fs, uri, f"delete_recursively({what}) is OK, and it is still there")


_NAMES = ("plain", "with blank", ".hidden", "..twice", "naïve-日本", "a%20b", "-rf")


@suite.check("FS-228", "delete_recursively", traits="writes")
def deletes_a_tree(fs: FilesystemGround) -> None:
    """delete_recursively deletes a tree with names of all kinds, and nothing beside it.

    Otherwise: Trees are left in pieces, or neighbours go with them.
    Remedy: Delete files, then directories from the deepest up; or leave the slot NULL.
    """
    empty = fs.make_dir("empty")
    if fs.exists(empty):
        _delete_all(fs, empty, "D")
    fs.make_dir("home")
    beside = fs.make_file("home/tree-not")
    for directory in ("home/tree", "home/tree/in ner", "home/tree/in ner/.low"):
        fs.make_dir(directory)
        for name in _NAMES:
            fs.make_file(f"{directory}/{name}")
    _delete_all(fs, fs.path("home/tree"), "a tree")
    expect_content(fs, beside, CONTENT, "the content of a file beside a deleted tree")


def _expect_not_started(fs: FilesystemGround, uri: str, what: str, code: Code) -> None:
    answer = fs.subject.delete_recursively(uri)
    answer.must_be(code)
    expect_equal(answer.value, (0, 1), f"what delete_recursively({what}) says is left")


@suite.check("FS-229", "delete_recursively", traits="directories")
def misses_a_missing_tree(fs: FilesystemGround) -> None:
    """delete_recursively of a missing name is NOT_FOUND, with 0 files and 1 directory left.

    Otherwise: Callers cannot tell that the walk did not start.
    Remedy: Set undeleted_files to 0 and undeleted_dirs to 1 where nothing can be walked.
    """
    _expect_not_started(fs, fs.missing(), "X", Code.NOT_FOUND)


@suite.check("FS-230", "delete_recursively", traits="writes")
def deletes_a_file_as_a_tree(fs: FilesystemGround) -> None:
    """delete_recursively of a file deletes it, with 0 and 0 left.

    Otherwise: rmtree of a path that happens to be a file fails.
    Remedy: Delete the file, or leave the slot NULL: the host does so.
    Source: TensorFlow 2.21, observed
    """
    _delete_all(fs, fs.make_file("alone"), "F")


@suite.check("FS-231", "delete_recursively", traits="writes file-as-directory")
def starts_nothing_below_a_file(fs: FilesystemGround) -> None:
    """delete_recursively below a file is FAILED_PRECONDITION, with 0 files and 1 directory left.

    Otherwise: Callers tell cases apart by the code: they take the wrong branch, or give up.
    Remedy: Set TF_FAILED_PRECONDITION and the counters 0 and 1.
    """
    _expect_not_started(fs, fs.below_file(), "F/x", Code.FAILED_PRECONDITION)


@suite.check(
    "FS-232",
    "delete_recursively",
    level=ROBUST,
    traits="writes directories permissions",
    severity=WARNING,
)
def goes_on_beside_what_stays(fs: FilesystemGround) -> None:
    """delete_recursively skips what cannot be deleted, counts it and returns its code.

    Otherwise: One file keeps a whole tree from being deleted, and no message names it.
    Remedy: Note the first failure, count, go on with the siblings, and set its code at the end.
    """
    tree = fs.make_dir("stubborn")
    for directory in ("a", "kept", "z"):
        fs.make_full_dir(f"stubborn/{directory}")
    with read_only(fs, f"{tree}/kept"):
        answer = fs.subject.delete_recursively(tree)
    answer.must_be(Code.PERMISSION_DENIED)
    files, directories = answer.value
    expect(
        files > 0 or directories > 0, "delete_recursively failed, and nothing is said to be left"
    )
    for directory in ("a", "z"):
        left = f"{tree}/{directory}/file"
        expect_missing(fs, left, "delete_recursively does not go on beside what stays")


@suite.check("FS-233", "delete_recursively", ways=RAW, traits="writes directories")
def always_counts(fs: FilesystemGround) -> None:
    """delete_recursively always writes both counters, and both are 0 with OK.

    Otherwise: TensorFlow shows stack garbage as the number of files left.
    Remedy: Set both counters first of all.
    """
    for uri in (
        fs.make_full_dir("counted"),
        fs.make_file("counted-file"),
        fs.path("uncounted"),
    ):
        answer = fs.subject.delete_recursively(uri)
        unset = [count for count in answer.value if count == 2**64 - 1]
        expect(
            not unset,
            "delete_recursively leaves a counter as it was",
            expected="both counters set, whatever comes out",
            found=f"{len(unset)} of 2 not set, code {answer.code}",
        )
        if answer.ok:
            expect_equal(answer.value, (0, 0), "what a delete_recursively that is OK says is left")


@suite.check(
    "FS-234",
    "delete_recursively",
    level=ROBUST,
    traits="writes directories local-disk",
    severity=WARNING,
)
def follows_no_link(fs: FilesystemGround) -> None:
    """delete_recursively deletes a link, and nothing behind it.

    Otherwise: Data outside of the tree is lost.
    Remedy: Do not follow symbolic links: lstat, unlinkat. The default of TensorFlow follows them.
    """
    outside, tree = fs.make_full_dir("outside"), fs.make_full_dir("linked")
    behind, inside = local_path(fs, outside), local_path(fs, tree)
    if behind is None or inside is None:
        raise Unsupported("there are no links on this store")
    os.symlink(behind, f"{inside}/link")
    answer = fs.subject.delete_recursively(tree)
    message = f"the content behind a link in a deleted tree (code {answer.code})"
    expect_content(fs, f"{outside}/file", CONTENT, message)
