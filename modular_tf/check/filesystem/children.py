"""Checks of `get_children`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import RAW, ROBUST, Suite
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.expectation import Deviation, Unsupported, advise, expect, expect_equal
from modular_tf.check.repetition import expect_no_leak, rounds_of

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

suite = Suite("filesystem", "children", traits="writes", source="filesystem.h")

_ENTRIES = 5000
_THREADS = 8
_CALLS = 50  # of each thread
_STRANGE = (".hidden", "...", "two words", "grüße", "数据", "100%", "a+b", "a#b", "star*", "[set]?")
"""Names that a plugin might escape, quote, decode or drop."""


def _children(fs: FilesystemGround, uri: str) -> list[str]:
    names = fs.subject.get_children(uri).must_be_ok()
    if names is None:
        raise Deviation("get_children is OK and returned a negative count")
    return list(names)


def _make_family(fs: FilesystemGround, name: str) -> str:
    """Make a directory of two files and two directories, each of which holds a file."""
    family = fs.make_full_dir(name)
    fs.make_file(f"{name}/second")
    for directory in ("left", "right"):
        fs.make_full_dir(f"{name}/{directory}")
    return family


_FAMILY = ["file", "left", "right", "second"]


def _bare(names: list[str]) -> list[str]:
    """Return names without a slash behind them, which FS-286 is about, in order."""
    return sorted(str(name).rstrip("/") for name in names)


@suite.check("FS-279", "get_children")
def lists_files_and_directories(fs: FilesystemGround) -> None:
    """get_children lists each file and directory by its name alone, in any order.

    Otherwise: Listings and globs miss entries, or find some that are not there.
    Remedy: Return the last part of each path, for files and directories alike.
    """
    names = _children(fs, _make_family(fs, "family"))
    expect_equal(_bare(names), _FAMILY, "the list of children")


@suite.check("FS-280", "get_children", traits="writes directories")
def lists_an_empty_directory(fs: FilesystemGround) -> None:
    """get_children of an empty directory is OK with 0 entries.

    Otherwise: Listing or deleting an empty directory fails.
    Remedy: Return 0 and set OK; the directory itself is no entry.
    """
    expect_equal(_children(fs, fs.make_dir()), [], "the children of an empty directory")


@suite.check("FS-281", "get_children", traits="writes file-as-directory")
def refuses_a_file(fs: FilesystemGround) -> None:
    """get_children of a file is FAILED_PRECONDITION.

    Otherwise: A file passes for an empty directory.
    Remedy: Look what the path is before it is listed.
    Source: TensorFlow's test of filesystem plugins
    """
    fs.subject.get_children(fs.make_file()).must_be(Code.FAILED_PRECONDITION)


@suite.check("FS-282", "get_children", traits="directories")
def misses_a_missing_directory(fs: FilesystemGround) -> None:
    """get_children of a missing directory is NOT_FOUND.

    Otherwise: A missing directory looks like an empty one: a program finds no data and continues.
    Remedy: An empty listing of a prefix says that nothing is there: answer NOT_FOUND.
    """
    fs.subject.get_children(fs.missing()).must_be(Code.NOT_FOUND)
    fs.subject.get_children(fs.below_missing()).must_be(Code.NOT_FOUND)


@suite.check("FS-283", "get_children", traits="writes file-as-directory")
def refuses_a_name_below_a_file(fs: FilesystemGround) -> None:
    """get_children of a name below a file is FAILED_PRECONDITION.

    Otherwise: The caller takes a wrong path for a missing directory.
    Remedy: Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).
    Source: TensorFlow's test of filesystem plugins
    """
    fs.subject.get_children(fs.below_file()).must_be(Code.FAILED_PRECONDITION)


@suite.check("FS-284", "get_children", ways=RAW)
def returns_minus_one_for_an_error(fs: FilesystemGround) -> None:
    """get_children returns exactly -1 where it fails, and leaves no entries to be freed.

    Otherwise: Every other count makes TensorFlow read entries that are not there.
    Remedy: Free what was listed so far, leave the array alone and return -1.
    """
    for words, uri in (("X", fs.missing()), ("F", fs.make_file())):
        answer = fs.subject.get_children(uri)
        if answer.code == Code.UNIMPLEMENTED:
            raise Unsupported("get_children is UNIMPLEMENTED")
        if not answer.ok:
            expect_equal(answer.returned, -1, f"what the failing get_children({words}) returned")
            expect(answer.value is None, f"the failing get_children({words}) leaves an array")


@suite.check("FS-285", "get_children", ways=RAW)
def counts_what_is_there(fs: FilesystemGround) -> None:
    """A positive count comes with an array, and each entry in it is set.

    Otherwise: TensorFlow crashes on a NULL; here the listing fails with INTERNAL.
    Remedy: Fill every entry that is counted.
    """
    directory = fs.make_full_dir("counted")
    fs.make_file("counted/b")
    fs.make_file("counted/c")
    answer = fs.subject.get_children(directory)
    names = answer.must_be_ok()
    expect(answer.returned >= 0, "get_children is OK and returns -1")
    expect_equal(len(names), answer.returned, "the number of entries, which must be its count,")
    expect(None not in names, "an entry that is counted is NULL", found=repr(names))


@suite.check("FS-286", "get_children")
def names_are_bare(fs: FilesystemGround) -> None:
    """Names of children are not empty, not "." or "..", and hold no slash.

    Otherwise: TensorFlow's recursive delete runs in circles or out of the tree; a slash at the end
    of a directory's name hides it from globs.
    Remedy: Skip the entries for the directory itself and its parent; return bare names.
    """
    names = _children(fs, _make_family(fs, "bare"))
    for name in names:
        bare = (name or "").removesuffix("/")
        fitting = bare not in {"", ".", ".."} and "/" not in bare
        expect(fitting, "a name is listed that no child can have", found=repr(name))
    slashed = [name for name in names if name.endswith("/")]
    advise(not slashed, "names of directories end in a slash", found=repr(slashed))


@suite.check("FS-287", "get_children")
def lists_each_child_once(fs: FilesystemGround) -> None:
    """get_children lists each child once, and nothing below the children.

    Otherwise: Files are read twice, or paths appear that do not exist.
    Remedy: List one level; merge what the store lists both as an object and as a prefix.
    """
    family = fs.make_full_dir("once")
    fs.make_full_dir("once/below")
    fs.make_full_dir("once/below/deep")
    names = _bare(_children(fs, family))
    expect_equal(names, sorted(set(names)), "the list of children")
    expect("deep" not in names, "a grandchild is listed", found=repr(names))


@suite.check("FS-288", "get_children", "path_exists")
def lists_what_exists(fs: FilesystemGround) -> None:
    """Each child, joined to the directory, exists.

    Otherwise: Walks fail at what the listing itself has named.
    Remedy: Return names as they are stored: not escaped, not shortened.
    """
    family = _make_family(fs, "existing")
    for name in _children(fs, family):
        fs.subject.path_exists(f"{family}/{name}").must_be_ok()


@suite.check("FS-289", "get_children", level=ROBUST, seconds=300)
def lists_thousands(fs: FilesystemGround) -> None:
    """get_children lists thousands of entries completely.

    Otherwise: What is behind the store's first page is lost without a word.
    Remedy: Go on with the continuation token until the listing is complete.
    """
    directory = fs.make_dir("big")
    many = fs.target.options.get("many", _ENTRIES)
    expected = [fs.make_file(f"big/{index:06}", b"x").rpartition("/")[2] for index in range(many)]
    names = sorted(_children(fs, directory))
    expect_equal(len(names), many, "the number of children")
    expect_equal(names, expected, "the list of children")


@suite.check("FS-290", "get_children")
def lists_strange_names(fs: FilesystemGround) -> None:
    """Hidden names, blanks, non-ASCII bytes and glob characters are listed as they are.

    Otherwise: Such files cannot be found, opened or deleted through a listing.
    Remedy: Do not escape, quote or decode names; a path with a slash at its end is the same one.
    """
    directory = fs.make_dir("strange")
    for name in _STRANGE:
        fs.make_file(f"strange/{name}")
    listed, made = set(_children(fs, directory)), set(_STRANGE)
    lost, new = sorted(made - listed), sorted(map(str, listed - made))
    expect(not lost and not new, "names are changed", expected=f"{lost}", found=f"{new}")
    answer = fs.subject.get_children(f"{directory}/")
    same = answer.ok and sorted(answer.value) == sorted(_STRANGE)
    advise(same, "a slash behind the directory's URI changes the list", found=repr(answer.value))


@suite.check("FS-291", "get_children", level=ROBUST, ways=RAW)
def gives_blocks_that_can_be_freed(fs: FilesystemGround) -> None:
    """Each entry and the array are blocks of their own that plugin_memory_free takes.

    Otherwise: The host frees each entry and then the array: one block for all is freed twice.
    Remedy: Allocate the array and every entry with what plugin_memory_free frees.

    Each list is freed where it is read, and misuse is seen there; here what is left is counted.
    Leaks can be seen with the checking allocator only.
    """
    directory = fs.make_full_dir("freed")
    fs.make_file("freed/second")
    rounds = rounds_of(fs.target.options, _CALLS)

    def list_it() -> None:
        _children(fs, directory)

    expect_no_leak(list_it, rounds, "get_children")


@suite.check("FS-292", "get_children", level=ROBUST)
def lists_in_threads(fs: FilesystemGround) -> None:
    """get_children may run in many threads at once.

    Otherwise: TensorFlow's glob lists in parallel: names get lost or the process crashes.
    Remedy: Keep no listing in the filesystem's own state without a lock.
    Source: TensorFlow 2.21, observed
    """
    family = _make_family(fs, "shared")
    calls = rounds_of(fs.target.options, _CALLS)

    def look() -> None:
        for _ in range(calls):
            expect_equal(_bare(_children(fs, family)), _FAMILY, "the list that a thread sees")

    run_at_once([look] * _THREADS)
