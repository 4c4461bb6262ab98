"""Checks of `rename_file`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found, expect_code, expect_ok
from modular_tf.check.check import HOST, CheckList
from modular_tf.check.expectation import Unsupported, advise, expect, note
from modular_tf.check.filesystem.access_rights import read_only
from modular_tf.check.filesystem.expected_state import (
    expect_content,
    expect_directory,
    expect_missing,
)
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

CHECKS = CheckList("filesystem", "renaming")

_NEEDS = ("rename_file",)
_TRAITS = ("writes", "rename")


def _expect_moved(ground: FilesystemGround, source: str, target: str) -> None:
    expect_ok(ground.subject.rename_file(source, target), f"rename_file({source}, {target})")
    expect_missing(ground, source, "the renamed file still has its old name")
    expect_content(ground, target, CONTENT, "the content under the new name")


def _expect_kept(ground: FilesystemGround, uri: str) -> None:
    expect_content(ground, uri, CONTENT, f"the content of {uri} after the refusal")


@CHECKS.check("FS-235", Level.WORKS, needs=_NEEDS, traits=_TRAITS, rows=(135,))
def moves_a_file(ground: FilesystemGround) -> None:
    """Tried from a file to a name that does not exist."""
    _expect_moved(ground, ground.make_file(), ground.path("moved"))


@CHECKS.check("FS-236", Level.WORKS, needs=_NEEDS, traits=_TRAITS, rows=(136,))
def replaces_a_file(ground: FilesystemGround) -> None:
    """Tried from a file to a longer one."""
    target = ground.make_file("replaced", b"something longer")
    _expect_moved(ground, ground.make_file(), target)


@CHECKS.check("FS-237", Level.WORKS, needs=_NEEDS, traits=_TRAITS, rows=(137,))
def misses_a_missing_file(ground: FilesystemGround) -> None:
    """Tried from a name that does not exist."""
    target = ground.path("Y")
    answer = ground.subject.rename_file(ground.missing(), target)
    expect_code(answer, "rename_file(X, Y)", Code.NOT_FOUND)
    expect_missing(ground, target, "the refused rename_file(X, Y) left a file Y")


@CHECKS.check("FS-238", Level.WORKS, needs=_NEEDS, traits=(*_TRAITS, "parents"), rows=(138,))
def misses_a_missing_directory(ground: FilesystemGround) -> None:
    """Tried from a file into a missing directory."""
    source = ground.make_file()
    answer = ground.subject.rename_file(source, ground.below_missing())
    expect_code(answer, "rename_file(F, X/y)", Code.NOT_FOUND)
    _expect_kept(ground, source)


@CHECKS.check("FS-239", Level.WORKS, needs=_NEEDS, traits=(*_TRAITS, "directories"), rows=(139,))
def refuses_directories(ground: FilesystemGround) -> None:
    """Tried from a directory, and from a file to a directory."""
    directory, file, target = ground.make_dir(), ground.make_file(), ground.missing()
    answer = ground.subject.rename_file(directory, target)
    expect_code(answer, "rename_file(D, X)", Code.FAILED_PRECONDITION)
    expect(ground.exists(directory), "the refused rename_file(D, X) lost D")
    expect_missing(ground, target, "the refused rename_file(D, X) left X")
    answer = ground.subject.rename_file(file, directory)
    if answer.ok and _is_by_default(ground):  # a default copies into a directory
        expect_content(ground, f"{directory}/F", CONTENT, "D/F after rename_file(F, D)")
        return
    expect_code(answer, "rename_file(F, D)", Code.FAILED_PRECONDITION)
    expect_directory(ground, directory, "rename_file(F, D) replaced D")
    _expect_kept(ground, file)


def _is_by_default(ground: FilesystemGround) -> bool:
    return ground.target.reached is Pass.HOST and not ground.subject.has("rename_file")


@CHECKS.check(
    "FS-240", Level.WORKS, needs=_NEEDS, traits=(*_TRAITS, "file-as-directory"), rows=(140,)
)
def refuses_names_below_files(ground: FilesystemGround) -> None:
    """Tried from a name below a file, and to one."""
    below, source = ground.below_file(), ground.make_file("G")
    answer = ground.subject.rename_file(below, ground.path("Y"))
    expect_code(answer, "rename_file(F/x, Y)", Code.FAILED_PRECONDITION)
    answer = ground.subject.rename_file(source, below)
    expect_code(answer, "rename_file(G, F/x)", Code.FAILED_PRECONDITION)
    _expect_kept(ground, source)


@CHECKS.check("FS-241", Level.WORKS, needs=_NEEDS, traits=_TRAITS, rows=(141,))
def survives_its_own_name(ground: FilesystemGround) -> None:
    """Tried from a file to itself."""
    file = ground.make_file()
    answer = ground.subject.rename_file(file, file)
    expect(ground.exists(file), "rename_file(F, F) lost the file")
    expect_content(ground, file, CONTENT, "the content after rename_file(F, F)")
    advise(
        answer.ok, "rename_file(F, F) is refused", expected="OK (0)", found=code_found(answer)
    )  # fmt: skip


@CHECKS.check("FS-242", Level.WORKS, needs=_NEEDS, traits=_TRAITS, rows=(142,))
def moves_between_directories(ground: FilesystemGround) -> None:
    """Tried on a file in one directory, with a target in another."""
    source_dir, target_dir = ground.make_full_dir(), ground.make_full_dir("M")
    ground.make_file("N/F")
    _expect_moved(ground, f"{source_dir}/F", f"{target_dir}/arrived")


@CHECKS.check("FS-335", Level.WORKS, needs=_NEEDS, traits=_TRAITS)
def leaves_longer_names_alone(ground: FilesystemGround) -> None:
    """Tried on `one` beside `one-more`: stores that move by prefix move both."""
    beside = ground.make_file("one-more", b"beside")
    _expect_moved(ground, ground.make_file("one"), ground.path("Y"))
    expect_content(ground, beside, b"beside", "the content of one-more after rename_file(one, Y)")


@CHECKS.check("FS-243", Level.ROBUST, passes=HOST, traits=_TRAITS, rows=(143,))
def tells_of_half_a_rename(ground: FilesystemGround) -> None:
    """Tried on a directory without permission to delete, where the store has permissions."""
    if ground.subject.has("rename_file"):
        raise Unsupported("the plugin renames by itself: nothing is done by copy and delete")
    directory, target = ground.make_full_dir("locked"), ground.path("halfway")
    with suppress(Unsupported), read_only(ground, directory):
        answer = ground.subject.rename_file(f"{directory}/file", target)
        expect(not answer.ok, "a rename that could not delete its source is OK")
        expect_content(ground, f"{directory}/file", CONTENT, "the content of the source")
    note("a rename is a copy and a deletion here, which others can see half done")
