"""Checks of `stat`, `is_directory` and `get_file_size`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import expect_code, expect_ok
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.expectation import Deviation, advise, expect, expect_equal, expect_in, note
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.filesystem.subject import Stat
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

CHECKS = CheckList("filesystem", "statistics")

_STAT = ("stat",)
_KIND = ("is_directory",)
_SIZE = ("get_file_size",)
_WRITES = ("writes",)
_DIRECTORIES = ("writes", "directories")
_BELOW_FILE = ("writes", "file-as-directory")
_EMPTY_FILES = ("writes", "empty-files")
_SECOND = 1_000_000_000  # in nanoseconds
_TOLERANCE_S = 5  # between our clock and the store's


def _stat(ground: FilesystemGround, uri: str, words: str) -> Stat:
    found = expect_ok(ground.subject.stat(uri), f"stat({words})")
    if not isinstance(found, Stat):
        raise Deviation(f"stat({words}) is OK, and the statistics are not filled in")
    return found


# -- stat -----------------------------------------------------------------------------------------


@CHECKS.check("FS-266", Level.WORKS, needs=_STAT, traits=_WRITES, rows=(166,))
def measures_a_file(ground: FilesystemGround) -> None:
    """Tried on a file."""
    found = _stat(ground, ground.make_file(), "F")
    expect_equal(found.length, len(CONTENT), "the length of F")
    expect(not found.is_directory, "stat calls a file a directory")


@CHECKS.check("FS-354", Level.WORKS, needs=_STAT, traits=_EMPTY_FILES, rows=(166,))
def measures_an_empty_file(ground: FilesystemGround) -> None:
    """Tried on an empty file."""
    found = _stat(ground, ground.make_empty_file(), "E")
    expect_equal(found.length, 0, "the length of E")
    expect(not found.is_directory, "stat calls an empty file a directory")


@CHECKS.check("FS-267", Level.WORKS, needs=_STAT, traits=_DIRECTORIES, rows=(167,))
def knows_a_directory(ground: FilesystemGround) -> None:
    """Tried on an empty directory."""
    found = _stat(ground, ground.make_dir(), "D")
    expect(found.is_directory, "stat does not call a directory one")
    expect_in(found.directory_byte, (0, 1), "the byte of is_directory")


@CHECKS.check("FS-268", Level.WORKS, needs=_STAT, rows=(168,))
def misses_what_is_missing(ground: FilesystemGround) -> None:
    """Tried on a name that does not exist."""
    answer = ground.subject.stat(ground.missing())
    expect_code(answer, "stat(X)", Code.NOT_FOUND)
    expect(answer.value is None, "stat(X) fails and fills the struct", found=f"{answer.value}")


@CHECKS.check("FS-350", Level.WORKS, needs=_STAT, traits=_BELOW_FILE, rows=(168,))
def refuses_a_name_below_a_file(ground: FilesystemGround) -> None:
    """Tried on a name below a file."""
    answer = ground.subject.stat(ground.below_file())
    expect_code(answer, "stat(F/x)", Code.FAILED_PRECONDITION)
    expect(answer.value is None, "stat(F/x) fails and fills the struct", found=f"{answer.value}")


@CHECKS.check("FS-269", Level.WORKS, needs=_STAT, traits=("writes", "timestamps"), rows=(169,))
def tells_the_time(ground: FilesystemGround) -> None:
    """Tried on a file that was just written."""
    tolerance = ground.target.options.get("clock_tolerance_s", _TOLERANCE_S) * _SECOND
    earliest = time.time_ns() - tolerance
    found = _stat(ground, ground.make_file("timed"), "F").mtime_ns
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


@CHECKS.check("FS-270", Level.WORKS, needs=_STAT, traits=_WRITES, rows=(170,))
def sees_a_file_grow(ground: FilesystemGround) -> None:
    """Tried before and after a file is replaced by a longer one."""
    file = ground.make_file("grown")
    before = _stat(ground, file, "F").length
    expect(before >= 0, "stat gives a negative length", found=str(before))
    longer = CONTENT * 3
    ground.make_file("grown", longer)
    expect_equal(_stat(ground, file, "F").length, len(longer), "the length of F written anew")


# -- is_directory ---------------------------------------------------------------------------------


@CHECKS.check("FS-271", Level.WORKS, needs=_KIND, traits=_DIRECTORIES, rows=(171,))
def says_yes_to_a_directory(ground: FilesystemGround) -> None:
    """Tried on an empty directory."""
    found = expect_ok(ground.subject.is_directory(ground.make_dir()), "is_directory(D)")
    expect(found, "is_directory(D) is OK and false")


@CHECKS.check("FS-272", Level.WORKS, needs=_KIND, traits=_WRITES, rows=(172,))
def says_no_to_a_file(ground: FilesystemGround) -> None:
    """Tried on a file; the header's OK and false is a warning."""
    answer = ground.subject.is_directory(ground.make_file())
    expect_code(answer, "is_directory(F)", Code.FAILED_PRECONDITION, Code.OK)
    if not answer.ok:
        return
    expect(not answer.value, "is_directory(F) is true")
    if ground.target.reached is Pass.RAW:
        advise(
            answer.code,
            "is_directory(F) is OK and false: TensorFlow will call the file a directory",
            expected="FAILED_PRECONDITION (9)",
            found="OK (0)",
        )


@CHECKS.check("FS-273", Level.WORKS, needs=_KIND, rows=(173,))
def misses_a_missing_directory(ground: FilesystemGround) -> None:
    """Tried on a name that does not exist."""
    answer = ground.subject.is_directory(ground.missing())
    expect_code(answer, "is_directory(X)", Code.NOT_FOUND)


@CHECKS.check("FS-351", Level.WORKS, needs=_KIND, traits=_BELOW_FILE, rows=(173,))
def refuses_a_directory_below_a_file(ground: FilesystemGround) -> None:
    """Tried on a name below a file."""
    answer = ground.subject.is_directory(ground.below_file())
    expect_code(answer, "is_directory(F/x)", Code.FAILED_PRECONDITION)


@CHECKS.check("FS-274", Level.WORKS, passes=RAW, needs=_KIND, traits=_WRITES, rows=(174,))
def is_true_with_ok_only(ground: FilesystemGround) -> None:
    """Tried on a missing name and on a file."""
    for uri in (ground.missing(), ground.make_file()):
        answer = ground.subject.is_directory(uri)
        expect(answer.ok or not answer.value, f"is_directory({uri}) fails and returns true")


# -- get_file_size --------------------------------------------------------------------------------


@CHECKS.check("FS-275", Level.WORKS, needs=_SIZE, traits=_WRITES, rows=(175,))
def gives_the_size_of_a_file(ground: FilesystemGround) -> None:
    """Tried on a file."""
    found = expect_ok(ground.subject.get_file_size(ground.make_file()), "get_file_size(F)")
    expect_equal(found, len(CONTENT), "the size of F")


@CHECKS.check("FS-356", Level.WORKS, needs=_SIZE, traits=_EMPTY_FILES, rows=(175,))
def gives_the_size_of_an_empty_file(ground: FilesystemGround) -> None:
    """Tried on an empty file."""
    found = expect_ok(ground.subject.get_file_size(ground.make_empty_file()), "get_file_size(E)")
    expect_equal(found, 0, "the size of E")


@CHECKS.check("FS-276", Level.WORKS, needs=_SIZE, traits=_DIRECTORIES, rows=(176,))
def has_no_size_of_a_directory(ground: FilesystemGround) -> None:
    """Tried on an empty directory."""
    answer = ground.subject.get_file_size(ground.make_dir())
    expect_code(answer, "get_file_size(D)", Code.FAILED_PRECONDITION)


@CHECKS.check("FS-277", Level.WORKS, needs=_SIZE, rows=(177,))
def has_no_size_of_a_missing_file(ground: FilesystemGround) -> None:
    """Tried on a name that does not exist."""
    answer = ground.subject.get_file_size(ground.missing())
    expect_code(answer, "get_file_size(X)", Code.NOT_FOUND)


@CHECKS.check("FS-352", Level.WORKS, needs=_SIZE, traits=_BELOW_FILE, rows=(177,))
def has_no_size_below_a_file(ground: FilesystemGround) -> None:
    """Tried on a name below a file."""
    answer = ground.subject.get_file_size(ground.below_file())
    expect_code(answer, "get_file_size(F/x)", Code.FAILED_PRECONDITION)


@CHECKS.check("FS-278", Level.WORKS, needs=_STAT, traits=_WRITES, rows=(178,))
def agrees_with_stat(ground: FilesystemGround) -> None:
    """Tried on a file of 9 bytes, and on a directory."""
    file, directory = ground.make_file("nine", b"nine byte"), ground.make_full_dir()
    statistics = _stat(ground, file, "F")
    if ground.subject.offers("get_file_size"):
        size = expect_ok(ground.subject.get_file_size(file), "get_file_size(F)")
        expect_equal(
            size, statistics.length, "get_file_size(F), which must be the length that stat gives,"
        )
    if ground.subject.offers("is_directory"):
        for uri in (file, directory):
            answer = ground.subject.is_directory(uri)
            found, told = answer.ok and bool(answer.value), _stat(ground, uri, uri).is_directory
            expect_equal(
                found, told, f"is_directory({uri}), which must be the flag that stat gives,"
            )
