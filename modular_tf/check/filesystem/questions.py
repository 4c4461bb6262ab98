"""Checks of what there is: existence, statistics, children, matches of patterns."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import RAW, ROBUST, WARNING, Suite
from modular_tf.check.expectation import (
    Deviation,
    Unsupported,
    advise,
    expect,
    expect_equal,
    expect_in,
    note,
)
from modular_tf.check.filesystem.operations import Stat
from modular_tf.check.filesystem.refusals import MISSING, REFUSED, TENSORFLOW, refusals
from modular_tf.check.filesystem.workspace import CONTENT
from modular_tf.check.outcome import Pass
from modular_tf.check.under_load import at_once, must_not_grow, rounds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.workspace import FilesystemWorkspace

existence = Suite("filesystem", "existence", traits="writes", source="filesystem.h")

_PATHS = 1000  # of one call


@existence.check("FS-256", "path_exists")
def a_file_exists(fs: FilesystemWorkspace) -> None:
    """path_exists is OK for a file.

    Otherwise: gfile.exists says no, and programs overwrite or recreate what is there.
    Remedy: Set OK for anything that stat would find.
    """
    fs.path_exists(fs.make_file()).must_be_ok()


@existence.check("FS-353", "path_exists", traits="writes directories")
def a_directory_exists(fs: FilesystemWorkspace) -> None:
    """path_exists is OK for an empty directory.

    Otherwise: Programs create it again, or say that it is not there.
    Remedy: Set OK for anything that stat would find.
    """
    fs.path_exists(fs.make_dir()).must_be_ok()


refusals(existence, {
    "FS-257": ("path_exists(X), path_exists(X/y)", MISSING, "",
        "Every other code is an error to gfile.exists, which raises instead of saying no.",
        "Map the store's answer for a missing key to NOT_FOUND."),
})  # fmt: skip
refusals(existence, {
    "FS-258": ("path_exists(F/x)", REFUSED, "writes file-as-directory"),
}, source=TENSORFLOW)  # fmt: skip


@existence.check("FS-259", "path_exists")
def the_beginning_of_a_name_is_not_found(fs: FilesystemWorkspace) -> None:
    """path_exists of the first letters of a name, or of its letters in another case, is NOT_FOUND.

    Otherwise: Programs find things that cannot be opened.
    Remedy: Compare whole names, byte by byte: a listing by prefix also yields longer names.
    """
    fs.make_file("file")
    fs.make_full_dir("directory")
    for other in ("fi", "dir", "FILE", "Directory"):
        fs.path_exists(fs.path(other)).must_be(Code.NOT_FOUND)


def _expect_answers(fs: FilesystemWorkspace, uris: Sequence[str], *codes: Code) -> None:
    """Ask for all with statuses, and demand these codes."""
    answer = fs.paths_exist(uris)
    statuses = answer.must_be_ok()
    expect_equal(statuses, [int(code) for code in codes], "the list of statuses of paths_exist")
    expected = all(code is Code.OK for code in codes)
    expect_equal(bool(answer.returned), expected, "what paths_exist returned")


def _all_exist(fs: FilesystemWorkspace, uris: Sequence[str]) -> bool:
    """Ask for all without statuses."""
    answer = fs.paths_exist(uris, with_statuses=False)
    answer.must_be_ok()
    return bool(answer.returned)


@existence.check("FS-260", "paths_exist")
def all_paths_exist(fs: FilesystemWorkspace) -> None:
    """paths_exist is true where all paths exist, with and without statuses.

    Otherwise: Programs wait for files that are there.
    Remedy: Return true, and set OK in each status where the array of statuses is not NULL.
    """
    uris = [fs.make_file(), fs.make_file("G"), fs.make_full_dir()]
    expect(_all_exist(fs, uris), "paths_exist is false though all exist")
    _expect_answers(fs, uris, *[Code.OK] * 3)


@existence.check("FS-261", "paths_exist")
def each_path_has_its_code(fs: FilesystemWorkspace) -> None:
    """paths_exist sets each path's own code, in the order of the paths.

    Otherwise: The wrong path is taken for the missing one.
    Remedy: Set statuses[i] to what path_exists says of paths[i]; do not stop at the first miss.
    """
    uris = [fs.missing(), fs.make_file(), fs.path("Y"), fs.make_full_dir()]
    codes = [Code.NOT_FOUND, Code.OK, Code.NOT_FOUND, Code.OK]
    _expect_answers(fs, uris, *codes)


@existence.check("FS-355", "paths_exist", ways=RAW, traits="writes directories file-as-directory")
def each_failure_has_its_code(fs: FilesystemWorkspace) -> None:
    """paths_exist sets FAILED_PRECONDITION for a name below a file, beside OK and NOT_FOUND.

    Otherwise: A wrong path among many is taken for a missing file.
    Remedy: Set statuses[i] to what path_exists says of paths[i].
    Source: TensorFlow's test of filesystem plugins
    """
    below = fs.below_file()
    uris = [fs.make_dir(), fs.path("F"), below, fs.missing()]
    codes = [Code.OK, Code.OK, Code.FAILED_PRECONDITION, Code.NOT_FOUND]
    _expect_answers(fs, uris, *codes)


@existence.check("FS-262", "paths_exist")
def one_missing_path_is_false(fs: FilesystemWorkspace) -> None:
    """paths_exist is false where one path is missing, without statuses too.

    Otherwise: Programs go on without a part of their data.
    Remedy: Return whether every path exists; statuses may be NULL.
    """
    file, other, missing = fs.make_file(), fs.make_file("G"), fs.missing()
    for uris in ([file, missing, other], [missing, file], [file, missing]):
        found = _all_exist(fs, uris)
        expect(not found, "paths_exist without statuses is true though a path is missing")


@existence.check("FS-263", "paths_exist", traits="")
def no_paths_all_exist(fs: FilesystemWorkspace) -> None:
    """paths_exist of no paths is true.

    Otherwise: Programs with nothing to look for fail.
    Remedy: Start from true, and touch no status.
    """
    expect(_all_exist(fs, []), "paths_exist of no paths is false")
    _expect_answers(fs, [])


@existence.check("FS-264", "paths_exist")
def paths_exist_agrees_with_path_exists(fs: FilesystemWorkspace) -> None:
    """paths_exist is true exactly where path_exists is OK for each, and sets every status.

    Otherwise: One of two answers about the same path is wrong.
    Remedy: Build both on one function.
    """
    directory = fs.make_full_dir()
    uris = [directory, f"{directory}/file", f"{directory}/nothing", fs.root, fs.missing()]
    singly = [fs.path_exists(uri).code for uri in uris]
    answer = fs.paths_exist(uris)
    expect_equal(answer.must_be_ok(), singly, "the list of statuses of paths_exist")
    expect(answer.touched is not False, "paths_exist leaves statuses unset")
    existing = [uri for uri, code in zip(uris, singly, strict=True) if code == Code.OK]
    expect(_all_exist(fs, existing), "paths_exist is false where path_exists is OK")


@existence.check("FS-265", "paths_exist")
def many_paths_are_answered(fs: FilesystemWorkspace) -> None:
    """paths_exist takes many paths and the same path twice, and leaves its array alone.

    Otherwise: The host's memory is changed, or paths beyond some number are not looked at.
    Remedy: Read the array only; page through the store's listing.
    """
    file = fs.make_file("again")
    _expect_answers(fs, [file, file], *[Code.OK] * 2)
    many = min(_PATHS, fs.target.options.many or _PATHS)
    codes = [int(Code.OK)] * (many - 1) + [int(Code.NOT_FOUND)]
    answer = fs.paths_exist([file] * (many - 1) + [fs.missing()])
    statuses = answer.must_be_ok()
    right = next((i for i in range(many) if statuses[i : i + 1] != codes[i : i + 1]), many)
    expect_equal(right, many, "the number of leading statuses that are right")
    expect(not answer.returned, "paths_exist is true though the last path is missing")


statistics = Suite("filesystem", "statistics", source="filesystem.h")

_SECOND = 1_000_000_000  # in nanoseconds
_TOLERANCE_S = 5  # between our clock and the store's


def _stat(fs: FilesystemWorkspace, uri: str) -> Stat:
    answer = fs.stat(uri)
    if not isinstance(answer.must_be_ok(), Stat):
        raise Deviation(f"{answer.short_call} is OK, and the statistics are not filled in")
    found: Stat = answer.value
    return found


def _expect_unfilled(answer: Answer, code: Code) -> None:
    answer.must_be(code)
    message = f"{answer.short_call} fails and fills the struct"
    expect(answer.value is None, message, found=f"{answer.value}")


# -- stat -----------------------------------------------------------------------------------------


@statistics.check("FS-266", "stat", traits="writes")
def stat_of_a_file(fs: FilesystemWorkspace) -> None:
    """stat of a file gives its length and says that it is no directory.

    Otherwise: Readers that ask for the length first read too little or fail.
    Remedy: Fill length and is_directory, then report OK.
    """
    found = _stat(fs, fs.make_file())
    expect_equal(found.length, len(CONTENT), "the length of F")
    expect(not found.is_directory, "stat calls a file a directory")


@statistics.check("FS-354", "stat", traits="writes empty-files")
def stat_of_an_empty_file(fs: FilesystemWorkspace) -> None:
    """stat of an empty file gives the length 0 and says that it is no directory.

    Otherwise: Empty markers such as _SUCCESS are taken for missing, or for directories.
    Remedy: Do not tell a directory by the length 0.
    """
    found = _stat(fs, fs.make_empty_file())
    expect_equal(found.length, 0, "the length of E")
    expect(not found.is_directory, "stat calls an empty file a directory")


@statistics.check("FS-267", "stat", traits="writes directories")
def stat_of_a_directory(fs: FilesystemWorkspace) -> None:
    """stat of a directory says so, in a byte that is 0 or 1.

    Otherwise: Walks do not enter it; a byte that is neither is undefined behaviour in C++.
    Remedy: Set is_directory to true or false, never to flag bits.
    """
    found = _stat(fs, fs.make_dir())
    expect(found.is_directory, "stat does not call a directory one")
    expect_in(found.directory_byte, (0, 1), "the byte of is_directory")


@statistics.check("FS-268", "stat")
def stat_of_a_missing_name_is_not_found(fs: FilesystemWorkspace) -> None:
    """stat of a missing name is NOT_FOUND and leaves the struct alone.

    Otherwise: Callers that see half-filled statistics take nothing for an empty file.
    Remedy: Fill the struct at the end, where all is known.
    """
    _expect_unfilled(fs.stat(fs.missing()), Code.NOT_FOUND)


@statistics.check("FS-350", "stat", traits="writes file-as-directory")
def stat_below_a_file_is_refused(fs: FilesystemWorkspace) -> None:
    """stat of a name below a file is FAILED_PRECONDITION and leaves the struct alone.

    Otherwise: The caller takes a wrong path for a missing file.
    Remedy: Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).
    Source: TensorFlow's test of filesystem plugins
    """
    _expect_unfilled(fs.stat(fs.below_file()), Code.FAILED_PRECONDITION)


@statistics.check("FS-269", "stat", traits="writes timestamps", severity=WARNING)
def stat_gives_nanoseconds_since_1970(fs: FilesystemWorkspace) -> None:
    """stat gives the time of the last change in nanoseconds since 1970.

    Otherwise: Caches that compare times keep old content, or fetch all anew.
    Remedy: Multiply seconds by 1000000000; count from 1970, in UTC.
    """
    tolerance = int((fs.target.options.clock_tolerance_s or _TOLERANCE_S) * _SECOND)
    earliest = time.time_ns() - tolerance
    found = _stat(fs, fs.make_file("timed")).mtime_ns
    latest = time.time_ns() + tolerance
    expect(
        earliest <= found <= latest,
        "the time of change is not that of the last write, in nanoseconds since 1970",
        expected=f"{earliest} to {latest}",
        found=f"{found}: {_likely_fault(found, earliest, latest)}",
    )
    if found % _SECOND == 0:
        note("times of change are kept in whole seconds", found=str(found))


def _likely_fault(found: int, earliest: int, latest: int) -> str:
    """Return the likely mistake behind a wrong time."""
    for unit, factor in (("seconds", _SECOND), ("milliseconds", 10**6), ("microseconds", 10**3)):
        if earliest <= found * factor <= latest:
            return f"it counts {unit}"
    return "the store's clock is wrong, or the time not that of the write" if found else "no time"


@statistics.check("FS-270", "stat", traits="writes")
def stat_gives_the_new_length(fs: FilesystemWorkspace) -> None:
    """stat gives the new length once a longer file is closed, and never a negative one.

    Otherwise: Readers miss the end of a file; TensorFlow shows -1 as 18446744073709551615.
    Remedy: Drop what is cached about a file when it is written.
    """
    file = fs.make_file("grown")
    before = _stat(fs, file).length
    expect(before >= 0, "stat gives a negative length", found=str(before))
    longer = CONTENT * 3
    fs.make_file("grown", longer)
    expect_equal(_stat(fs, file).length, len(longer), "the length of F written anew")


# -- is_directory ---------------------------------------------------------------------------------


@statistics.check("FS-271", "is_directory", traits="writes directories")
def a_directory_is_a_directory(fs: FilesystemWorkspace) -> None:
    """is_directory of a directory is OK and true.

    Otherwise: Walks do not enter it.
    Remedy: Return true and set OK.
    """
    expect(fs.is_directory(fs.make_dir()).must_be_ok(), "is_directory(D) is OK and false")


@statistics.check("FS-272", "is_directory", traits="writes")
def a_file_is_no_directory(fs: FilesystemWorkspace) -> None:
    """is_directory of a file is false, with FAILED_PRECONDITION.

    Otherwise: TensorFlow reads the status alone: with OK it calls the file a directory.
    Remedy: Return false and set FAILED_PRECONDITION, though the header would take OK.
    Source: TensorFlow's test of filesystem plugins
    """
    answer = fs.is_directory(fs.make_file())
    answer.must_be(Code.FAILED_PRECONDITION, Code.OK)
    if not answer.ok:
        return
    expect(not answer.value, "is_directory(F) is true")
    if fs.target.reached is Pass.RAW:
        raise Deviation(
            "is_directory(F) is OK and false: TensorFlow will call the file a directory",
            expected="FAILED_PRECONDITION (9)",
            found="OK (0)",
            severity=WARNING,
        )


@statistics.check("FS-274", "is_directory", ways=RAW, traits="writes")
def is_true_with_ok_only(fs: FilesystemWorkspace) -> None:
    """is_directory returns true with OK only.

    Otherwise: One host goes by the status, another by the value: they see different trees.
    Remedy: Return false on every path that sets another code.
    """
    for uri in (fs.missing(), fs.make_file()):
        answer = fs.is_directory(uri)
        expect(answer.ok or not answer.value, f"is_directory({uri}) fails and returns true")


refusals(statistics, {
    "FS-273": ("is_directory(X)", MISSING, "",
        "Walks enter what is not there.",
        "Look whether it exists first: an empty listing is no directory."),
})  # fmt: skip
refusals(statistics, {
    "FS-351": ("is_directory(F/x)", REFUSED, "writes file-as-directory"),
}, source=TENSORFLOW)  # fmt: skip


# -- get_file_size --------------------------------------------------------------------------------


@statistics.check("FS-275", "get_file_size", traits="writes")
def size_of_a_file(fs: FilesystemWorkspace) -> None:
    """get_file_size is a file's length in bytes.

    Otherwise: Readers that ask for the size first read too little or fail.
    Remedy: Return the length, and set OK.
    """
    size = fs.get_file_size(fs.make_file()).must_be_ok()
    expect_equal(size, len(CONTENT), "the size of F")


@statistics.check("FS-356", "get_file_size", traits="writes empty-files")
def size_of_an_empty_file(fs: FilesystemWorkspace) -> None:
    """get_file_size of an empty file is 0.

    Otherwise: Empty markers such as _SUCCESS are taken for missing.
    Remedy: Return 0 and set OK; 0 is no sign of a failure.
    """
    size = fs.get_file_size(fs.make_empty_file()).must_be_ok()
    expect_equal(size, 0, "the size of E")


refusals(statistics, {
    "FS-276": ("get_file_size(D)", REFUSED, "writes directories",
        "A directory passes for an empty file.",
        "Refuse a directory with FAILED_PRECONDITION."),
    "FS-277": ("get_file_size(X)", MISSING, "",
        "A missing file passes for an empty one.",
        "Set NOT_FOUND before anything is returned."),
})  # fmt: skip
refusals(statistics, {
    "FS-352": ("get_file_size(F/x)", REFUSED, "writes file-as-directory"),
}, source=TENSORFLOW)  # fmt: skip


@statistics.check("FS-278", "stat", traits="writes")
def size_and_kind_agree_with_stat(fs: FilesystemWorkspace) -> None:
    """get_file_size and is_directory say what stat says.

    Otherwise: One of two answers about the same path is wrong.
    Remedy: Build the three on one function, or leave the two slots NULL.
    """
    file, directory = fs.make_file("nine", b"nine byte"), fs.make_full_dir()
    statistics = _stat(fs, file)
    if fs.offers("get_file_size"):
        size = fs.get_file_size(file).must_be_ok()
        expect_equal(
            size, statistics.length, "get_file_size(F), which must be the length that stat gives,"
        )
    if fs.offers("is_directory"):
        for uri in (file, directory):
            answer = fs.is_directory(uri)
            found, reported = answer.ok and bool(answer.value), _stat(fs, uri).is_directory
            expect_equal(
                found, reported, f"is_directory({uri}), which must be the flag that stat gives,"
            )


children = Suite("filesystem", "children", traits="writes", source="filesystem.h")

_ENTRIES = 5000
_THREADS = 8
_CALLS = 50  # of each thread
_STRANGE = (
    ".hidden", "...", "two words", "grüße", "数据", "100%", "a+b", "a#b", "star*", "[set]?",
    "Case", "case",
)  # fmt: skip
"""Names that a plugin might escape, quote, decode, drop or take for one another."""


def _children(fs: FilesystemWorkspace, uri: str) -> list[str]:
    names = fs.get_children(uri).must_be_ok()
    if names is None:
        raise Deviation("get_children is OK and returned a negative count")
    return list(names)


def _make_family(fs: FilesystemWorkspace, name: str) -> str:
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


@children.check("FS-279", "get_children")
def lists_files_and_directories(fs: FilesystemWorkspace) -> None:
    """get_children lists each file and directory by its name alone, in any order.

    Otherwise: Listings and globs miss entries, or find some that are not there.
    Remedy: Return the last part of each path, for files and directories alike.
    """
    names = _children(fs, _make_family(fs, "family"))
    expect_equal(_bare(names), _FAMILY, "the list of children")


@children.check("FS-280", "get_children", traits="writes directories")
def lists_an_empty_directory(fs: FilesystemWorkspace) -> None:
    """get_children of an empty directory is OK with 0 entries.

    Otherwise: Listing or deleting an empty directory fails.
    Remedy: Return 0 and set OK; the directory itself is no entry.
    """
    expect_equal(_children(fs, fs.make_dir()), [], "the children of an empty directory")


refusals(children, {
    "FS-281": ("get_children(F)", REFUSED, "writes file-as-directory",
        "A file passes for an empty directory.",
        "Look what the path is before it is listed."),
    "FS-283": ("get_children(F/x)", REFUSED, "writes file-as-directory"),
}, source=TENSORFLOW)  # fmt: skip
refusals(children, {
    "FS-282": ("get_children(X), get_children(X/y)", MISSING, "directories",
        "A missing directory looks like an empty one: a program finds no data and continues.",
        "An empty listing of a prefix says that nothing is there: answer NOT_FOUND."),
})  # fmt: skip


@children.check("FS-284", "get_children", ways=RAW)
def a_failing_listing_returns_minus_one(fs: FilesystemWorkspace) -> None:
    """get_children returns exactly -1 where it fails, and leaves no entries to be freed.

    Otherwise: Every other count makes TensorFlow read entries that are not there.
    Remedy: Free what was listed so far, leave the array alone and return -1.
    """
    for words, uri in (("X", fs.missing()), ("F", fs.make_file())):
        answer = fs.get_children(uri)
        if answer.code == Code.UNIMPLEMENTED:
            raise Unsupported("get_children is UNIMPLEMENTED")
        if not answer.ok:
            expect_equal(answer.returned, -1, f"what the failing get_children({words}) returned")
            expect(answer.value is None, f"the failing get_children({words}) leaves an array")


@children.check("FS-285", "get_children", ways=RAW)
def every_entry_counted_is_set(fs: FilesystemWorkspace) -> None:
    """A positive count comes with an array, and each entry in it is set.

    Otherwise: TensorFlow crashes on a NULL; here the listing fails with INTERNAL.
    Remedy: Fill every entry that is counted.
    """
    directory = fs.make_full_dir("counted")
    fs.make_file("counted/b")
    fs.make_file("counted/c")
    answer = fs.get_children(directory)
    names = answer.must_be_ok()
    expect(answer.returned >= 0, "get_children is OK and returns -1")
    expect_equal(len(names), answer.returned, "the number of entries, which must be its count,")
    expect(None not in names, "an entry that is counted is NULL", found=repr(names))


@children.check("FS-286", "get_children")
def names_are_bare(fs: FilesystemWorkspace) -> None:
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


@children.check("FS-287", "get_children")
def lists_each_child_once(fs: FilesystemWorkspace) -> None:
    """get_children lists each child once, and nothing that is below the children or elsewhere.

    Otherwise: Files are read twice, or paths appear that do not exist.
    Remedy: List one level; merge what the store lists both as an object and as a prefix. Take the
    path as it is: as a prefix it ends in "/", and for SQL's LIKE its "_" and "%" are escaped.
    """
    family = fs.make_full_dir("only_once")
    fs.make_full_dir("only_once/below")
    fs.make_full_dir("only_once/below/deep")
    for neighbour in ("only-once", "only_once-more"):
        fs.make_dir(neighbour)
        fs.make_file(f"{neighbour}/stranger")
    names = _bare(_children(fs, family))
    expect_equal(names, sorted(set(names)), "the list of children")
    expect("deep" not in names, "a grandchild is listed", found=repr(names))
    expect("stranger" not in names, "a child of another directory is listed", found=repr(names))


@children.check("FS-288", "get_children", "path_exists")
def lists_what_exists(fs: FilesystemWorkspace) -> None:
    """Each child, joined to the directory, exists.

    Otherwise: Walks fail at what the listing itself has named.
    Remedy: Return names as they are stored: not escaped, not shortened.
    """
    family = _make_family(fs, "existing")
    for name in _children(fs, family):
        fs.path_exists(f"{family}/{name}").must_be_ok()


@children.check("FS-289", "get_children", level=ROBUST, seconds=300)
def lists_thousands(fs: FilesystemWorkspace) -> None:
    """get_children lists thousands of entries completely.

    Otherwise: What is behind the store's first page is lost without a word.
    Remedy: Go on with the continuation token until the listing is complete.
    """
    directory = fs.make_dir("big")
    many = fs.target.options.many or _ENTRIES
    expected = [fs.make_file(f"big/{index:06}", b"x").rpartition("/")[2] for index in range(many)]
    names = sorted(_children(fs, directory))
    expect_equal(len(names), many, "the number of children")
    expect_equal(names, expected, "the list of children")


@children.check("FS-290", "get_children")
def lists_strange_names(fs: FilesystemWorkspace) -> None:
    """Hidden names, blanks, non-ASCII bytes, glob characters and case are listed as they are.

    Otherwise: Such files cannot be found, opened or deleted through a listing.
    Remedy: Do not escape, quote, decode or fold names; a path with a slash at its end is the same
    one.
    """
    directory = fs.make_dir("strange")
    for name in _STRANGE:
        fs.make_file(f"strange/{name}")
    listed, made = set(_children(fs, directory)), set(_STRANGE)
    lost, new = sorted(made - listed), sorted(map(str, listed - made))
    expect(not lost and not new, "names are changed", expected=f"{lost}", found=f"{new}")
    answer = fs.get_children(f"{directory}/")
    same = answer.ok and sorted(answer.value) == sorted(_STRANGE)
    advise(same, "a slash behind the directory's URI changes the list", found=repr(answer.value))


@children.check("FS-291", "get_children", level=ROBUST, ways=RAW)
def every_entry_can_be_freed(fs: FilesystemWorkspace) -> None:
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

    must_not_grow(list_it, rounds, "get_children")


@children.check("FS-292", "get_children", level=ROBUST)
def lists_in_threads(fs: FilesystemWorkspace) -> None:
    """get_children may run in many threads at once.

    Otherwise: TensorFlow's glob lists in parallel: names get lost or the process crashes.
    Remedy: Keep no listing in the filesystem's own state without a lock.
    Source: TensorFlow 2.21, observed
    """
    family = _make_family(fs, "shared")
    calls = rounds_of(fs.target.options, _CALLS)

    def list_children() -> None:
        for _ in range(calls):
            expect_equal(_bare(_children(fs, family)), _FAMILY, "the list that a thread sees")

    at_once([list_children] * _THREADS)


globbing = Suite("filesystem", "globbing", traits="writes", source="filesystem.h")

_GRAMMAR = {
    "x?": ["xa", "xb", "xc", "x*"],
    "x[ab]": ["xa", "xb"],
    "x[^a]": ["xb", "xc", "x*"],
    "x[a-c]": ["xa", "xb", "xc"],
    r"x\*": ["x*"],
}
"""Patterns, and what each finds of `xa`, `xb`, `xc`, `x*`, `xab` and `y`."""


def _expect_matches(fs: FilesystemWorkspace, pattern: str, names: Iterable[str]) -> None:
    """Demand that a pattern below the root finds exactly these names."""
    found = fs.get_matching_paths(fs.path(pattern)).must_be_ok()
    expected = sorted(fs.path(name) for name in names)
    # What is there twice is another check's.
    expect_equal(sorted(set(found)), expected, f"what get_matching_paths({pattern}) finds")


def _make_files(fs: FilesystemWorkspace, *names: str) -> None:
    for name in names:
        fs.make_file(name)


@globbing.check("FS-293", "get_matching_paths")
def all_matches_are_found(fs: FilesystemWorkspace) -> None:
    """get_matching_paths finds exactly the files that match, as URIs like the pattern.

    Otherwise: Datasets given as a pattern are incomplete, or cannot be opened.
    Remedy: Return scheme, host and path of each match; leave the slot NULL to let the host do it.
    """
    _make_files(fs, "a", "ab", "abc", "b", "ba")
    _expect_matches(fs, "a*", ["a", "ab", "abc"])


@globbing.check("FS-294", "get_matching_paths")
def no_match_is_ok(fs: FilesystemWorkspace) -> None:
    """A pattern that matches nothing is OK with 0 paths, in a missing directory too.

    Otherwise: A program that asks whether there are files gets an error instead of none.
    Remedy: Return 0 and set OK.
    """
    _expect_matches(fs, "*", [])
    fs.make_file()
    _expect_matches(fs, "n*", [])
    _expect_matches(fs, "X/*", [])


@globbing.check("FS-295", "get_matching_paths")
def a_path_matches_itself(fs: FilesystemWorkspace) -> None:
    """A pattern without wildcards matches its own path where that exists, else nothing.

    Otherwise: A plain file name cannot stand where a pattern may.
    Remedy: Answer by path_exists; an empty pattern matches nothing.
    """
    fs.make_file()
    _expect_matches(fs, "F", ["F"])
    _expect_matches(fs, "X", [])
    found = fs.get_matching_paths("").must_be_ok()
    expect_equal(list(found), [], "what the empty pattern finds")


@globbing.check("FS-296", "get_matching_paths")
def the_grammar_is_that_of_the_header(fs: FilesystemWorkspace) -> None:
    """`?`, `[ab]`, `[^a]`, `[a-c]` and a backslash mean what the header says.

    Otherwise: Patterns find too much or too little.
    Remedy: Follow the grammar in the header, as fnmatch(3) does with FNM_PATHNAME.
    """
    _make_files(fs, "xa", "xb", "xc", "x*", "xab", "y")
    for pattern, names in _GRAMMAR.items():
        _expect_matches(fs, pattern, names)


@globbing.check("FS-297", "get_matching_paths")
def a_wildcard_stays_within_a_level(fs: FilesystemWorkspace) -> None:
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


@globbing.check("FS-298", "get_matching_paths")
def every_match_exists(fs: FilesystemWorkspace) -> None:
    """Every match exists, and none is there twice.

    Otherwise: Files are read twice, or opening a match fails.
    Remedy: Return paths as path_exists takes them, each once.
    """
    _make_files(fs, "m1", "m2")
    fs.make_full_dir("m3")
    answer = fs.get_matching_paths(fs.path("m*"))
    found = sorted(answer.must_be_ok())
    expect_equal(found, sorted(set(found)), "the list of matches")
    for uri in found:
        fs.path_exists(uri).must_be_ok()


@globbing.check("FS-299", "get_matching_paths", ways=RAW)
def every_path_counted_is_set(fs: FilesystemWorkspace) -> None:
    """A failing get_matching_paths returns -1 with an error; every path counted is set.

    Otherwise: TensorFlow reads entries that are not there.
    Remedy: Return -1 exactly where the status is not OK; fill every entry that is counted.
    """
    _make_files(fs, "c1", "c2", "c3")
    patterns = [fs.path("c*"), fs.path("c1/x*"), *_with_a_wild_host(fs)]
    for pattern in patterns:
        answer = fs.get_matching_paths(pattern)
        fitting = answer.returned >= 0 if answer.ok else answer.returned == -1
        found = f"{answer.returned}, {code_found(answer)}"
        expect(
            fitting, f"the count of get_matching_paths({pattern}) contradicts its code", found=found
        )
        if answer.ok:
            expect_equal(len(answer.value), answer.returned, "the number of entries")
            expect(None not in answer.value, "an entry is NULL", found=repr(answer.value))


def _with_a_wild_host(fs: FilesystemWorkspace) -> list[str]:
    """Return a pattern with wildcards where the host stands; none for plain paths."""
    scheme, separator, _ = fs.root.partition("://")
    return [f"{scheme}://*/x"] if separator else []


@globbing.check("FS-300", "get_matching_paths", traits="")
def a_wildcard_in_the_host_is_refused(fs: FilesystemWorkspace) -> None:
    """A wildcard in front of the path is INVALID_ARGUMENT, and no crash.

    Otherwise: TensorFlow's own glob crashes on it.
    Remedy: Refuse wildcards in the host part of a URI.
    Source: host recommendation

    The host refuses it itself; a plugin may find nothing as well.
    """
    patterns = _with_a_wild_host(fs)
    if not patterns:
        raise Unsupported("plain paths have no host")
    answer = fs.get_matching_paths(patterns[0])
    if fs.target.reached is Pass.HOST:
        answer.must_be(Code.INVALID_ARGUMENT)
    expect(
        not answer.ok or not answer.value,
        "get_matching_paths(s://*/x) finds something in hosts that it cannot know",
        expected="INVALID_ARGUMENT (3)",
        found=code_found(answer),
    )
