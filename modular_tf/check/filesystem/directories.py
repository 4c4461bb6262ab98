"""Checks of making directories, and of deleting files, directories and trees."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import RAW, ROBUST, WARNING, Suite
from modular_tf.check.expectation import Deviation, Unsupported, advise, expect, expect_equal
from modular_tf.check.filesystem.local_store import local_path, read_only
from modular_tf.check.filesystem.refusals import EXISTS, MISSING, REFUSED, refusals
from modular_tf.check.filesystem.workspace import (
    CONTENT,
    expect_content,
    expect_directory,
    expect_missing,
)
from modular_tf.check.under_load import at_once

if TYPE_CHECKING:
    from modular_tf.check.filesystem.workspace import FilesystemWorkspace

directories = Suite(
    "filesystem", "directories", traits="writes directories", source="filesystem.h, {slot}"
)

_THREADS = 8


@directories.check("FS-206", "create_dir")
def a_directory_is_made(fs: FilesystemWorkspace) -> None:
    """create_dir makes an empty directory.

    Otherwise: Nothing can be saved below a directory of its own.
    Remedy: Create the entry, so that stat and is_directory know it at once.
    """
    uri = fs.path("made")
    fs.create_dir(uri).must_be_ok()
    expect_directory(fs, uri, "create_dir(X) is OK, and X is no directory")
    if fs.offers("get_children"):
        children = fs.get_children(uri).must_be_ok()
        expect_equal(list(children or ()), [], "the children of a new directory")


refusals(directories, {
    "FS-207": ("create_dir(X/y) without X", MISSING, "writes directories parents",
        "Callers distinguish cases by the code: they take the wrong branch, or give up.",
        "Set TF_NOT_FOUND; making parents is what recursively_create_dir is for."),
    "FS-208": ("create_dir(D) keeps D", EXISTS, "writes directories",
        "Of several programs that make one directory each believes to be the first.",
        "Set TF_ALREADY_EXISTS."),
    "FS-209": ("create_dir(F) keeps F", EXISTS, "writes directories",
        "A file is lost, or hidden behind a directory.",
        "Set TF_ALREADY_EXISTS and change nothing."),
    "FS-210": ("create_dir(F/x)", REFUSED, "writes directories file-as-directory"),
})  # fmt: skip


def _filesystem_root(fs: FilesystemWorkspace) -> str:
    """Return the URI of the whole filesystem, where nothing is ever changed."""
    return f"{fs.target.scheme}:///" if fs.target.scheme else "/"


@directories.check("FS-211", "create_dir", severity=WARNING)
def the_root_already_exists(fs: FilesystemWorkspace) -> None:
    """create_dir of the filesystem's root is ALREADY_EXISTS.

    Otherwise: Programs that make their way down from the root fail at the first step.
    Remedy: Treat the root as a directory that is always there.
    """
    root = _filesystem_root(fs)
    fs.create_dir(root).must_be(Code.ALREADY_EXISTS)


@directories.check("FS-212", "recursively_create_dir")
def parents_are_made(fs: FilesystemWorkspace) -> None:
    """recursively_create_dir makes a directory with all of its parents.

    Otherwise: Saving into a new folder fails.
    Remedy: Make each level that is missing, or leave the slot NULL: the host does it.
    """
    _expect_made(fs, "a/b/c/d", "a", "a/b", "a/b/c", "a/b/c/d")


def _expect_made(fs: FilesystemWorkspace, name: str, *directories: str) -> None:
    fs.recursively_create_dir(fs.path(name)).must_be_ok()
    for directory in directories:
        message = f"recursively_create_dir({name}) is OK, and {directory} is no directory"
        expect_directory(fs, fs.path(directory), message)


@directories.check("FS-213", "recursively_create_dir")
def an_existing_directory_is_ok(fs: FilesystemWorkspace) -> None:
    """recursively_create_dir of a directory that is there is OK.

    Otherwise: A program that is started again fails where it saved before.
    Remedy: Never answer ALREADY_EXISTS for a directory.
    """
    fs.make_dir("present")
    _expect_made(fs, "present", "present")
    _expect_made(fs, "present/twice", "present/twice")
    _expect_made(fs, "present/twice", "present/twice")


@directories.check("FS-214", "recursively_create_dir")
def existing_parents_are_kept(fs: FilesystemWorkspace) -> None:
    """recursively_create_dir makes what is missing below parents that exist.

    Otherwise: Only the first of several folders can be made.
    Remedy: Take an existing parent for made.
    """
    fs.make_dir("base")
    fs.make_file("base/file")
    _expect_made(fs, "base/e/f", "base/e", "base/e/f")
    expect_content(fs, fs.path("base/file"), CONTENT, "the content of a file beside it")


refusals(directories, {
    "FS-215": ("recursively_create_dir(F) keeps F", REFUSED, "writes directories",
        "Callers take the file for a directory.",
        "Look at the kind of what is there, and set TF_FAILED_PRECONDITION."),
})  # fmt: skip


@directories.check(
    "FS-216", "recursively_create_dir", traits="writes directories file-as-directory"
)
def makes_nothing_below_a_file(fs: FilesystemWorkspace) -> None:
    """recursively_create_dir below a file is FAILED_PRECONDITION, and makes nothing.

    Otherwise: Callers distinguish cases by the code: they take the wrong branch, or give up.
    Remedy: Set TF_FAILED_PRECONDITION where a parent is a file.
    """
    directory = fs.make_full_dir()
    for uri in (fs.below_file(), f"{directory}/file/x/y"):
        fs.recursively_create_dir(uri).must_be(Code.FAILED_PRECONDITION)
    if fs.offers("get_children"):
        children = fs.get_children(directory).must_be_ok()
        expect_equal(children, ["file"], "the children of N after the refusal")


@directories.check("FS-217", "recursively_create_dir")
def missing_parents_are_never_not_found(fs: FilesystemWorkspace) -> None:
    """recursively_create_dir never says NOT_FOUND for missing parents.

    Otherwise: Making them is what it is called for.
    Remedy: Make missing parents, or leave the slot NULL.
    """
    for name in ("p/q", "r/s/t/u/v/w/x/z"):
        answer = fs.recursively_create_dir(fs.path(name))
        expect(
            answer.code != Code.NOT_FOUND,
            f"recursively_create_dir({name}) misses the parents that it is to make",
            expected="OK (0)",
            found=code_found(answer),
        )


@directories.check("FS-218", "recursively_create_dir")
def slashes_and_dots_are_normalised(fs: FilesystemWorkspace) -> None:
    """recursively_create_dir reads slashes at the end, doubled slashes and .. as paths do.

    Otherwise: Directories with empty names, or named .., appear.
    Remedy: Canonicalise the path first, in translate_name or here.
    """
    _expect_made(fs, "slash/", "slash")
    _expect_made(fs, "two//slashes", "two", "two/slashes")
    _expect_made(fs, "up/down/../aside", "up", "up/aside")
    for name in ("slash", "two"):
        _expect_children(fs, name)
    by_default = not fs.has("recursively_create_dir")  # as TensorFlow's does it
    advise(
        by_default or not fs.exists(fs.path("up/down")),
        "recursively_create_dir(up/down/../aside) also made up/down",
        expected="up and up/aside alone",
    )


def _expect_children(fs: FilesystemWorkspace, name: str) -> None:
    if not fs.offers("get_children"):
        return
    found = fs.get_children(fs.path(name)).must_be_ok()
    expected = {"slash": [], "two": ["slashes"]}[name]
    expect_equal(list(found or ()), expected, f"the children of {name}")


@directories.check("FS-219", "recursively_create_dir", level=ROBUST)
def threads_make_one_tree(fs: FilesystemWorkspace) -> None:
    """recursively_create_dir of one tree from several threads is OK.

    Otherwise: Of several workers that start at once all but one fail.
    Remedy: Accept a directory that another process has just made.
    """
    uri = fs.path("crowd/of/threads/makes/this")
    make = partial(fs.recursively_create_dir, uri)
    answers = at_once([make] * _THREADS)
    failed = [code_found(answer) for answer in answers if not answer.ok]
    if failed:
        message = f"{len(failed)} of {_THREADS} threads that make one tree fail"
        raise Deviation(message, expected="OK (0) for all", found=failed[0])
    expect_directory(fs, uri, "a tree that was made from many threads is not there")


@directories.check("FS-358", "recursively_create_dir", level=ROBUST)
def making_the_root_is_ok(fs: FilesystemWorkspace) -> None:
    """recursively_create_dir of the filesystem's root is OK.

    Otherwise: Programs that make their way down from the root fail at the first step.
    Remedy: Treat the root as a directory that is always there, also where no host is named.
    """
    root = _filesystem_root(fs)
    fs.recursively_create_dir(root).must_be_ok()


deletion = Suite("filesystem", "deletion", source="filesystem.h, {slot}")


@deletion.check("FS-220", "delete_file", traits="writes")
def a_file_is_deleted(fs: FilesystemWorkspace) -> None:
    """delete_file deletes the file; a second call is NOT_FOUND.

    Otherwise: Old checkpoints pile up, or are listed after they were deleted.
    Remedy: Delete the entry before OK, and forget what is cached of it.
    """
    uri = fs.make_file("deleted")
    fs.delete_file(uri).must_be_ok()
    expect_missing(fs, uri, "delete_file(F) is OK, and F is still there")
    fs.delete_file(uri).must_be(Code.NOT_FOUND)


refusals(deletion, {
    "FS-221": ("delete_file(X)", MISSING, "",
        "Callers distinguish cases by the code: they take the wrong branch, or give up.",
        "Look whether it is there where the store's delete does not say."),
    "FS-222": ("delete_file(D) keeps D", REFUSED, "writes directories",
        "A whole directory goes where one file was meant.",
        "Look at the kind of the entry, and set TF_FAILED_PRECONDITION."),
    "FS-223": ("delete_file(F/x) keeps F", REFUSED, "writes file-as-directory"),
})  # fmt: skip


@deletion.check("FS-224", "delete_dir", traits="writes directories")
def an_empty_directory_is_deleted(fs: FilesystemWorkspace) -> None:
    """delete_dir deletes an empty directory; a second call is NOT_FOUND.

    Otherwise: Empty directories cannot be got rid of.
    Remedy: Delete the entry before OK, and forget what is cached of it.
    """
    uri = fs.make_dir("deleted-dir")
    fs.delete_dir(uri).must_be_ok()
    expect_missing(fs, uri, "delete_dir(D) is OK, and D is still there")
    fs.delete_dir(uri).must_be(Code.NOT_FOUND)


refusals(deletion, {
    "FS-225": ("delete_dir(X)", MISSING, "directories"),
    "FS-226": ("delete_dir(N) keeps N/file", REFUSED, "writes",
        "Data is lost by a call that must never lose any.",
        "Look for children first, and set TF_FAILED_PRECONDITION where there is one."),
    "FS-227": ("delete_dir(F), delete_dir(F/x) keeps F", REFUSED, "writes file-as-directory",
        "A file goes where a directory was meant.",
        "Look at the kind of the entry and of its parents, and set TF_FAILED_PRECONDITION."),
})  # fmt: skip


def _delete_all(fs: FilesystemWorkspace, uri: str, what: str) -> None:
    """Demand that a deletion works, and that nothing is said to be left."""
    answer = fs.delete_recursively(uri)
    answer.must_be_ok()
    expect_equal(answer.value, (0, 0), f"what delete_recursively({what}) says is left")
    expect_missing(fs, uri, f"delete_recursively({what}) is OK, and it is still there")


_NAMES = ("plain", "with blank", ".hidden", "..twice", "naïve-日本", "a%20b", "-rf")


@deletion.check("FS-228", "delete_recursively", traits="writes")
def a_tree_is_deleted(fs: FilesystemWorkspace) -> None:
    """delete_recursively deletes a tree with names of all kinds, and nothing beside it.

    Otherwise: Trees are left in pieces, or neighbours go with them.
    Remedy: Delete files, then directories from the deepest up; or leave the slot NULL.
    """
    empty = fs.make_dir("empty")
    if fs.exists(empty):
        _delete_all(fs, empty, "D")
    fs.make_dir("home")
    fs.make_dir("home/TREE")
    beside = [fs.make_file(name) for name in ("home/tree-not", "home/TREE/plain")]
    for directory in ("home/tree", "home/tree/in ner", "home/tree/in ner/.low"):
        fs.make_dir(directory)
        for name in _NAMES:
            fs.make_file(f"{directory}/{name}")
    _delete_all(fs, fs.path("home/tree"), "a tree")
    for uri in beside:
        expect_content(fs, uri, CONTENT, "the content of a file beside a deleted tree")


def _expect_not_started(fs: FilesystemWorkspace, uri: str, what: str, code: Code) -> None:
    answer = fs.delete_recursively(uri)
    answer.must_be(code)
    expect_equal(answer.value, (0, 1), f"what delete_recursively({what}) says is left")


@deletion.check("FS-229", "delete_recursively", traits="directories")
def a_missing_tree_is_not_found(fs: FilesystemWorkspace) -> None:
    """delete_recursively of a missing name is NOT_FOUND, with 0 files and 1 directory left.

    Otherwise: Callers cannot tell that the walk did not start.
    Remedy: Set undeleted_files to 0 and undeleted_dirs to 1 where nothing can be walked.
    """
    _expect_not_started(fs, fs.missing(), "X", Code.NOT_FOUND)


@deletion.check("FS-230", "delete_recursively", traits="writes")
def a_file_is_deleted_as_a_tree(fs: FilesystemWorkspace) -> None:
    """delete_recursively of a file deletes it, with 0 and 0 left.

    Otherwise: rmtree of a path that happens to be a file fails.
    Remedy: Delete the file, or leave the slot NULL: the host does so.
    Source: TensorFlow 2.21, observed
    """
    _delete_all(fs, fs.make_file("alone"), "F")


@deletion.check("FS-231", "delete_recursively", traits="writes file-as-directory")
def a_tree_below_a_file_is_refused(fs: FilesystemWorkspace) -> None:
    """delete_recursively below a file is FAILED_PRECONDITION, with 0 files and 1 directory left.

    Otherwise: Callers distinguish cases by the code: they take the wrong branch, or give up.
    Remedy: Set TF_FAILED_PRECONDITION and the counters 0 and 1.
    """
    _expect_not_started(fs, fs.below_file(), "F/x", Code.FAILED_PRECONDITION)


@deletion.check(
    "FS-232",
    "delete_recursively",
    level=ROBUST,
    traits="writes directories permissions",
    severity=WARNING,
)
def deletion_continues_beside_what_stays(fs: FilesystemWorkspace) -> None:
    """delete_recursively skips what cannot be deleted, counts it and returns its code.

    Otherwise: One file keeps a whole tree from being deleted, and no message names it.
    Remedy: Note the first failure, count, go on with the siblings, and set its code at the end.
    """
    tree = fs.make_dir("stubborn")
    for directory in ("a", "kept", "z"):
        fs.make_full_dir(f"stubborn/{directory}")
    with read_only(fs, f"{tree}/kept"):
        answer = fs.delete_recursively(tree)
    answer.must_be(Code.PERMISSION_DENIED)
    files, directories = answer.value
    expect(
        files > 0 or directories > 0, "delete_recursively failed, and nothing is said to be left"
    )
    for directory in ("a", "z"):
        left = f"{tree}/{directory}/file"
        expect_missing(fs, left, "delete_recursively does not go on beside what stays")


@deletion.check("FS-233", "delete_recursively", ways=RAW, traits="writes directories")
def both_counters_are_set(fs: FilesystemWorkspace) -> None:
    """delete_recursively always writes both counters, and both are 0 with OK.

    Otherwise: TensorFlow shows stack garbage as the number of files left.
    Remedy: Set both counters first of all.
    """
    for uri in (
        fs.make_full_dir("counted"),
        fs.make_file("counted-file"),
        fs.path("uncounted"),
    ):
        answer = fs.delete_recursively(uri)
        unset = [count for count in answer.value if count == 2**64 - 1]
        expect(
            not unset,
            "delete_recursively leaves a counter as it was",
            expected="both counters set, whatever comes out",
            found=f"{len(unset)} of 2 not set, code {answer.code}",
        )
        if answer.ok:
            expect_equal(answer.value, (0, 0), "what a delete_recursively that is OK says is left")


@deletion.check(
    "FS-234",
    "delete_recursively",
    level=ROBUST,
    traits="writes directories local-disk",
    severity=WARNING,
)
def links_are_not_followed(fs: FilesystemWorkspace) -> None:
    """delete_recursively deletes a link, and nothing behind it.

    Otherwise: Data outside of the tree is lost.
    Remedy: Do not follow symbolic links: lstat, unlinkat. The default of TensorFlow follows them.
    """
    outside, tree = fs.make_full_dir("outside"), fs.make_full_dir("linked")
    behind, inside = local_path(fs, outside), local_path(fs, tree)
    if behind is None or inside is None:
        raise Unsupported("there are no links on this store")
    os.symlink(behind, f"{inside}/link")
    answer = fs.delete_recursively(tree)
    message = f"the content behind a link in a deleted tree (code {answer.code})"
    expect_content(fs, f"{outside}/file", CONTENT, message)
