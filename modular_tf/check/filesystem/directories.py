"""Checks of making directories."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found, expect_code, expect_ok
from modular_tf.check.check import CheckList
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.expectation import Deviation, advise, expect, expect_equal
from modular_tf.check.filesystem.expected_state import (
    expect_content,
    expect_directory,
    expect_missing,
)
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

CHECKS = CheckList("filesystem", "directories")

_ONE = ("create_dir",)
_MANY = ("recursively_create_dir",)
_TRAITS = ("writes", "directories")
_FILES = (*_TRAITS, "file-as-directory")
_THREADS = 8


@CHECKS.check("FS-206", Level.WORKS, needs=_ONE, traits=_TRAITS, rows=(106,))
def makes_a_directory(ground: FilesystemGround) -> None:
    """Tried on a name that does not exist."""
    uri = ground.path("made")
    expect_ok(ground.subject.create_dir(uri), "create_dir(X)")
    expect_directory(ground, uri, "create_dir(X) is OK, and X is no directory")
    if ground.subject.offers("get_children"):
        children = expect_ok(ground.subject.get_children(uri), "get_children(X)")
        expect_equal(list(children or ()), [], "the children of a new directory")


@CHECKS.check("FS-207", Level.WORKS, needs=_ONE, traits=(*_TRAITS, "parents"), rows=(107,))
def makes_no_parents(ground: FilesystemGround) -> None:
    """Tried on a name in a directory that does not exist."""
    expect_code(
        ground.subject.create_dir(ground.below_missing()), "create_dir(X/y)", Code.NOT_FOUND
    )
    expect_missing(ground, ground.missing(), "the refused create_dir(X/y) made X")


@CHECKS.check("FS-208", Level.WORKS, needs=_ONE, traits=_TRAITS, rows=(108,))
def tells_of_a_directory(ground: FilesystemGround) -> None:
    """Tried on an empty directory."""
    uri = ground.make_dir()
    expect_code(ground.subject.create_dir(uri), "create_dir(D)", Code.ALREADY_EXISTS)
    expect_directory(ground, uri, "D is no directory after create_dir(D)")


@CHECKS.check("FS-209", Level.WORKS, needs=_ONE, traits=_TRAITS, rows=(109,))
def tells_of_a_file(ground: FilesystemGround) -> None:
    """Tried on a file."""
    uri = ground.make_file()
    expect_code(ground.subject.create_dir(uri), "create_dir(F)", Code.ALREADY_EXISTS)
    expect_content(ground, uri, CONTENT, "the content of F after create_dir(F)")


@CHECKS.check("FS-210", Level.WORKS, needs=_ONE, traits=_FILES, rows=(110,))
def refuses_a_name_below_a_file(ground: FilesystemGround) -> None:
    """Tried on a name below a file."""
    answer = ground.subject.create_dir(ground.below_file())
    expect_code(answer, "create_dir(F/x)", Code.FAILED_PRECONDITION)


def _filesystem_root(ground: FilesystemGround) -> str:
    """Return the URI of the whole filesystem, where nothing is ever changed."""
    return f"{ground.target.scheme}:///" if ground.target.scheme else "/"


@CHECKS.check("FS-211", Level.WORKS, needs=_ONE, traits=_TRAITS, rows=(111,))
def tells_of_the_root(ground: FilesystemGround) -> None:
    """Tried on the filesystem's root."""
    root = _filesystem_root(ground)
    expect_code(ground.subject.create_dir(root), f"create_dir({root})", Code.ALREADY_EXISTS)


@CHECKS.check("FS-212", Level.WORKS, needs=_MANY, traits=_TRAITS, rows=(112,))
def makes_parents(ground: FilesystemGround) -> None:
    """Tried with four missing levels."""
    _expect_made(ground, "a/b/c/d", "a", "a/b", "a/b/c", "a/b/c/d")


def _expect_made(ground: FilesystemGround, name: str, *directories: str) -> None:
    answer = ground.subject.recursively_create_dir(ground.path(name))
    expect_ok(answer, f"recursively_create_dir({name})")
    for directory in directories:
        message = f"recursively_create_dir({name}) is OK, and {directory} is no directory"
        expect_directory(ground, ground.path(directory), message)


@CHECKS.check("FS-213", Level.WORKS, needs=_MANY, traits=_TRAITS, rows=(113,))
def accepts_a_directory(ground: FilesystemGround) -> None:
    """Tried on a directory, then twice on a tree."""
    ground.make_dir("present")
    _expect_made(ground, "present", "present")
    _expect_made(ground, "present/twice", "present/twice")
    _expect_made(ground, "present/twice", "present/twice")


@CHECKS.check("FS-214", Level.WORKS, needs=_MANY, traits=_TRAITS, rows=(114,))
def goes_on_below_a_directory(ground: FilesystemGround) -> None:
    """Tried two levels below a directory with a file in it, which must stay."""
    ground.make_dir("base")
    ground.make_file("base/file")
    _expect_made(ground, "base/e/f", "base/e", "base/e/f")
    expect_content(ground, ground.path("base/file"), CONTENT, "the content of a file beside it")


@CHECKS.check("FS-215", Level.WORKS, needs=_MANY, traits=_TRAITS, rows=(115,))
def takes_no_file_for_a_directory(ground: FilesystemGround) -> None:
    """Tried on a file."""
    uri = ground.make_file("plain")
    answer = ground.subject.recursively_create_dir(uri)
    expect_code(answer, "recursively_create_dir(F)", Code.FAILED_PRECONDITION)
    expect_content(ground, uri, CONTENT, "the content of F after recursively_create_dir(F)")


@CHECKS.check("FS-216", Level.WORKS, needs=_MANY, traits=_FILES, rows=(116,))
def makes_nothing_below_a_file(ground: FilesystemGround) -> None:
    """Tried one level below a file, and three levels below another."""
    directory = ground.make_full_dir()
    for uri, what in ((ground.below_file(), "F/x"), (f"{directory}/file/x/y", "N/file/x/y")):
        answer = ground.subject.recursively_create_dir(uri)
        expect_code(answer, f"recursively_create_dir({what})", Code.FAILED_PRECONDITION)
    if ground.subject.offers("get_children"):
        children = expect_ok(ground.subject.get_children(directory), "get_children(N)")
        expect_equal(children, ["file"], "the children of N after the refusal")


@CHECKS.check("FS-217", Level.WORKS, needs=_MANY, traits=_TRAITS, rows=(117,))
def misses_no_parents(ground: FilesystemGround) -> None:
    """One level that is missing, and seven."""
    for name in ("p/q", "r/s/t/u/v/w/x/z"):
        answer = ground.subject.recursively_create_dir(ground.path(name))
        expect(
            answer.code != Code.NOT_FOUND,
            f"recursively_create_dir({name}) misses the parents that it is to make",
            expected="OK (0)",
            found=code_found(answer),
        )


@CHECKS.check("FS-218", Level.WORKS, needs=_MANY, traits=_TRAITS, rows=(118,))
def reads_paths_as_paths(ground: FilesystemGround) -> None:
    """A slash at the end, two slashes, and .. behind a name that is not there."""
    _expect_made(ground, "slash/", "slash")
    _expect_made(ground, "two//slashes", "two", "two/slashes")
    _expect_made(ground, "up/down/../aside", "up", "up/aside")
    for name in ("slash", "two"):
        _expect_children(ground, name)
    by_default = not ground.subject.has("recursively_create_dir")  # as TensorFlow's does it
    advise(
        by_default or not ground.exists(ground.path("up/down")),
        "recursively_create_dir(up/down/../aside) also made up/down",
        expected="up and up/aside alone",
    )


def _expect_children(ground: FilesystemGround, name: str) -> None:
    if not ground.subject.offers("get_children"):
        return
    found = expect_ok(ground.subject.get_children(ground.path(name)), f"get_children({name})")
    expected = {"slash": [], "two": ["slashes"]}[name]
    expect_equal(list(found or ()), expected, f"the children of {name}")


@CHECKS.check("FS-219", Level.ROBUST, needs=_MANY, traits=_TRAITS, rows=(119,))
def makes_one_tree_from_many_threads(ground: FilesystemGround) -> None:
    """Eight threads that make one tree at once."""
    uri = ground.path("crowd/of/threads/makes/this")
    make = partial(ground.subject.recursively_create_dir, uri)
    answers = run_at_once([make] * _THREADS)
    failed = [code_found(answer) for answer in answers if not answer.ok]
    if failed:
        message = f"{len(failed)} of {_THREADS} threads that make one tree fail"
        raise Deviation(message, expected="OK (0) for all", found=failed[0])
    expect_directory(ground, uri, "a tree that was made from many threads is not there")


@CHECKS.check("FS-358", Level.ROBUST, needs=_MANY, traits=_TRAITS, rows=(119,))
def makes_nothing_of_the_root(ground: FilesystemGround) -> None:
    """Tried on the filesystem's root."""
    root = _filesystem_root(ground)
    expect_ok(ground.subject.recursively_create_dir(root), f"recursively_create_dir({root})")
