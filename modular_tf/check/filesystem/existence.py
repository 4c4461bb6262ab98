"""Checks of `path_exists` and `paths_exist`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import RAW, Suite
from modular_tf.check.expectation import expect, expect_equal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.check.filesystem.ground import FilesystemGround

suite = Suite("filesystem", "existence", traits="writes", source="filesystem.h")

_PATHS = 1000  # of one call


@suite.check("FS-256", "path_exists")
def finds_a_file(fs: FilesystemGround) -> None:
    """path_exists is OK for a file.

    Otherwise: gfile.exists says no, and programs overwrite or recreate what is there.
    Remedy: Set OK for anything that stat would find.
    """
    fs.subject.path_exists(fs.make_file()).must_be_ok()


@suite.check("FS-353", "path_exists", traits="writes directories")
def finds_a_directory(fs: FilesystemGround) -> None:
    """path_exists is OK for an empty directory.

    Otherwise: Programs create it again, or say that it is not there.
    Remedy: Set OK for anything that stat would find.
    """
    fs.subject.path_exists(fs.make_dir()).must_be_ok()


@suite.check("FS-257", "path_exists", traits="")
def misses_what_is_missing(fs: FilesystemGround) -> None:
    """path_exists of a missing name is NOT_FOUND, in a missing directory too.

    Otherwise: Every other code is an error to gfile.exists, which raises instead of saying no.
    Remedy: Map the store's answer for a missing key to NOT_FOUND.
    """
    fs.subject.path_exists(fs.missing()).must_be(Code.NOT_FOUND)
    fs.subject.path_exists(fs.below_missing()).must_be(Code.NOT_FOUND)


@suite.check("FS-258", "path_exists", traits="writes file-as-directory")
def refuses_a_name_below_a_file(fs: FilesystemGround) -> None:
    """path_exists of a name below a file is FAILED_PRECONDITION.

    Otherwise: A wrong path looks like a missing file, which a caller then tries to create.
    Remedy: Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).
    Source: TensorFlow's test of filesystem plugins
    """
    fs.subject.path_exists(fs.below_file()).must_be(Code.FAILED_PRECONDITION)


@suite.check("FS-259", "path_exists")
def compares_whole_names(fs: FilesystemGround) -> None:
    """path_exists of the first letters of a name is NOT_FOUND.

    Otherwise: Programs find things that cannot be opened.
    Remedy: Compare whole names: a listing by prefix also yields longer names.
    """
    fs.make_file("file")
    fs.make_full_dir("directory")
    fs.subject.path_exists(fs.path("fi")).must_be(Code.NOT_FOUND)
    fs.subject.path_exists(fs.path("dir")).must_be(Code.NOT_FOUND)


def _expect_answers(fs: FilesystemGround, uris: Sequence[str], *codes: Code) -> None:
    """Ask for all with statuses, and demand these codes."""
    answer = fs.subject.paths_exist(uris)
    statuses = answer.must_be_ok()
    expect_equal(statuses, [int(code) for code in codes], "the list of statuses of paths_exist")
    expected = all(code is Code.OK for code in codes)
    expect_equal(bool(answer.returned), expected, "what paths_exist returned")


def _all_exist(fs: FilesystemGround, uris: Sequence[str]) -> bool:
    """Ask for all without statuses."""
    answer = fs.subject.paths_exist(uris, with_statuses=False)
    answer.must_be_ok()
    return bool(answer.returned)


@suite.check("FS-260", "paths_exist")
def finds_all(fs: FilesystemGround) -> None:
    """paths_exist is true where all paths exist, with and without statuses.

    Otherwise: Programs wait for files that are there.
    Remedy: Return true, and set OK in each status where the array of statuses is not NULL.
    """
    uris = [fs.make_file(), fs.make_file("G"), fs.make_full_dir()]
    expect(_all_exist(fs, uris), "paths_exist is false though all exist")
    _expect_answers(fs, uris, *[Code.OK] * 3)


@suite.check("FS-261", "paths_exist")
def tells_of_each_path(fs: FilesystemGround) -> None:
    """paths_exist sets each path's own code, in the order of the paths.

    Otherwise: The wrong path is taken for the missing one.
    Remedy: Set statuses[i] to what path_exists says of paths[i]; do not stop at the first miss.
    """
    uris = [fs.missing(), fs.make_file(), fs.path("Y"), fs.make_full_dir()]
    codes = [Code.NOT_FOUND, Code.OK, Code.NOT_FOUND, Code.OK]
    _expect_answers(fs, uris, *codes)


@suite.check("FS-355", "paths_exist", ways=RAW, traits="writes directories file-as-directory")
def tells_of_each_failure(fs: FilesystemGround) -> None:
    """paths_exist sets FAILED_PRECONDITION for a name below a file, beside OK and NOT_FOUND.

    Otherwise: A wrong path among many is taken for a missing file.
    Remedy: Set statuses[i] to what path_exists says of paths[i].
    Source: TensorFlow's test of filesystem plugins
    """
    below = fs.below_file()
    uris = [fs.make_dir(), fs.path("F"), below, fs.missing()]
    codes = [Code.OK, Code.OK, Code.FAILED_PRECONDITION, Code.NOT_FOUND]
    _expect_answers(fs, uris, *codes)


@suite.check("FS-262", "paths_exist")
def misses_one_of_many(fs: FilesystemGround) -> None:
    """paths_exist is false where one path is missing, without statuses too.

    Otherwise: Programs go on without a part of their data.
    Remedy: Return whether every path exists; statuses may be NULL.
    """
    file, other, missing = fs.make_file(), fs.make_file("G"), fs.missing()
    for uris in ([file, missing, other], [missing, file], [file, missing]):
        found = _all_exist(fs, uris)
        expect(not found, "paths_exist without statuses is true though a path is missing")


@suite.check("FS-263", "paths_exist", traits="")
def finds_all_of_none(fs: FilesystemGround) -> None:
    """paths_exist of no paths is true.

    Otherwise: Programs with nothing to look for fail.
    Remedy: Start from true, and touch no status.
    """
    expect(_all_exist(fs, []), "paths_exist of no paths is false")
    _expect_answers(fs, [])


@suite.check("FS-264", "paths_exist")
def agrees_with_path_exists(fs: FilesystemGround) -> None:
    """paths_exist is true exactly where path_exists is OK for each, and sets every status.

    Otherwise: One of two answers about the same path is wrong.
    Remedy: Build both on one function.
    """
    directory = fs.make_full_dir()
    uris = [directory, f"{directory}/file", f"{directory}/nothing", fs.root, fs.missing()]
    singly = [fs.subject.path_exists(uri).code for uri in uris]
    answer = fs.subject.paths_exist(uris)
    expect_equal(answer.must_be_ok(), singly, "the list of statuses of paths_exist")
    expect(answer.touched is not False, "paths_exist leaves statuses unset")
    existing = [uri for uri, code in zip(uris, singly, strict=True) if code == Code.OK]
    expect(_all_exist(fs, existing), "paths_exist is false where path_exists is OK")


@suite.check("FS-265", "paths_exist")
def takes_many_paths(fs: FilesystemGround) -> None:
    """paths_exist takes many paths and the same path twice, and leaves its array alone.

    Otherwise: The host's memory is changed, or paths beyond some number are not looked at.
    Remedy: Read the array only; page through the store's listing.
    """
    file = fs.make_file("again")
    _expect_answers(fs, [file, file], *[Code.OK] * 2)
    many = min(_PATHS, fs.target.options.get("many", _PATHS))
    codes = [int(Code.OK)] * (many - 1) + [int(Code.NOT_FOUND)]
    answer = fs.subject.paths_exist([file] * (many - 1) + [fs.missing()])
    statuses = answer.must_be_ok()
    right = next((i for i in range(many) if statuses[i : i + 1] != codes[i : i + 1]), many)
    expect_equal(right, many, "the number of leading statuses that are right")
    expect(not answer.returned, "paths_exist is true though the last path is missing")
