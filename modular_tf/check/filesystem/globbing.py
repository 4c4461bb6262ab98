"""Checks of `get_matching_paths`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import RAW, Suite
from modular_tf.check.expectation import Unsupported, expect, expect_equal
from modular_tf.check.outcome import Pass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.check.filesystem.ground import FilesystemGround

suite = Suite("filesystem", "globbing", traits="writes", source="filesystem.h")

_GRAMMAR = {
    "x?": ["xa", "xb", "xc", "x*"],
    "x[ab]": ["xa", "xb"],
    "x[^a]": ["xb", "xc", "x*"],
    "x[a-c]": ["xa", "xb", "xc"],
    r"x\*": ["x*"],
}
"""Patterns, and what each finds of `xa`, `xb`, `xc`, `x*`, `xab` and `y`."""


def _expect_matches(fs: FilesystemGround, pattern: str, names: Iterable[str]) -> None:
    """Demand that a pattern below the root finds exactly these names."""
    found = fs.subject.get_matching_paths(fs.path(pattern)).must_be_ok()
    expected = sorted(fs.path(name) for name in names)
    # What is there twice is another check's.
    expect_equal(sorted(set(found)), expected, f"what get_matching_paths({pattern}) finds")


def _make_files(fs: FilesystemGround, *names: str) -> None:
    for name in names:
        fs.make_file(name)


@suite.check("FS-293", "get_matching_paths")
def finds_what_matches(fs: FilesystemGround) -> None:
    """get_matching_paths finds exactly the files that match, as URIs like the pattern.

    Otherwise: Datasets given as a pattern are incomplete, or cannot be opened.
    Remedy: Return scheme, host and path of each match; leave the slot NULL to let the host do it.
    """
    _make_files(fs, "a", "ab", "abc", "b", "ba")
    _expect_matches(fs, "a*", ["a", "ab", "abc"])


@suite.check("FS-294", "get_matching_paths")
def finds_nothing(fs: FilesystemGround) -> None:
    """A pattern that matches nothing is OK with 0 paths, in a missing directory too.

    Otherwise: A program that asks whether there are files gets an error instead of none.
    Remedy: Return 0 and set OK.
    """
    _expect_matches(fs, "*", [])
    fs.make_file()
    _expect_matches(fs, "n*", [])
    _expect_matches(fs, "X/*", [])


@suite.check("FS-295", "get_matching_paths")
def takes_a_path_as_it_is(fs: FilesystemGround) -> None:
    """A pattern without wildcards matches its own path where that exists, else nothing.

    Otherwise: A plain file name cannot stand where a pattern may.
    Remedy: Answer by path_exists; an empty pattern matches nothing.
    """
    fs.make_file()
    _expect_matches(fs, "F", ["F"])
    _expect_matches(fs, "X", [])
    found = fs.subject.get_matching_paths("").must_be_ok()
    expect_equal(list(found), [], "what the empty pattern finds")


@suite.check("FS-296", "get_matching_paths")
def keeps_to_the_grammar(fs: FilesystemGround) -> None:
    """`?`, `[ab]`, `[^a]`, `[a-c]` and a backslash mean what the header says.

    Otherwise: Patterns find too much or too little.
    Remedy: Follow the grammar in the header, as fnmatch(3) does with FNM_PATHNAME.
    """
    _make_files(fs, "xa", "xb", "xc", "x*", "xab", "y")
    for pattern, names in _GRAMMAR.items():
        _expect_matches(fs, pattern, names)


@suite.check("FS-297", "get_matching_paths")
def stays_within_a_level(fs: FilesystemGround) -> None:
    """A wildcard stays within one level, and a pattern matches whole names.

    Otherwise: Patterns find files of other directories, or names that only begin alike.
    Remedy: Match level by level, from the first letter of a name to its last.
    """
    for directory in ("a", "a/c", "ab", "a/c/d"):
        fs.make_dir(directory)
    _make_files(fs, "a/x", "ab/x", "a/c/x", "a/c/b1", "a/c/d/b2", "x")
    _expect_matches(fs, "*/x", ["a/x", "ab/x"])
    _expect_matches(fs, "a/*/b*", ["a/c/b1"])
    _expect_matches(fs, "a/*/b", [])


@suite.check("FS-298", "get_matching_paths")
def finds_what_exists(fs: FilesystemGround) -> None:
    """Every match exists, and none is there twice.

    Otherwise: Files are read twice, or opening a match fails.
    Remedy: Return paths as path_exists takes them, each once.
    """
    _make_files(fs, "m1", "m2")
    fs.make_full_dir("m3")
    answer = fs.subject.get_matching_paths(fs.path("m*"))
    found = sorted(answer.must_be_ok())
    expect_equal(found, sorted(set(found)), "the list of matches")
    for uri in found:
        fs.subject.path_exists(uri).must_be_ok()


@suite.check("FS-299", "get_matching_paths", ways=RAW)
def counts_what_is_there(fs: FilesystemGround) -> None:
    """A failing get_matching_paths returns -1 with an error; every path counted is set.

    Otherwise: TensorFlow reads entries that are not there.
    Remedy: Return -1 exactly where the status is not OK; fill every entry that is counted.
    """
    _make_files(fs, "c1", "c2", "c3")
    patterns = [fs.path("c*"), fs.path("c1/x*"), *_with_a_wild_host(fs)]
    for pattern in patterns:
        answer = fs.subject.get_matching_paths(pattern)
        fitting = answer.returned >= 0 if answer.ok else answer.returned == -1
        found = f"{answer.returned}, {code_found(answer)}"
        expect(
            fitting, f"the count of get_matching_paths({pattern}) contradicts its code", found=found
        )
        if answer.ok:
            expect_equal(len(answer.value), answer.returned, "the number of entries")
            expect(None not in answer.value, "an entry is NULL", found=repr(answer.value))


def _with_a_wild_host(fs: FilesystemGround) -> list[str]:
    """Return a pattern with wildcards where the host stands; none for plain paths."""
    scheme, separator, _ = fs.root.partition("://")
    return [f"{scheme}://*/x"] if separator else []


@suite.check("FS-300", "get_matching_paths", traits="")
def refuses_a_wild_host(fs: FilesystemGround) -> None:
    """A wildcard in front of the path is INVALID_ARGUMENT, and no crash.

    Otherwise: TensorFlow's own glob crashes on it.
    Remedy: Refuse wildcards in the host part of a URI.
    Source: design §9

    The host refuses it itself; a plugin may find nothing as well.
    """
    patterns = _with_a_wild_host(fs)
    if not patterns:
        raise Unsupported("plain paths have no host")
    answer = fs.subject.get_matching_paths(patterns[0])
    if fs.target.reached is Pass.HOST:
        answer.must_be(Code.INVALID_ARGUMENT)
    expect(
        not answer.ok or not answer.value,
        "get_matching_paths(s://*/x) finds something in hosts that it cannot know",
        expected="INVALID_ARGUMENT (3)",
        found=code_found(answer),
    )
