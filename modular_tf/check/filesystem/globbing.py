"""Checks of `get_matching_paths`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found, expect_code, expect_ok
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.expectation import Unsupported, expect, expect_equal
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.check.filesystem.ground import FilesystemGround

CHECKS = CheckList("filesystem", "globbing")

_NEEDS = ("get_matching_paths",)
_WRITES = ("writes",)
_GRAMMAR = {
    "x?": ["xa", "xb", "xc", "x*"],
    "x[ab]": ["xa", "xb"],
    "x[^a]": ["xb", "xc", "x*"],
    "x[a-c]": ["xa", "xb", "xc"],
    r"x\*": ["x*"],
}
"""Patterns, and what each finds of `xa`, `xb`, `xc`, `x*`, `xab` and `y`."""


def _expect_matches(ground: FilesystemGround, pattern: str, names: Iterable[str]) -> None:
    """Demand that a pattern below the root finds exactly these names."""
    found = expect_ok(
        ground.subject.get_matching_paths(ground.path(pattern)), f"get_matching_paths({pattern})"
    )
    expected = sorted(ground.path(name) for name in names)
    # What is there twice is another check's.
    expect_equal(sorted(set(found)), expected, f"what get_matching_paths({pattern}) finds")


def _make_files(ground: FilesystemGround, *names: str) -> None:
    for name in names:
        ground.make_file(name)


@CHECKS.check("FS-293", Level.WORKS, needs=_NEEDS, traits=_WRITES, rows=(193,))
def finds_what_matches(ground: FilesystemGround) -> None:
    """Tried with `a*` beside a, ab, abc, b, ba."""
    _make_files(ground, "a", "ab", "abc", "b", "ba")
    _expect_matches(ground, "a*", ["a", "ab", "abc"])


@CHECKS.check("FS-294", Level.WORKS, needs=_NEEDS, traits=_WRITES, rows=(194,))
def finds_nothing(ground: FilesystemGround) -> None:
    """In an empty tree; beside files of other names; in a missing directory."""
    _expect_matches(ground, "*", [])
    ground.make_file()
    _expect_matches(ground, "n*", [])
    _expect_matches(ground, "X/*", [])


@CHECKS.check("FS-295", Level.WORKS, needs=_NEEDS, traits=_WRITES, rows=(195,))
def takes_a_path_as_it_is(ground: FilesystemGround) -> None:
    """Tried with a file, a missing name, and the empty pattern."""
    ground.make_file()
    _expect_matches(ground, "F", ["F"])
    _expect_matches(ground, "X", [])
    found = expect_ok(ground.subject.get_matching_paths(""), "get_matching_paths of nothing")
    expect_equal(list(found), [], "what the empty pattern finds")


@CHECKS.check("FS-296", Level.WORKS, needs=_NEEDS, traits=_WRITES, rows=(196,))
def keeps_to_the_grammar(ground: FilesystemGround) -> None:
    """Sets, ranges, negation, one character, escapes."""
    _make_files(ground, "xa", "xb", "xc", "x*", "xab", "y")
    for pattern, names in _GRAMMAR.items():
        _expect_matches(ground, pattern, names)


@CHECKS.check("FS-297", Level.WORKS, needs=_NEEDS, traits=_WRITES, rows=(197,))
def stays_within_a_level(ground: FilesystemGround) -> None:
    """`*/x`, `a/*/b*`, and whole names."""
    for directory in ("a", "a/c", "ab", "a/c/d"):
        ground.make_dir(directory)
    _make_files(ground, "a/x", "ab/x", "a/c/x", "a/c/b1", "a/c/d/b2", "x")
    _expect_matches(ground, "*/x", ["a/x", "ab/x"])
    _expect_matches(ground, "a/*/b*", ["a/c/b1"])
    _expect_matches(ground, "a/*/b", [])


@CHECKS.check("FS-298", Level.WORKS, needs=_NEEDS, traits=_WRITES, rows=(198,))
def finds_what_exists(ground: FilesystemGround) -> None:
    """Tried on files and a directory."""
    _make_files(ground, "m1", "m2")
    ground.make_full_dir("m3")
    answer = ground.subject.get_matching_paths(ground.path("m*"))
    found = sorted(expect_ok(answer, "get_matching_paths(m*)"))
    expect_equal(found, sorted(set(found)), "the list of matches")
    for uri in found:
        expect_code(ground.subject.path_exists(uri), f"path_exists of the match {uri!r}", Code.OK)


@CHECKS.check("FS-299", Level.WORKS, passes=RAW, needs=_NEEDS, traits=_WRITES, rows=(199,))
def counts_what_is_there(ground: FilesystemGround) -> None:
    """Three files; a pattern that may be refused."""
    _make_files(ground, "c1", "c2", "c3")
    patterns = [ground.path("c*"), ground.path("c1/x*"), *_with_a_wild_host(ground)]
    for pattern in patterns:
        answer = ground.subject.get_matching_paths(pattern)
        fitting = answer.returned >= 0 if answer.ok else answer.returned == -1
        found = f"{answer.returned}, {code_found(answer)}"
        expect(
            fitting, f"the count of get_matching_paths({pattern}) contradicts its code", found=found
        )
        if answer.ok:
            expect_equal(len(answer.value), answer.returned, "the number of entries")
            expect(None not in answer.value, "an entry is NULL", found=repr(answer.value))


def _with_a_wild_host(ground: FilesystemGround) -> list[str]:
    """Return a pattern with wildcards where the host stands; none for plain paths."""
    scheme, separator, _ = ground.root.partition("://")
    return [f"{scheme}://*/x"] if separator else []


@CHECKS.check("FS-300", Level.WORKS, needs=_NEEDS, rows=(200,))
def refuses_a_wild_host(ground: FilesystemGround) -> None:
    """`s://*/x`: the host refuses it; a plugin may find nothing as well."""
    patterns = _with_a_wild_host(ground)
    if not patterns:
        raise Unsupported("plain paths have no host")
    answer = ground.subject.get_matching_paths(patterns[0])
    if ground.target.reached is Pass.HOST:
        expect_code(answer, "get_matching_paths(s://*/x)", Code.INVALID_ARGUMENT)
    expect(
        not answer.ok or not answer.value,
        "get_matching_paths(s://*/x) finds something in hosts that it cannot know",
        expected="INVALID_ARGUMENT (3)",
        found=code_found(answer),
    )
