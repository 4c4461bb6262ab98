"""Checks of deleting files, directories and trees."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import expect_code, expect_ok
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.expectation import Unsupported, expect, expect_equal
from modular_tf.check.filesystem.access_rights import read_only
from modular_tf.check.filesystem.expected_state import (
    expect_content,
    expect_directory,
    expect_missing,
)
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.filesystem.local_disk import local_path
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

CHECKS = CheckList("filesystem", "deletion")

_FILE = ("delete_file",)
_DIRECTORY = ("delete_dir",)
_TREE = ("delete_recursively",)
_WRITES = ("writes",)
_DIRECTORIES = ("writes", "directories")
_BELOW = ("writes", "file-as-directory")


@CHECKS.check("FS-220", Level.WORKS, needs=_FILE, traits=_WRITES, rows=(120,))
def deletes_a_file(ground: FilesystemGround) -> None:
    """Tried twice on a file."""
    uri = ground.make_file("deleted")
    expect_ok(ground.subject.delete_file(uri), "delete_file(F)")
    expect_missing(ground, uri, "delete_file(F) is OK, and F is still there")
    expect_code(ground.subject.delete_file(uri), "delete_file(F), again", Code.NOT_FOUND)


@CHECKS.check("FS-221", Level.WORKS, needs=_FILE, rows=(121,))
def misses_a_missing_file(ground: FilesystemGround) -> None:
    """Tried on a name that does not exist."""
    expect_code(ground.subject.delete_file(ground.missing()), "delete_file(X)", Code.NOT_FOUND)


@CHECKS.check("FS-222", Level.WORKS, needs=_FILE, traits=_DIRECTORIES, rows=(122,))
def takes_no_directory_for_a_file(ground: FilesystemGround) -> None:
    """Tried on an empty directory."""
    uri = ground.make_dir()
    expect_code(ground.subject.delete_file(uri), "delete_file(D)", Code.FAILED_PRECONDITION)
    expect_directory(ground, uri, "the refused delete_file(D) lost D")


@CHECKS.check("FS-223", Level.WORKS, needs=_FILE, traits=_BELOW, rows=(123,))
def deletes_nothing_below_a_file(ground: FilesystemGround) -> None:
    """Tried on a name below a file."""
    answer = ground.subject.delete_file(ground.below_file())
    expect_code(answer, "delete_file(F/x)", Code.FAILED_PRECONDITION)
    expect_content(ground, ground.path("F"), CONTENT, "the content of F after delete_file(F/x)")


@CHECKS.check("FS-224", Level.WORKS, needs=_DIRECTORY, traits=_DIRECTORIES, rows=(124,))
def deletes_an_empty_directory(ground: FilesystemGround) -> None:
    """Tried twice on a directory."""
    uri = ground.make_dir("deleted-dir")
    expect_ok(ground.subject.delete_dir(uri), "delete_dir(D)")
    expect_missing(ground, uri, "delete_dir(D) is OK, and D is still there")
    expect_code(ground.subject.delete_dir(uri), "delete_dir(D), again", Code.NOT_FOUND)


@CHECKS.check("FS-225", Level.WORKS, needs=_DIRECTORY, traits=("directories",), rows=(125,))
def misses_a_missing_directory(ground: FilesystemGround) -> None:
    """Tried on a name that does not exist."""
    expect_code(ground.subject.delete_dir(ground.missing()), "delete_dir(X)", Code.NOT_FOUND)


@CHECKS.check("FS-226", Level.WORKS, needs=_DIRECTORY, traits=_WRITES, rows=(126,))
def keeps_a_full_directory(ground: FilesystemGround) -> None:
    """Tried on a directory with a file."""
    uri = ground.make_full_dir()
    expect_code(ground.subject.delete_dir(uri), "delete_dir(N)", Code.FAILED_PRECONDITION)
    expect_content(ground, f"{uri}/file", CONTENT, "the content of N/file after delete_dir(N)")


@CHECKS.check("FS-227", Level.WORKS, needs=_DIRECTORY, traits=_BELOW, rows=(127,))
def takes_no_file_for_a_directory(ground: FilesystemGround) -> None:
    """Tried on a file, and on a name below a file."""
    below, file = ground.below_file(), ground.path("F")
    expect_code(ground.subject.delete_dir(file), "delete_dir(F)", Code.FAILED_PRECONDITION)
    expect_code(ground.subject.delete_dir(below), "delete_dir(F/x)", Code.FAILED_PRECONDITION)
    expect_content(ground, file, CONTENT, "the content of F after delete_dir")


def _delete_all(ground: FilesystemGround, uri: str, what: str) -> None:
    """Demand that a deletion works, and that nothing is said to be left."""
    answer = ground.subject.delete_recursively(uri)
    expect_ok(answer, f"delete_recursively({what})")
    expect_equal(answer.value, (0, 0), f"what delete_recursively({what}) says is left")
    expect_missing(ground, uri, f"delete_recursively({what}) is OK, and it is still there")


_NAMES = ("plain", "with blank", ".hidden", "..twice", "naïve-日本", "a%20b", "-rf")


@CHECKS.check("FS-228", Level.WORKS, needs=_TREE, traits=_WRITES, rows=(128,))
def deletes_a_tree(ground: FilesystemGround) -> None:
    """Tried on an empty directory, and on three levels beside a file of a similar name."""
    empty = ground.make_dir("empty")
    if ground.exists(empty):
        _delete_all(ground, empty, "D")
    ground.make_dir("home")
    beside = ground.make_file("home/tree-not")
    for directory in ("home/tree", "home/tree/in ner", "home/tree/in ner/.low"):
        ground.make_dir(directory)
        for name in _NAMES:
            ground.make_file(f"{directory}/{name}")
    _delete_all(ground, ground.path("home/tree"), "a tree")
    expect_content(ground, beside, CONTENT, "the content of a file beside a deleted tree")


def _expect_not_started(ground: FilesystemGround, uri: str, what: str, code: Code) -> None:
    answer = ground.subject.delete_recursively(uri)
    expect_code(answer, f"delete_recursively({what})", code)
    expect_equal(answer.value, (0, 1), f"what delete_recursively({what}) says is left")


@CHECKS.check("FS-229", Level.WORKS, needs=_TREE, traits=("directories",), rows=(129,))
def misses_a_missing_tree(ground: FilesystemGround) -> None:
    """Tried on a name that does not exist."""
    _expect_not_started(ground, ground.missing(), "X", Code.NOT_FOUND)


@CHECKS.check("FS-230", Level.WORKS, needs=_TREE, traits=_WRITES, rows=(130,))
def deletes_a_file_as_a_tree(ground: FilesystemGround) -> None:
    """Tried on a file."""
    _delete_all(ground, ground.make_file("alone"), "F")


@CHECKS.check("FS-231", Level.WORKS, needs=_TREE, traits=_BELOW, rows=(131,))
def starts_nothing_below_a_file(ground: FilesystemGround) -> None:
    """Tried on a name below a file."""
    _expect_not_started(ground, ground.below_file(), "F/x", Code.FAILED_PRECONDITION)


@CHECKS.check(
    "FS-232",
    Level.ROBUST,
    needs=_TREE,
    traits=("writes", "directories", "permissions"),
    rows=(132,),
)
def goes_on_beside_what_stays(ground: FilesystemGround) -> None:
    """A tree with one directory that nothing can be taken from."""
    tree = ground.make_dir("stubborn")
    for directory in ("a", "kept", "z"):
        ground.make_full_dir(f"stubborn/{directory}")
    with read_only(ground, f"{tree}/kept"):
        answer = ground.subject.delete_recursively(tree)
    expect_code(answer, "delete_recursively without rights", Code.PERMISSION_DENIED)
    files, directories = answer.value
    expect(
        files > 0 or directories > 0, "delete_recursively failed, and nothing is said to be left"
    )
    for directory in ("a", "z"):
        left = f"{tree}/{directory}/file"
        expect_missing(ground, left, "delete_recursively does not go on beside what stays")


@CHECKS.check("FS-233", Level.WORKS, passes=RAW, needs=_TREE, traits=_DIRECTORIES, rows=(133,))
def always_counts(ground: FilesystemGround) -> None:
    """Counters that hold nonsense before, for a tree, a file and nothing."""
    for uri in (
        ground.make_full_dir("counted"),
        ground.make_file("counted-file"),
        ground.path("uncounted"),
    ):
        answer = ground.subject.delete_recursively(uri)
        unset = [count for count in answer.value if count == 2**64 - 1]
        expect(
            not unset,
            "delete_recursively leaves a counter as it was",
            expected="both counters set, whatever comes out",
            found=f"{len(unset)} of 2 not set, code {answer.code}",
        )
        if answer.ok:
            expect_equal(answer.value, (0, 0), "what a delete_recursively that is OK says is left")


@CHECKS.check(
    "FS-234", Level.ROBUST, needs=_TREE, traits=("writes", "directories", "local-disk"), rows=(134,)
)
def follows_no_link(ground: FilesystemGround) -> None:
    """A tree with a link to a directory outside."""
    outside, tree = ground.make_full_dir("outside"), ground.make_full_dir("linked")
    behind, inside = local_path(ground, outside), local_path(ground, tree)
    if behind is None or inside is None:
        raise Unsupported("there are no links on this store")
    os.symlink(behind, f"{inside}/link")
    answer = ground.subject.delete_recursively(tree)
    message = f"the content behind a link in a deleted tree (code {answer.code})"
    expect_content(ground, f"{outside}/file", CONTENT, message)
