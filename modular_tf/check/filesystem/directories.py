"""Checks of making directories."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import ROBUST, WARNING, Suite
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.expectation import Deviation, advise, expect, expect_equal
from modular_tf.check.filesystem.expected_state import (
    expect_content,
    expect_directory,
    expect_missing,
)
from modular_tf.check.filesystem.ground import CONTENT

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

suite = Suite(
    "filesystem", "directories", traits="writes directories", source="filesystem.h, {slot}"
)

_THREADS = 8


@suite.check("FS-206", "create_dir")
def makes_a_directory(fs: FilesystemGround) -> None:
    """create_dir makes an empty directory.

    Otherwise: Nothing can be saved below a directory of its own.
    Remedy: Create the entry, so that stat and is_directory know it at once.
    """
    uri = fs.path("made")
    fs.subject.create_dir(uri).must_be_ok()
    expect_directory(fs, uri, "create_dir(X) is OK, and X is no directory")
    if fs.subject.offers("get_children"):
        children = fs.subject.get_children(uri).must_be_ok()
        expect_equal(list(children or ()), [], "the children of a new directory")


@suite.check("FS-207", "create_dir", traits="writes directories parents")
def makes_no_parents(fs: FilesystemGround) -> None:
    """create_dir in a missing directory is NOT_FOUND, and makes no parent.

    Otherwise: Callers tell cases apart by the code: they take the wrong branch, or give up.
    Remedy: Set TF_NOT_FOUND; making parents is what recursively_create_dir is for.
    """
    fs.subject.create_dir(fs.below_missing()).must_be(Code.NOT_FOUND)
    expect_missing(fs, fs.missing(), "the refused create_dir(X/y) made X")


@suite.check("FS-208", "create_dir")
def tells_of_a_directory(fs: FilesystemGround) -> None:
    """create_dir of a directory that is there is ALREADY_EXISTS.

    Otherwise: Of several programs that make one directory each believes to be the first.
    Remedy: Set TF_ALREADY_EXISTS.
    """
    uri = fs.make_dir()
    fs.subject.create_dir(uri).must_be(Code.ALREADY_EXISTS)
    expect_directory(fs, uri, "D is no directory after create_dir(D)")


@suite.check("FS-209", "create_dir")
def tells_of_a_file(fs: FilesystemGround) -> None:
    """create_dir of a name that is a file is ALREADY_EXISTS, and the file stays.

    Otherwise: A file is lost, or hidden behind a directory.
    Remedy: Set TF_ALREADY_EXISTS and change nothing.
    """
    uri = fs.make_file()
    fs.subject.create_dir(uri).must_be(Code.ALREADY_EXISTS)
    expect_content(fs, uri, CONTENT, "the content of F after create_dir(F)")


@suite.check("FS-210", "create_dir", traits="writes directories file-as-directory")
def refuses_a_name_below_a_file(fs: FilesystemGround) -> None:
    """create_dir below a file is FAILED_PRECONDITION.

    Otherwise: Callers tell cases apart by the code: they take the wrong branch, or give up.
    Remedy: Set TF_FAILED_PRECONDITION where a parent is a file.
    """
    fs.subject.create_dir(fs.below_file()).must_be(Code.FAILED_PRECONDITION)


def _filesystem_root(fs: FilesystemGround) -> str:
    """Return the URI of the whole filesystem, where nothing is ever changed."""
    return f"{fs.target.scheme}:///" if fs.target.scheme else "/"


@suite.check("FS-211", "create_dir", severity=WARNING)
def tells_of_the_root(fs: FilesystemGround) -> None:
    """create_dir of the filesystem's root is ALREADY_EXISTS.

    Otherwise: Programs that make their way down from the root fail at the first step.
    Remedy: Treat the root as a directory that is always there.
    """
    root = _filesystem_root(fs)
    fs.subject.create_dir(root).must_be(Code.ALREADY_EXISTS)


@suite.check("FS-212", "recursively_create_dir")
def makes_parents(fs: FilesystemGround) -> None:
    """recursively_create_dir makes a directory with all of its parents.

    Otherwise: Saving into a new folder fails.
    Remedy: Make each level that is missing, or leave the slot NULL: the host does it.
    """
    _expect_made(fs, "a/b/c/d", "a", "a/b", "a/b/c", "a/b/c/d")


def _expect_made(fs: FilesystemGround, name: str, *directories: str) -> None:
    fs.subject.recursively_create_dir(fs.path(name)).must_be_ok()
    for directory in directories:
        message = f"recursively_create_dir({name}) is OK, and {directory} is no directory"
        expect_directory(fs, fs.path(directory), message)


@suite.check("FS-213", "recursively_create_dir")
def accepts_a_directory(fs: FilesystemGround) -> None:
    """recursively_create_dir of a directory that is there is OK.

    Otherwise: A program that is started again fails where it saved before.
    Remedy: Never answer ALREADY_EXISTS for a directory.
    """
    fs.make_dir("present")
    _expect_made(fs, "present", "present")
    _expect_made(fs, "present/twice", "present/twice")
    _expect_made(fs, "present/twice", "present/twice")


@suite.check("FS-214", "recursively_create_dir")
def goes_on_below_a_directory(fs: FilesystemGround) -> None:
    """recursively_create_dir makes what is missing below parents that exist.

    Otherwise: Only the first of several folders can be made.
    Remedy: Take an existing parent for made.
    """
    fs.make_dir("base")
    fs.make_file("base/file")
    _expect_made(fs, "base/e/f", "base/e", "base/e/f")
    expect_content(fs, fs.path("base/file"), CONTENT, "the content of a file beside it")


@suite.check("FS-215", "recursively_create_dir")
def takes_no_file_for_a_directory(fs: FilesystemGround) -> None:
    """recursively_create_dir of a name that is a file is FAILED_PRECONDITION.

    Otherwise: Callers take the file for a directory.
    Remedy: Look at the kind of what is there, and set TF_FAILED_PRECONDITION.
    """
    uri = fs.make_file("plain")
    fs.subject.recursively_create_dir(uri).must_be(Code.FAILED_PRECONDITION)
    expect_content(fs, uri, CONTENT, "the content of F after recursively_create_dir(F)")


@suite.check("FS-216", "recursively_create_dir", traits="writes directories file-as-directory")
def makes_nothing_below_a_file(fs: FilesystemGround) -> None:
    """recursively_create_dir below a file is FAILED_PRECONDITION, and makes nothing.

    Otherwise: Callers tell cases apart by the code: they take the wrong branch, or give up.
    Remedy: Set TF_FAILED_PRECONDITION where a parent is a file.
    """
    directory = fs.make_full_dir()
    for uri in (fs.below_file(), f"{directory}/file/x/y"):
        fs.subject.recursively_create_dir(uri).must_be(Code.FAILED_PRECONDITION)
    if fs.subject.offers("get_children"):
        children = fs.subject.get_children(directory).must_be_ok()
        expect_equal(children, ["file"], "the children of N after the refusal")


@suite.check("FS-217", "recursively_create_dir")
def misses_no_parents(fs: FilesystemGround) -> None:
    """recursively_create_dir never says NOT_FOUND for missing parents.

    Otherwise: Making them is what it is called for.
    Remedy: Make missing parents, or leave the slot NULL.
    """
    for name in ("p/q", "r/s/t/u/v/w/x/z"):
        answer = fs.subject.recursively_create_dir(fs.path(name))
        expect(
            answer.code != Code.NOT_FOUND,
            f"recursively_create_dir({name}) misses the parents that it is to make",
            expected="OK (0)",
            found=code_found(answer),
        )


@suite.check("FS-218", "recursively_create_dir")
def reads_paths_as_paths(fs: FilesystemGround) -> None:
    """recursively_create_dir reads slashes at the end, doubled slashes and .. as paths do.

    Otherwise: Directories with empty names, or named .., appear.
    Remedy: Canonicalise the path first, in translate_name or here.
    """
    _expect_made(fs, "slash/", "slash")
    _expect_made(fs, "two//slashes", "two", "two/slashes")
    _expect_made(fs, "up/down/../aside", "up", "up/aside")
    for name in ("slash", "two"):
        _expect_children(fs, name)
    by_default = not fs.subject.has("recursively_create_dir")  # as TensorFlow's does it
    advise(
        by_default or not fs.exists(fs.path("up/down")),
        "recursively_create_dir(up/down/../aside) also made up/down",
        expected="up and up/aside alone",
    )


def _expect_children(fs: FilesystemGround, name: str) -> None:
    if not fs.subject.offers("get_children"):
        return
    found = fs.subject.get_children(fs.path(name)).must_be_ok()
    expected = {"slash": [], "two": ["slashes"]}[name]
    expect_equal(list(found or ()), expected, f"the children of {name}")


@suite.check("FS-219", "recursively_create_dir", level=ROBUST)
def makes_one_tree_from_many_threads(fs: FilesystemGround) -> None:
    """recursively_create_dir of one tree from several threads is OK.

    Otherwise: Of several workers that start at once all but one fail.
    Remedy: Accept a directory that another process has just made.
    """
    uri = fs.path("crowd/of/threads/makes/this")
    make = partial(fs.subject.recursively_create_dir, uri)
    answers = run_at_once([make] * _THREADS)
    failed = [code_found(answer) for answer in answers if not answer.ok]
    if failed:
        message = f"{len(failed)} of {_THREADS} threads that make one tree fail"
        raise Deviation(message, expected="OK (0) for all", found=failed[0])
    expect_directory(fs, uri, "a tree that was made from many threads is not there")


@suite.check("FS-358", "recursively_create_dir", level=ROBUST)
def makes_nothing_of_the_root(fs: FilesystemGround) -> None:
    """recursively_create_dir of the filesystem's root is OK.

    Otherwise: Programs that make their way down from the root fail at the first step.
    Remedy: Treat the root as a directory that is always there, also where no host is named.
    """
    root = _filesystem_root(fs)
    fs.subject.recursively_create_dir(root).must_be_ok()
