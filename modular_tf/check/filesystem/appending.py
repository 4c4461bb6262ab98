"""Checks of files that are opened for writing at their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import expect_ok
from modular_tf.check.check import CheckList
from modular_tf.check.expectation import expect, expect_equal
from modular_tf.check.filesystem.expected_state import expect_content, expect_empty
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.filesystem.open_files import expect_refused, writer_of
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

CHECKS = CheckList("filesystem", "appending")

_OPEN = ("new_appendable_file",)
_TRAITS = ("writes", "append")


def _append(ground: FilesystemGround, uri: str, added: bytes, what: str) -> None:
    writer = expect_ok(ground.subject.new_appendable_file(uri), f"new_appendable_file({what})")
    expect(writer is not None, f"new_appendable_file({what}) is OK and left no file")
    try:
        if added:
            expect_ok(writer.append(added), "append")
        expect_ok(writer.close(), "close")
    finally:
        writer.cleanup()


def _expect_appended(
    ground: FilesystemGround, uri: str, added: bytes, expected: bytes, what: str
) -> None:
    _append(ground, uri, added, what)
    expect_content(ground, uri, expected, f"the content of {what} after it")


@CHECKS.check("FS-192", Level.WORKS, needs=_OPEN, traits=(*_TRAITS, "empty-files"), rows=(92,))
def creates_a_file(ground: FilesystemGround) -> None:
    """Tried on a name that does not exist."""
    uri = ground.path("log")
    _append(ground, uri, b"", "X")
    expect(ground.exists(uri), "a file that was opened for appending and closed is not there")
    expect_empty(ground, uri, "the length of a file that nothing was appended to")


@CHECKS.check("FS-193", Level.WORKS, needs=_OPEN, traits=_TRAITS, rows=(93,))
def keeps_what_is_there(ground: FilesystemGround) -> None:
    """Tried on a file, with four more bytes."""
    _expect_appended(ground, ground.make_file("continued"), b"qwer", b"abcdqwer", "F")


@CHECKS.check("FS-194", Level.WORKS, needs=(*_OPEN, "tell"), traits=_TRAITS, rows=(94,))
def tells_the_end(ground: FilesystemGround) -> None:
    """Tried on a file, before anything is appended."""
    with writer_of(ground, ground.make_file("end-told"), append=True) as writer:
        position = expect_ok(writer.tell(), "tell")
        writer.close()
    expect_equal(position, len(CONTENT), "tell of a file of 4 bytes, opened for appending")


@CHECKS.check("FS-195", Level.WORKS, needs=_OPEN, traits=(*_TRAITS, "parents"), rows=(95,))
def misses_a_missing_directory(ground: FilesystemGround) -> None:
    """Tried on a name in a directory that does not exist."""
    answer = ground.subject.new_appendable_file(ground.below_missing())
    expect_refused(answer, "new_appendable_file(X/y)", Code.NOT_FOUND)


@CHECKS.check("FS-196", Level.WORKS, needs=_OPEN, traits=(*_TRAITS, "directories"), rows=(96,))
def refuses_a_directory(ground: FilesystemGround) -> None:
    """Tried on an empty directory."""
    answer = ground.subject.new_appendable_file(ground.make_dir())
    expect_refused(answer, "new_appendable_file(D)", Code.FAILED_PRECONDITION)


@CHECKS.check(
    "FS-197", Level.WORKS, needs=_OPEN, traits=(*_TRAITS, "file-as-directory"), rows=(97,)
)
def refuses_a_name_below_a_file(ground: FilesystemGround) -> None:
    """Tried on a name below a file."""
    answer = ground.subject.new_appendable_file(ground.below_file())
    expect_refused(answer, "new_appendable_file(F/x)", Code.FAILED_PRECONDITION)


@CHECKS.check("FS-198", Level.WORKS, needs=_OPEN, traits=_TRAITS, rows=(98,))
def changes_nothing_without_appends(ground: FilesystemGround) -> None:
    """Tried on a file that is opened and closed."""
    _expect_appended(ground, ground.make_file("untouched"), b"", CONTENT, "F")
