"""Checks of `path_exists` and `paths_exist`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import expect_code, expect_ok
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.expectation import expect, expect_equal
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.check.filesystem.ground import FilesystemGround

CHECKS = CheckList("filesystem", "existence")

_ONE = ("path_exists",)
_MANY = ("paths_exist",)
_WRITES = ("writes",)
_PATHS = 1000  # of one call


def _expect_code(ground: FilesystemGround, uri: str, words: str, code: Code) -> None:
    expect_code(ground.subject.path_exists(uri), f"path_exists({words})", code)


@CHECKS.check("FS-256", Level.WORKS, needs=_ONE, traits=_WRITES, rows=(156,))
def finds_a_file(ground: FilesystemGround) -> None:
    """Tried on a file."""
    _expect_code(ground, ground.make_file(), "F", Code.OK)


@CHECKS.check("FS-353", Level.WORKS, needs=_ONE, traits=("writes", "directories"), rows=(156,))
def finds_a_directory(ground: FilesystemGround) -> None:
    """Tried on an empty directory."""
    _expect_code(ground, ground.make_dir(), "D", Code.OK)


@CHECKS.check("FS-257", Level.WORKS, needs=_ONE, rows=(157,))
def misses_what_is_missing(ground: FilesystemGround) -> None:
    """Tried on a missing name, and on a name in a missing directory."""
    _expect_code(ground, ground.missing(), "X", Code.NOT_FOUND)
    _expect_code(ground, ground.below_missing(), "X/y", Code.NOT_FOUND)


@CHECKS.check(
    "FS-258", Level.WORKS, needs=_ONE, traits=("writes", "file-as-directory"), rows=(158,)
)
def refuses_a_name_below_a_file(ground: FilesystemGround) -> None:
    """Tried on a name below a file."""
    _expect_code(ground, ground.below_file(), "F/x", Code.FAILED_PRECONDITION)


@CHECKS.check("FS-259", Level.WORKS, needs=_ONE, traits=_WRITES, rows=(159,))
def compares_whole_names(ground: FilesystemGround) -> None:
    """`fi` beside `file`, `dir` beside `directory/file`."""
    ground.make_file("file")
    ground.make_full_dir("directory")
    _expect_code(ground, ground.path("fi"), "fi", Code.NOT_FOUND)
    _expect_code(ground, ground.path("dir"), "dir", Code.NOT_FOUND)


def _expect_answers(
    ground: FilesystemGround, uris: Sequence[str], codes: Sequence[Code], words: str
) -> None:
    """Ask for all with statuses, and demand these codes."""
    answer = ground.subject.paths_exist(uris)
    what = f"paths_exist({words})"
    expect_code(answer, what, Code.OK)
    expect_equal(answer.value, [int(code) for code in codes], f"the list of statuses of {what}")
    expected = all(code is Code.OK for code in codes)
    expect_equal(bool(answer.returned), expected, f"what {what} returned")


def _all_exist(ground: FilesystemGround, uris: Sequence[str], words: str) -> bool:
    """Ask for all without statuses."""
    answer = ground.subject.paths_exist(uris, with_statuses=False)
    expect_code(answer, f"paths_exist({words}) without statuses", Code.OK)
    return bool(answer.returned)


@CHECKS.check("FS-260", Level.WORKS, needs=_MANY, traits=_WRITES, rows=(160,))
def finds_all(ground: FilesystemGround) -> None:
    """Tried on two files and a directory."""
    uris = [ground.make_file(), ground.make_file("G"), ground.make_full_dir()]
    expect(_all_exist(ground, uris, "F, G, N"), "paths_exist is false though all exist")
    _expect_answers(ground, uris, [Code.OK] * 3, "F, G, N")


@CHECKS.check("FS-261", Level.WORKS, needs=_MANY, traits=_WRITES, rows=(161,))
def tells_of_each_path(ground: FilesystemGround) -> None:
    """Tried on a file and a directory between two missing names."""
    uris = [ground.missing(), ground.make_file(), ground.path("Y"), ground.make_full_dir()]
    codes = [Code.NOT_FOUND, Code.OK, Code.NOT_FOUND, Code.OK]
    _expect_answers(ground, uris, codes, "X, F, Y, N")


@CHECKS.check(
    "FS-355", Level.WORKS, passes=RAW, needs=_MANY, rows=(161,),
    traits=("writes", "directories", "file-as-directory"),
)  # fmt: skip
def tells_of_each_failure(ground: FilesystemGround) -> None:
    """Tried by slots alone: through the host, a name below a file fails the whole call."""
    below = ground.below_file()
    uris = [ground.make_dir(), ground.path("F"), below, ground.missing()]
    codes = [Code.OK, Code.OK, Code.FAILED_PRECONDITION, Code.NOT_FOUND]
    _expect_answers(ground, uris, codes, "D, F, F/x, X")


@CHECKS.check("FS-262", Level.WORKS, needs=_MANY, traits=_WRITES, rows=(162,))
def misses_one_of_many(ground: FilesystemGround) -> None:
    """Tried with a missing name at each position, without statuses."""
    file, other, missing = ground.make_file(), ground.make_file("G"), ground.missing()
    for uris in ([file, missing, other], [missing, file], [file, missing]):
        found = _all_exist(ground, uris, "F, X")
        expect(not found, "paths_exist without statuses is true though a path is missing")


@CHECKS.check("FS-263", Level.WORKS, needs=_MANY, rows=(163,))
def finds_all_of_none(ground: FilesystemGround) -> None:
    """Tried with an empty list of paths."""
    expect(_all_exist(ground, [], "nothing"), "paths_exist of no paths is false")
    _expect_answers(ground, [], [], "nothing")


@CHECKS.check("FS-264", Level.WORKS, needs=_MANY, traits=_WRITES, rows=(164,))
def agrees_with_path_exists(ground: FilesystemGround) -> None:
    """All that there is in an ordinary tree, and some that is not."""
    directory = ground.make_full_dir()
    uris = [directory, f"{directory}/file", f"{directory}/nothing", ground.root, ground.missing()]
    singly = [ground.subject.path_exists(uri).code for uri in uris]
    answer = ground.subject.paths_exist(uris)
    expect_equal(expect_ok(answer, "paths_exist"), singly, "the list of statuses of paths_exist")
    expect(answer.touched is not False, "paths_exist leaves statuses unset")
    existing = [uri for uri, code in zip(uris, singly, strict=True) if code == Code.OK]
    expect(_all_exist(ground, existing, "existing"), "paths_exist is false where path_exists is OK")


@CHECKS.check("FS-265", Level.WORKS, needs=_MANY, traits=_WRITES, rows=(165,))
def takes_many_paths(ground: FilesystemGround) -> None:
    """Tried with one path given twice, and with 1000 paths of which the last is missing."""
    file = ground.make_file("again")
    _expect_answers(ground, [file, file], [Code.OK] * 2, "F, F")
    many = min(_PATHS, ground.target.options.get("many", _PATHS))
    codes = [int(Code.OK)] * (many - 1) + [int(Code.NOT_FOUND)]
    answer = ground.subject.paths_exist([file] * (many - 1) + [ground.missing()])
    statuses = expect_ok(answer, f"paths_exist({many - 1} times F, X)")
    right = next((i for i in range(many) if statuses[i : i + 1] != codes[i : i + 1]), many)
    expect_equal(right, many, "the number of leading statuses that are right")
    expect(not answer.returned, "paths_exist is true though the last path is missing")
