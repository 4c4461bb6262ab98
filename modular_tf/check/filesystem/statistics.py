"""Checks of `stat`, `is_directory` and `get_file_size`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import RAW, WARNING, Suite
from modular_tf.check.expectation import Deviation, advise, expect, expect_equal, expect_in, note
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.filesystem.subject import Stat
from modular_tf.check.outcome import Pass

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

suite = Suite("filesystem", "statistics", source="filesystem.h")

_SECOND = 1_000_000_000  # in nanoseconds
_TOLERANCE_S = 5  # between our clock and the store's


def _stat(fs: FilesystemGround, uri: str, words: str) -> Stat:
    found = fs.subject.stat(uri).must_be_ok()
    if not isinstance(found, Stat):
        raise Deviation(f"stat({words}) is OK, and the statistics are not filled in")
    return found


# -- stat -----------------------------------------------------------------------------------------


@suite.check("FS-266", "stat", traits="writes")
def measures_a_file(fs: FilesystemGround) -> None:
    """stat of a file gives its length and says that it is no directory.

    Otherwise: Readers that ask for the length first read too little or fail.
    Remedy: Fill length and is_directory, then report OK.
    """
    found = _stat(fs, fs.make_file(), "F")
    expect_equal(found.length, len(CONTENT), "the length of F")
    expect(not found.is_directory, "stat calls a file a directory")


@suite.check("FS-354", "stat", traits="writes empty-files")
def measures_an_empty_file(fs: FilesystemGround) -> None:
    """stat of an empty file gives the length 0 and says that it is no directory.

    Otherwise: Empty markers such as _SUCCESS are taken for missing, or for directories.
    Remedy: Do not tell a directory by the length 0.
    """
    found = _stat(fs, fs.make_empty_file(), "E")
    expect_equal(found.length, 0, "the length of E")
    expect(not found.is_directory, "stat calls an empty file a directory")


@suite.check("FS-267", "stat", traits="writes directories")
def knows_a_directory(fs: FilesystemGround) -> None:
    """stat of a directory says so, in a byte that is 0 or 1.

    Otherwise: Walks do not enter it; a byte that is neither is undefined behaviour in C++.
    Remedy: Set is_directory to true or false, never to flag bits.
    """
    found = _stat(fs, fs.make_dir(), "D")
    expect(found.is_directory, "stat does not call a directory one")
    expect_in(found.directory_byte, (0, 1), "the byte of is_directory")


@suite.check("FS-268", "stat")
def misses_what_is_missing(fs: FilesystemGround) -> None:
    """stat of a missing name is NOT_FOUND and leaves the struct alone.

    Otherwise: Callers that see half-filled statistics take nothing for an empty file.
    Remedy: Fill the struct at the end, where all is known.
    """
    answer = fs.subject.stat(fs.missing())
    answer.must_be(Code.NOT_FOUND)
    expect(answer.value is None, "stat(X) fails and fills the struct", found=f"{answer.value}")


@suite.check("FS-350", "stat", traits="writes file-as-directory")
def refuses_a_name_below_a_file(fs: FilesystemGround) -> None:
    """stat of a name below a file is FAILED_PRECONDITION and leaves the struct alone.

    Otherwise: The caller takes a wrong path for a missing file.
    Remedy: Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).
    Source: TensorFlow's test of filesystem plugins
    """
    answer = fs.subject.stat(fs.below_file())
    answer.must_be(Code.FAILED_PRECONDITION)
    expect(answer.value is None, "stat(F/x) fails and fills the struct", found=f"{answer.value}")


@suite.check("FS-269", "stat", traits="writes timestamps", severity=WARNING)
def tells_the_time(fs: FilesystemGround) -> None:
    """stat gives the time of the last change in nanoseconds since 1970.

    Otherwise: Caches that compare times keep old content, or fetch all anew.
    Remedy: Multiply seconds by 1000000000; count from 1970, in UTC.
    """
    tolerance = fs.target.options.get("clock_tolerance_s", _TOLERANCE_S) * _SECOND
    earliest = time.time_ns() - tolerance
    found = _stat(fs, fs.make_file("timed"), "F").mtime_ns
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


@suite.check("FS-270", "stat", traits="writes")
def sees_a_file_grow(fs: FilesystemGround) -> None:
    """stat gives the new length once a longer file is closed, and never a negative one.

    Otherwise: Readers miss the end of a file; TensorFlow shows -1 as 18446744073709551615.
    Remedy: Drop what is cached about a file when it is written.
    """
    file = fs.make_file("grown")
    before = _stat(fs, file, "F").length
    expect(before >= 0, "stat gives a negative length", found=str(before))
    longer = CONTENT * 3
    fs.make_file("grown", longer)
    expect_equal(_stat(fs, file, "F").length, len(longer), "the length of F written anew")


# -- is_directory ---------------------------------------------------------------------------------


@suite.check("FS-271", "is_directory", traits="writes directories")
def says_yes_to_a_directory(fs: FilesystemGround) -> None:
    """is_directory of a directory is OK and true.

    Otherwise: Walks do not enter it.
    Remedy: Return true and set OK.
    """
    found = fs.subject.is_directory(fs.make_dir()).must_be_ok()
    expect(found, "is_directory(D) is OK and false")


@suite.check("FS-272", "is_directory", traits="writes")
def says_no_to_a_file(fs: FilesystemGround) -> None:
    """is_directory of a file is false, with FAILED_PRECONDITION.

    Otherwise: TensorFlow reads the status alone: with OK it calls the file a directory.
    Remedy: Return false and set FAILED_PRECONDITION, though the header would take OK.
    Source: TensorFlow's test of filesystem plugins
    """
    answer = fs.subject.is_directory(fs.make_file())
    answer.must_be(Code.FAILED_PRECONDITION, Code.OK)
    if not answer.ok:
        return
    expect(not answer.value, "is_directory(F) is true")
    if fs.target.reached is Pass.RAW:
        advise(
            answer.code,
            "is_directory(F) is OK and false: TensorFlow will call the file a directory",
            expected="FAILED_PRECONDITION (9)",
            found="OK (0)",
        )


@suite.check("FS-273", "is_directory")
def misses_a_missing_directory(fs: FilesystemGround) -> None:
    """is_directory of a missing name is NOT_FOUND and false.

    Otherwise: Walks enter what is not there.
    Remedy: Look whether it exists first: an empty listing is no directory.
    """
    fs.subject.is_directory(fs.missing()).must_be(Code.NOT_FOUND)


@suite.check("FS-351", "is_directory", traits="writes file-as-directory")
def refuses_a_directory_below_a_file(fs: FilesystemGround) -> None:
    """is_directory of a name below a file is FAILED_PRECONDITION.

    Otherwise: The caller takes a wrong path for a missing directory.
    Remedy: Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).
    Source: TensorFlow's test of filesystem plugins
    """
    fs.subject.is_directory(fs.below_file()).must_be(Code.FAILED_PRECONDITION)


@suite.check("FS-274", "is_directory", ways=RAW, traits="writes")
def is_true_with_ok_only(fs: FilesystemGround) -> None:
    """is_directory returns true with OK only.

    Otherwise: One host goes by the status, another by the value: they see different trees.
    Remedy: Return false on every path that sets another code.
    """
    for uri in (fs.missing(), fs.make_file()):
        answer = fs.subject.is_directory(uri)
        expect(answer.ok or not answer.value, f"is_directory({uri}) fails and returns true")


# -- get_file_size --------------------------------------------------------------------------------


@suite.check("FS-275", "get_file_size", traits="writes")
def gives_the_size_of_a_file(fs: FilesystemGround) -> None:
    """get_file_size is a file's length in bytes.

    Otherwise: Readers that ask for the size first read too little or fail.
    Remedy: Return the length, and set OK.
    """
    found = fs.subject.get_file_size(fs.make_file()).must_be_ok()
    expect_equal(found, len(CONTENT), "the size of F")


@suite.check("FS-356", "get_file_size", traits="writes empty-files")
def gives_the_size_of_an_empty_file(fs: FilesystemGround) -> None:
    """get_file_size of an empty file is 0.

    Otherwise: Empty markers such as _SUCCESS are taken for missing.
    Remedy: Return 0 and set OK; 0 is no sign of a failure.
    """
    found = fs.subject.get_file_size(fs.make_empty_file()).must_be_ok()
    expect_equal(found, 0, "the size of E")


@suite.check("FS-276", "get_file_size", traits="writes directories")
def has_no_size_of_a_directory(fs: FilesystemGround) -> None:
    """get_file_size of a directory is FAILED_PRECONDITION.

    Otherwise: A directory passes for an empty file.
    Remedy: Refuse a directory with FAILED_PRECONDITION.
    """
    fs.subject.get_file_size(fs.make_dir()).must_be(Code.FAILED_PRECONDITION)


@suite.check("FS-277", "get_file_size")
def has_no_size_of_a_missing_file(fs: FilesystemGround) -> None:
    """get_file_size of a missing name is NOT_FOUND.

    Otherwise: A missing file passes for an empty one.
    Remedy: Set NOT_FOUND before anything is returned.
    """
    fs.subject.get_file_size(fs.missing()).must_be(Code.NOT_FOUND)


@suite.check("FS-352", "get_file_size", traits="writes file-as-directory")
def has_no_size_below_a_file(fs: FilesystemGround) -> None:
    """get_file_size of a name below a file is FAILED_PRECONDITION.

    Otherwise: The caller takes a wrong path for a missing file.
    Remedy: Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).
    Source: TensorFlow's test of filesystem plugins
    """
    fs.subject.get_file_size(fs.below_file()).must_be(Code.FAILED_PRECONDITION)


@suite.check("FS-278", "stat", traits="writes")
def agrees_with_stat(fs: FilesystemGround) -> None:
    """get_file_size and is_directory say what stat says.

    Otherwise: One of two answers about the same path is wrong.
    Remedy: Build the three on one function, or leave the two slots NULL.
    """
    file, directory = fs.make_file("nine", b"nine byte"), fs.make_full_dir()
    statistics = _stat(fs, file, "F")
    if fs.subject.offers("get_file_size"):
        size = fs.subject.get_file_size(file).must_be_ok()
        expect_equal(
            size, statistics.length, "get_file_size(F), which must be the length that stat gives,"
        )
    if fs.subject.offers("is_directory"):
        for uri in (file, directory):
            answer = fs.subject.is_directory(uri)
            found, told = answer.ok and bool(answer.value), _stat(fs, uri, uri).is_directory
            expect_equal(
                found, told, f"is_directory({uri}), which must be the flag that stat gives,"
            )
