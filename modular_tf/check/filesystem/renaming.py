"""Checks of `rename_file`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import HOST, NOTE, ROBUST, Suite
from modular_tf.check.expectation import Unsupported, advise, expect, note
from modular_tf.check.filesystem.access_rights import read_only
from modular_tf.check.filesystem.expected_state import (
    expect_content,
    expect_directory,
    expect_missing,
)
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.outcome import Pass

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

suite = Suite("filesystem", "renaming", traits="writes rename", source="filesystem.h")


def _expect_moved(fs: FilesystemGround, source: str, target: str) -> None:
    fs.subject.rename_file(source, target).must_be_ok()
    expect_missing(fs, source, "the renamed file still has its old name")
    expect_content(fs, target, CONTENT, "the content under the new name")


def _expect_kept(fs: FilesystemGround, uri: str) -> None:
    expect_content(fs, uri, CONTENT, f"the content of {uri} after the refusal")


@suite.check("FS-235", "rename_file")
def moves_a_file(fs: FilesystemGround) -> None:
    """rename_file moves a file: the new name has its content, the old name does not exist.

    Otherwise: Programs that write beside and rename at the end lose their file, or keep two.
    Remedy: Give the file the new name, then report OK; never leave both.
    """
    _expect_moved(fs, fs.make_file(), fs.path("moved"))


@suite.check("FS-236", "rename_file")
def replaces_a_file(fs: FilesystemGround) -> None:
    """rename_file replaces a file that has the new name already.

    Otherwise: A checkpoint that is written anew over an old one fails, or stays the old one.
    Remedy: Replace the target as rename(2) does; do not answer ALREADY_EXISTS.
    """
    target = fs.make_file("replaced", b"something longer")
    _expect_moved(fs, fs.make_file(), target)


@suite.check("FS-237", "rename_file")
def misses_a_missing_file(fs: FilesystemGround) -> None:
    """rename_file of a missing file is NOT_FOUND, and nothing appears under the new name.

    Otherwise: A caller cannot tell a lost file from a moved one.
    Remedy: Look for the source before the target is touched.
    """
    target = fs.path("Y")
    fs.subject.rename_file(fs.missing(), target).must_be(Code.NOT_FOUND)
    expect_missing(fs, target, "the refused rename_file(X, Y) left a file Y")


@suite.check("FS-238", "rename_file", traits="writes rename parents")
def misses_a_missing_directory(fs: FilesystemGround) -> None:
    """rename_file into a missing directory is NOT_FOUND, and the file stays.

    Otherwise: The file ends where no listing shows it, or is lost.
    Remedy: Check the target's directory first; do not create it.
    """
    source = fs.make_file()
    fs.subject.rename_file(source, fs.below_missing()).must_be(Code.NOT_FOUND)
    _expect_kept(fs, source)


@suite.check("FS-239", "rename_file", traits="writes rename directories")
def refuses_directories(fs: FilesystemGround) -> None:
    """rename_file of a directory, or onto one, is FAILED_PRECONDITION, and both stay.

    Otherwise: A tree is moved or replaced where the caller spoke of one file.
    Remedy: Refuse a directory on either side with FAILED_PRECONDITION.
    Source: TensorFlow's test of filesystem plugins
    """
    directory, file, target = fs.make_dir(), fs.make_file(), fs.missing()
    fs.subject.rename_file(directory, target).must_be(Code.FAILED_PRECONDITION)
    expect(fs.exists(directory), "the refused rename_file(D, X) lost D")
    expect_missing(fs, target, "the refused rename_file(D, X) left X")
    answer = fs.subject.rename_file(file, directory)
    if answer.ok and _is_by_default(fs):  # a default copies into a directory
        expect_content(fs, f"{directory}/F", CONTENT, "D/F after rename_file(F, D)")
        return
    answer.must_be(Code.FAILED_PRECONDITION)
    expect_directory(fs, directory, "rename_file(F, D) replaced D")
    _expect_kept(fs, file)


def _is_by_default(fs: FilesystemGround) -> bool:
    return fs.target.reached is Pass.HOST and not fs.subject.has("rename_file")


@suite.check("FS-240", "rename_file", traits="writes rename file-as-directory")
def refuses_names_below_files(fs: FilesystemGround) -> None:
    """rename_file of a name below a file, or to one, is FAILED_PRECONDITION.

    Otherwise: The caller takes a wrong path for a missing file.
    Remedy: Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).
    Source: TensorFlow's test of filesystem plugins
    """
    below, source = fs.below_file(), fs.make_file("G")
    fs.subject.rename_file(below, fs.path("Y")).must_be(Code.FAILED_PRECONDITION)
    fs.subject.rename_file(source, below).must_be(Code.FAILED_PRECONDITION)
    _expect_kept(fs, source)


@suite.check("FS-241", "rename_file")
def survives_its_own_name(fs: FilesystemGround) -> None:
    """rename_file of a file to its own name keeps its content, and should be OK.

    Otherwise: Copy and delete of one name loses the file.
    Remedy: Compare the two names first, and report OK where they are one file.
    Source: rename(2)
    """
    file = fs.make_file()
    answer = fs.subject.rename_file(file, file)
    expect(fs.exists(file), "rename_file(F, F) lost the file")
    expect_content(fs, file, CONTENT, "the content after rename_file(F, F)")
    advise(
        answer.ok, "rename_file(F, F) is refused", expected="OK (0)", found=code_found(answer)
    )  # fmt: skip


@suite.check("FS-242", "rename_file")
def moves_between_directories(fs: FilesystemGround) -> None:
    """rename_file moves a file from one directory to another.

    Otherwise: Files that are written in a temporary directory cannot be put in their place.
    Remedy: Take the whole path of the target, not its last name.
    """
    source_dir, target_dir = fs.make_full_dir(), fs.make_full_dir("M")
    fs.make_file("N/F")
    _expect_moved(fs, f"{source_dir}/F", f"{target_dir}/arrived")


@suite.check("FS-335", "rename_file")
def leaves_longer_names_alone(fs: FilesystemGround) -> None:
    """Renaming a file moves no other file, however its name begins.

    Otherwise: Files that were not named disappear, or get another name.
    Remedy: Compare whole names: a listing by prefix has more than was asked for.
    Source: filesystem.h; published plugins, observed
    """
    beside = fs.make_file("one-more", b"beside")
    _expect_moved(fs, fs.make_file("one"), fs.path("Y"))
    expect_content(fs, beside, b"beside", "the content of one-more after rename_file(one, Y)")


@suite.check("FS-243", level=ROBUST, ways=HOST, severity=NOTE)
def tells_of_half_a_rename(fs: FilesystemGround) -> None:
    """A rename without a slot of its own says when it failed half-way.

    Otherwise: The host copies, then deletes: a failure between leaves both, and others see both.
    Remedy: Offer rename_file where the store can move a file in one step.
    Source: TensorFlow 2.21, observed
    """
    if fs.subject.has("rename_file"):
        raise Unsupported("the plugin renames by itself: nothing is done by copy and delete")
    directory, target = fs.make_full_dir("locked"), fs.path("halfway")
    with suppress(Unsupported), read_only(fs, directory):
        answer = fs.subject.rename_file(f"{directory}/file", target)
        expect(not answer.ok, "a rename that could not delete its source is OK")
        expect_content(fs, f"{directory}/file", CONTENT, "the content of the source")
    note("a rename is a copy and a deletion here, which others can see half done")
