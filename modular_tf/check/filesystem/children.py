"""Checks of `get_children`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import expect_code, expect_ok
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.expectation import Deviation, Unsupported, advise, expect, expect_equal
from modular_tf.check.level import Level
from modular_tf.check.repetition import expect_no_leak, rounds_of

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

CHECKS = CheckList("filesystem", "children")

_NEEDS = ("get_children",)
_WRITES = ("writes",)
_ENTRIES = 5000
_THREADS = 8
_CALLS = 50  # of each thread
_STRANGE = (".hidden", "...", "two words", "grüße", "数据", "100%", "a+b", "a#b", "star*", "[set]?")
"""Names that a plugin might escape, quote, decode or drop."""


def _children(ground: FilesystemGround, uri: str) -> list[str]:
    names = expect_ok(ground.subject.get_children(uri), f"get_children({uri})")
    if names is None:
        raise Deviation("get_children is OK and returned a negative count")
    return list(names)


def _make_family(ground: FilesystemGround, name: str) -> str:
    """Make a directory of two files and two directories, each of which holds a file."""
    family = ground.make_full_dir(name)
    ground.make_file(f"{name}/second")
    for directory in ("left", "right"):
        ground.make_full_dir(f"{name}/{directory}")
    return family


_FAMILY = ["file", "left", "right", "second"]


def _bare(names: list[str]) -> list[str]:
    """Return names without a slash behind them, which FS-286 is about, in order."""
    return sorted(str(name).rstrip("/") for name in names)


@CHECKS.check("FS-279", Level.WORKS, needs=_NEEDS, traits=_WRITES, rows=(179,))
def lists_files_and_directories(ground: FilesystemGround) -> None:
    """Tried on a directory with two files and two directories."""
    names = _children(ground, _make_family(ground, "family"))
    expect_equal(_bare(names), _FAMILY, "the list of children")


@CHECKS.check("FS-280", Level.WORKS, needs=_NEEDS, traits=("writes", "directories"), rows=(180,))
def lists_an_empty_directory(ground: FilesystemGround) -> None:
    """Tried on an empty directory."""
    expect_equal(_children(ground, ground.make_dir()), [], "the children of an empty directory")


@CHECKS.check(
    "FS-281", Level.WORKS, needs=_NEEDS, traits=("writes", "file-as-directory"), rows=(181,)
)
def refuses_a_file(ground: FilesystemGround) -> None:
    """Tried on a file."""
    answer = ground.subject.get_children(ground.make_file())
    expect_code(answer, "get_children(F)", Code.FAILED_PRECONDITION)


@CHECKS.check("FS-282", Level.WORKS, needs=_NEEDS, traits=("directories",), rows=(182,))
def misses_a_missing_directory(ground: FilesystemGround) -> None:
    """Tried on a missing name, and on a name in a missing directory."""
    answer = ground.subject.get_children(ground.missing())
    expect_code(answer, "get_children(X)", Code.NOT_FOUND)
    answer = ground.subject.get_children(ground.below_missing())
    expect_code(answer, "get_children(X/y)", Code.NOT_FOUND)


@CHECKS.check(
    "FS-283", Level.WORKS, needs=_NEEDS, traits=("writes", "file-as-directory"), rows=(183,)
)
def refuses_a_name_below_a_file(ground: FilesystemGround) -> None:
    """Tried on a name below a file."""
    answer = ground.subject.get_children(ground.below_file())
    expect_code(answer, "get_children(F/x)", Code.FAILED_PRECONDITION)


@CHECKS.check("FS-284", Level.WORKS, passes=RAW, needs=_NEEDS, traits=_WRITES, rows=(184,))
def returns_minus_one_for_an_error(ground: FilesystemGround) -> None:
    """Tried on a missing name and on a file; a call that succeeds is skipped."""
    for words, uri in (("X", ground.missing()), ("F", ground.make_file())):
        answer = ground.subject.get_children(uri)
        if answer.code == Code.UNIMPLEMENTED:
            raise Unsupported("get_children is UNIMPLEMENTED")
        if not answer.ok:
            expect_equal(answer.returned, -1, f"what the failing get_children({words}) returned")
            expect(answer.value is None, f"the failing get_children({words}) leaves an array")


@CHECKS.check("FS-285", Level.WORKS, passes=RAW, needs=_NEEDS, traits=_WRITES, rows=(185,))
def counts_what_is_there(ground: FilesystemGround) -> None:
    """Tried on a directory with three files."""
    directory = ground.make_full_dir("counted")
    ground.make_file("counted/b")
    ground.make_file("counted/c")
    answer = ground.subject.get_children(directory)
    names = expect_ok(answer, "get_children")
    expect(answer.returned >= 0, "get_children is OK and returns -1")
    expect_equal(len(names), answer.returned, "the number of entries, which must be its count,")
    expect(None not in names, "an entry that is counted is NULL", found=repr(names))


@CHECKS.check("FS-286", Level.WORKS, needs=_NEEDS, traits=_WRITES, rows=(186,))
def names_are_bare(ground: FilesystemGround) -> None:
    """Tried on a directory with two files and two directories."""
    names = _children(ground, _make_family(ground, "bare"))
    for name in names:
        bare = (name or "").removesuffix("/")
        fitting = bare not in {"", ".", ".."} and "/" not in bare
        expect(fitting, "a name is listed that no child can have", found=repr(name))
    slashed = [name for name in names if name.endswith("/")]
    advise(not slashed, "names of directories end in a slash", found=repr(slashed))


@CHECKS.check("FS-287", Level.WORKS, needs=_NEEDS, traits=_WRITES, rows=(187,))
def lists_each_child_once(ground: FilesystemGround) -> None:
    """A file, and a directory in which a directory holds a file."""
    family = ground.make_full_dir("once")
    ground.make_full_dir("once/below")
    ground.make_full_dir("once/below/deep")
    names = _bare(_children(ground, family))
    expect_equal(names, sorted(set(names)), "the list of children")
    expect("deep" not in names, "a grandchild is listed", found=repr(names))


@CHECKS.check("FS-288", Level.WORKS, needs=(*_NEEDS, "path_exists"), traits=_WRITES, rows=(188,))
def lists_what_exists(ground: FilesystemGround) -> None:
    """Tried on a directory with two files and two directories."""
    family = _make_family(ground, "existing")
    for name in _children(ground, family):
        answer = ground.subject.path_exists(f"{family}/{name}")
        expect_code(answer, f"path_exists of the child {name!r}", Code.OK)


@CHECKS.check("FS-289", Level.ROBUST, needs=_NEEDS, traits=_WRITES, rows=(189,), seconds=300)
def lists_thousands(ground: FilesystemGround) -> None:
    """Tried on a directory with 5000 files."""
    directory = ground.make_dir("big")
    many = ground.target.options.get("many", _ENTRIES)
    expected = [
        ground.make_file(f"big/{index:06}", b"x").rpartition("/")[2] for index in range(many)
    ]
    names = sorted(_children(ground, directory))
    expect_equal(len(names), many, "the number of children")
    expect_equal(names, expected, "the list of children")


@CHECKS.check("FS-290", Level.WORKS, needs=_NEEDS, traits=_WRITES, rows=(190,))
def lists_strange_names(ground: FilesystemGround) -> None:
    """Names that look special; the same directory with a slash behind it."""
    directory = ground.make_dir("strange")
    for name in _STRANGE:
        ground.make_file(f"strange/{name}")
    listed, made = set(_children(ground, directory)), set(_STRANGE)
    lost, new = sorted(made - listed), sorted(map(str, listed - made))
    expect(not lost and not new, "names are changed", expected=f"{lost}", found=f"{new}")
    answer = ground.subject.get_children(f"{directory}/")
    same = answer.ok and sorted(answer.value) == sorted(_STRANGE)
    advise(same, "a slash behind the directory's URI changes the list", found=repr(answer.value))


@CHECKS.check("FS-291", Level.ROBUST, passes=RAW, needs=_NEEDS, traits=_WRITES, rows=(191,))
def gives_blocks_that_can_be_freed(ground: FilesystemGround) -> None:
    """The subject frees each entry, then the array: misuse is seen there, and here what is left.

    Leaks can be seen with the checking allocator only.
    """
    directory = ground.make_full_dir("freed")
    ground.make_file("freed/second")
    rounds = rounds_of(ground.target.options, _CALLS)

    def list_it() -> None:
        _children(ground, directory)

    expect_no_leak(list_it, rounds, "get_children")


@CHECKS.check("FS-292", Level.ROBUST, needs=_NEEDS, traits=_WRITES, rows=(192,))
def lists_in_threads(ground: FilesystemGround) -> None:
    """Tried by eight threads on one directory."""
    family = _make_family(ground, "shared")
    calls = rounds_of(ground.target.options, _CALLS)

    def look() -> None:
        for _ in range(calls):
            expect_equal(_bare(_children(ground, family)), _FAMILY, "the list that a thread sees")

    run_at_once([look] * _THREADS)
