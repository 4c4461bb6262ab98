"""Checks of `rename_file` and `copy_file`."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import HOST, NOTE, ROBUST, WARNING, Suite
from modular_tf.check.expectation import Unsupported, advise, expect, expect_equal, note
from modular_tf.check.filesystem.local_store import file_size_limit, local_path, read_only
from modular_tf.check.filesystem.refusals import MISSING, REFUSED, TENSORFLOW, refusals
from modular_tf.check.filesystem.workspace import (
    CONTENT,
    expect_content,
    expect_directory,
    expect_missing,
)
from modular_tf.check.outcome import Pass

if TYPE_CHECKING:
    from modular_tf.check.filesystem.workspace import FilesystemWorkspace

renaming = Suite("filesystem", "renaming", traits="writes rename", source="filesystem.h")


def _expect_moved(fs: FilesystemWorkspace, source: str, target: str) -> None:
    fs.rename_file(source, target).must_be_ok()
    expect_missing(fs, source, "the renamed file still has its old name")
    expect_content(fs, target, CONTENT, "the content under the new name")


def _expect_unchanged(fs: FilesystemWorkspace, uri: str) -> None:
    expect_content(fs, uri, CONTENT, f"the content of {uri} after the refusal")


@renaming.check("FS-235", "rename_file")
def a_file_is_moved(fs: FilesystemWorkspace) -> None:
    """rename_file moves a file: the new name has its content, the old name does not exist.

    Otherwise: Programs that write beside and rename at the end lose their file, or keep two.
    Remedy: Give the file the new name, then report OK; never leave both.
    """
    _expect_moved(fs, fs.make_file(), fs.path("moved"))


@renaming.check("FS-236", "rename_file")
def renaming_replaces_a_file(fs: FilesystemWorkspace) -> None:
    """rename_file replaces a file that has the new name already.

    Otherwise: A checkpoint that is written anew over an old one fails, or stays the old one.
    Remedy: Replace the target as rename(2) does; do not answer ALREADY_EXISTS.
    """
    target = fs.make_file("replaced", b"something longer")
    _expect_moved(fs, fs.make_file(), target)


refusals(renaming, {
    "FS-237": ("rename_file(X, Y) without Y", MISSING, "writes rename",
        "A caller cannot tell a lost file from a moved one.",
        "Look for the source before the target is touched."),
    "FS-238": ("rename_file(F, X/y) keeps F", MISSING, "writes rename parents",
        "The file ends where no listing shows it, or is lost.",
        "Check the target's directory first; do not create it."),
})  # fmt: skip
refusals(renaming, {
    "FS-240": ("rename_file(F/x, Y), rename_file(G, F/x) keeps G", REFUSED,
        "writes rename file-as-directory"),
}, source=TENSORFLOW)  # fmt: skip


@renaming.check("FS-239", "rename_file", traits="writes rename directories")
def directories_are_not_renamed(fs: FilesystemWorkspace) -> None:
    """rename_file of a directory, or onto one, is FAILED_PRECONDITION, and both stay.

    Otherwise: A tree is moved or replaced where the caller spoke of one file.
    Remedy: Refuse a directory on either side with FAILED_PRECONDITION.
    Source: TensorFlow's test of filesystem plugins
    """
    directory, file, target = fs.make_dir(), fs.make_file(), fs.missing()
    fs.rename_file(directory, target).must_be(Code.FAILED_PRECONDITION)
    expect(fs.exists(directory), "the refused rename_file(D, X) lost D")
    expect_missing(fs, target, "the refused rename_file(D, X) left X")
    answer = fs.rename_file(file, directory)
    if answer.ok and _is_by_default(fs):  # a default copies into a directory
        expect_content(fs, f"{directory}/F", CONTENT, "D/F after rename_file(F, D)")
        return
    answer.must_be(Code.FAILED_PRECONDITION)
    expect_directory(fs, directory, "rename_file(F, D) replaced D")
    _expect_unchanged(fs, file)


def _is_by_default(fs: FilesystemWorkspace) -> bool:
    return fs.target.reached is Pass.HOST and not fs.has("rename_file")


@renaming.check("FS-241", "rename_file")
def renaming_to_itself_keeps_the_file(fs: FilesystemWorkspace) -> None:
    """rename_file of a file to its own name keeps its content, and should be OK.

    Otherwise: Copy and delete of one name loses the file.
    Remedy: Compare the two names first, and report OK where they are one file.
    Source: rename(2)
    """
    file = fs.make_file()
    answer = fs.rename_file(file, file)
    expect(fs.exists(file), "rename_file(F, F) lost the file")
    expect_content(fs, file, CONTENT, "the content after rename_file(F, F)")
    advise(
        answer.ok, "rename_file(F, F) is refused", expected="OK (0)", found=code_found(answer)
    )  # fmt: skip


@renaming.check("FS-242", "rename_file")
def a_file_moves_between_directories(fs: FilesystemWorkspace) -> None:
    """rename_file moves a file from one directory to another.

    Otherwise: Files that are written in a temporary directory cannot be put in their place.
    Remedy: Take the whole path of the target, not its last name.
    """
    source_dir, target_dir = fs.make_full_dir(), fs.make_full_dir("M")
    fs.make_file("N/F")
    _expect_moved(fs, f"{source_dir}/F", f"{target_dir}/arrived")


@renaming.check("FS-335", "rename_file")
def longer_names_are_left_alone(fs: FilesystemWorkspace) -> None:
    """Renaming a file moves no other file, however its name begins.

    Otherwise: Files that were not named disappear, or get another name.
    Remedy: Compare whole names: a listing by prefix has more than was asked for.
    Source: filesystem.h; published plugins, observed
    """
    beside = fs.make_file("one-more", b"beside")
    _expect_moved(fs, fs.make_file("one"), fs.path("Y"))
    expect_content(fs, beside, b"beside", "the content of one-more after rename_file(one, Y)")


@renaming.check("FS-243", level=ROBUST, ways=HOST, severity=NOTE)
def a_rename_by_copy_reports_its_failure(fs: FilesystemWorkspace) -> None:
    """A rename without a slot of its own says when it failed half-way.

    Otherwise: The host copies, then deletes: a failure between leaves both, and others see both.
    Remedy: Offer rename_file where the store can move a file in one step.
    Source: TensorFlow 2.21, observed
    """
    if fs.has("rename_file"):
        raise Unsupported("the plugin renames by itself: nothing is done by copy and delete")
    directory, target = fs.make_full_dir("locked"), fs.path("halfway")
    with suppress(Unsupported), read_only(fs, directory):
        answer = fs.rename_file(f"{directory}/file", target)
        expect(not answer.ok, "a rename that could not delete its source is OK")
        expect_content(fs, f"{directory}/file", CONTENT, "the content of the source")
    note("a rename is a copy and a deletion here, which others can see half done")


copying = Suite("filesystem", "copying", traits="writes", source="filesystem.h")

_LONG = 5 << 20  # longer than the buffers of all hosts and plugins that are known
_BEYOND_INT = (1 << 31) + 4096  # bytes; more than 32 bits with a sign can count
_LIMIT = 1 << 20  # bytes that a file may have while a copy is to fail


def _expect_copied(fs: FilesystemWorkspace, source: str, target: str, content: bytes) -> None:
    fs.copy_file(source, target).must_be_ok()
    expect_content(fs, target, content, "the content of the copy")
    expect_content(fs, source, content, "the content of the copied file")


@copying.check("FS-244", "copy_file")
def a_file_is_copied(fs: FilesystemWorkspace) -> None:
    """copy_file leaves two files with the same content.

    Otherwise: The copy is short, empty or something else, and the caller was told OK.
    Remedy: Copy until the source ends, close the target, then report OK.
    """
    _expect_copied(fs, fs.make_file(), fs.path("copied"), CONTENT)


@copying.check("FS-245", "copy_file")
def copying_replaces_a_longer_file(fs: FilesystemWorkspace) -> None:
    """copy_file replaces a longer target wholly: nothing of it stays behind the copy.

    Otherwise: The copy ends in bytes of another file.
    Remedy: Truncate the target, or write beside it and rename.
    """
    target = fs.make_file("longer", b"something longer than that")
    _expect_copied(fs, fs.make_file(), target, CONTENT)


refusals(copying, {
    "FS-246": ("copy_file(X, Y) without Y", MISSING, "writes",
        "An empty file appears that looks like a copy.",
        "Open the source before the target is created."),
    "FS-250": ("copy_file(F, X/y)", MISSING, "writes parents",
        "The copy ends where no listing shows it.",
        "Check the target's directory; do not create it."),
})  # fmt: skip
refusals(copying, {
    "FS-247": ("copy_file(D, X) without X", REFUSED, "writes directories",
        "A file appears that pretends to be the directory's copy.",
        "Refuse a directory as the source with FAILED_PRECONDITION."),
    "FS-249": ("copy_file(F/x, Y), copy_file(G, F/x)", REFUSED, "writes file-as-directory"),
}, source=TENSORFLOW)  # fmt: skip


@copying.check("FS-248", "copy_file", traits="writes directories")
def a_target_directory_stays(fs: FilesystemWorkspace) -> None:
    """copy_file onto a directory is FAILED_PRECONDITION, or copies into it.

    Otherwise: The directory is replaced, or the copy is somewhere unknown.
    Remedy: Refuse with FAILED_PRECONDITION; the header allows a copy below the source's name too.
    """
    file, directory = fs.make_file(), fs.make_dir()
    answer = fs.copy_file(file, directory)
    answer.must_be(Code.FAILED_PRECONDITION, Code.OK)
    expect_directory(fs, directory, "copy_file(F, D) replaced D")
    if not answer.ok:
        return
    copied = f"{directory}/F"
    expect(fs.exists(copied), "copy_file(F, D) is OK, and there is no D/F")
    expect_content(fs, copied, CONTENT, "the content of D/F after copy_file(F, D)")
    if fs.has("copy_file"):
        note("copy_file(F, D) copies into the directory; TensorFlow's test wants a refusal")


@copying.check("FS-251", "copy_file", traits="writes empty-files")
def an_empty_file_is_copied(fs: FilesystemWorkspace) -> None:
    """copy_file of an empty file makes an empty file.

    Otherwise: Empty markers such as _SUCCESS are lost.
    Remedy: Create the target even where there is nothing to write.
    """
    source, target = fs.make_empty_file(), fs.path("empty")
    fs.copy_file(source, target).must_be_ok()
    expect(fs.exists(target), "copy_file(E, X) is OK, and there is no X")
    expect_content(fs, target, b"", "the content of the copy")


@copying.check("FS-252", "copy_file")
def copying_onto_itself_keeps_the_file(fs: FilesystemWorkspace) -> None:
    """copy_file of a file onto itself keeps its content.

    Otherwise: Opening the target truncates the source: the file is lost, and the caller was told
    OK.
    Remedy: Compare the two names (or device and inode) before the target is opened.
    """
    file = fs.make_file()
    fs.copy_file(file, file)
    expect(fs.exists(file), "copy_file(F, F) lost the file")
    expect_content(fs, file, CONTENT, "the content after copy_file(F, F)")


@copying.check("FS-253", "copy_file")
def a_long_file_is_copied(fs: FilesystemWorkspace) -> None:
    """copy_file copies each byte of a file of several MiB.

    Otherwise: Data is lost at the borders of buffers.
    Remedy: Go on after a short read or write, at the offset that was reached.
    """
    length = fs.target.options.large_bytes or _LONG
    content = fs.random.randbytes(length)
    source, target = fs.make_file("long", content), fs.path("copied_long")
    fs.copy_file(source, target).must_be_ok()
    copied = fs.content(target)
    expect_equal(len(copied), length, "the length of the copy")
    found, expected = sha256(copied).hexdigest(), sha256(content).hexdigest()
    expect_equal(found, expected, "the SHA-256 digest of the copy")


@copying.check("FS-254", "copy_file", level=ROBUST, seconds=600)
def more_than_two_gigabytes_are_copied(fs: FilesystemWorkspace) -> None:
    """copy_file copies files of more than 2 GiB.

    Otherwise: A count kept in 32 bits overflows: the copy ends early or never.
    Remedy: Keep counts and offsets in 64 bits, and repeat sendfile until nothing is left.
    Source: TensorFlow 2.21, observed

    Only where the option `large_files` asks for it: true, or a length in bytes.
    """
    wished = fs.target.options.large_files
    if not wished:
        raise Unsupported("files of more than 2 GiB are tried with the option large_files only")
    length = _BEYOND_INT if wished is True else int(wished)
    source, target = _make_sparse(fs, length), fs.path("beyond")
    fs.copy_file(source, target).must_be_ok()
    expect_equal(fs.stat(target).value.length, length, "the length of the copy")


def _make_sparse(fs: FilesystemWorkspace, length: int) -> str:
    """Make a file of zeros: of holes on a local disk, of bytes elsewhere."""
    uri = fs.make_empty_file("sparse")
    path = local_path(fs, uri)
    if path is not None:
        os.truncate(path, length)
        return uri
    writer = fs.new_writable_file(uri).must_be_ok()
    block = bytes(min(length, 1 << 24))
    for offset in range(0, length, len(block)):
        writer.append(block[: length - offset]).must_be_ok()
    writer.close().must_be_ok()
    writer.cleanup()
    return uri


@copying.check("FS-255", "copy_file", level=ROBUST, severity=WARNING)
def a_failed_copy_keeps_its_target(fs: FilesystemWorkspace) -> None:
    """A copy_file that fails leaves the target as it was.

    Otherwise: A failed copy costs the caller the old file as well.
    Remedy: Write beside the target and rename, or open the source before truncating.
    """
    target = fs.make_file("kept")
    answer = fs.copy_file(fs.missing(), target)
    expect(not answer.ok, "copy_file(X, F) is OK")
    expect_content(fs, target, CONTENT, "the target's content after copy_file(X, F)")
    source = fs.make_file("long", bytes(2 * _LIMIT))
    if local_path(fs, source) is None:
        return
    with file_size_limit(_LIMIT):
        answer = fs.copy_file(source, target)
    by_default = fs.target.reached is Pass.HOST and not fs.has("copy_file")
    if answer.ok or (by_default and not fs.exists(target)):
        return  # the host's own copy deletes what it cannot complete
    expect_content(fs, target, CONTENT, "the target's content after a copy that failed")
