"""Checks of `copy_file`."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import expect_code, expect_ok
from modular_tf.check.check import CheckList
from modular_tf.check.expectation import Unsupported, expect, expect_equal, note
from modular_tf.check.filesystem.expected_state import (
    expect_content,
    expect_directory,
    expect_missing,
)
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.filesystem.local_disk import file_size_limit, local_path
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

CHECKS = CheckList("filesystem", "copying")

_NEEDS = ("copy_file",)
_TRAITS = ("writes",)
_LONG = 5 << 20  # longer than the buffers of all hosts and plugins that are known
_BEYOND_INT = (1 << 31) + 4096  # bytes; more than 32 bits with a sign can count
_LIMIT = 1 << 20  # bytes that a file may have while a copy is to fail


def _expect_copied(ground: FilesystemGround, source: str, target: str, content: bytes) -> None:
    expect_ok(ground.subject.copy_file(source, target), f"copy_file({source}, {target})")
    expect_content(ground, target, content, "the content of the copy")
    expect_content(ground, source, content, "the content of the copied file")


def _expect_refused(
    ground: FilesystemGround, source: str, target: str, words: str, code: Code
) -> None:
    expect_code(ground.subject.copy_file(source, target), f"copy_file({words})", code)


@CHECKS.check("FS-244", Level.WORKS, needs=_NEEDS, traits=_TRAITS, rows=(144,))
def copies_a_file(ground: FilesystemGround) -> None:
    """Tried from a file to a name that does not exist."""
    _expect_copied(ground, ground.make_file(), ground.path("copied"), CONTENT)


@CHECKS.check("FS-245", Level.WORKS, needs=_NEEDS, traits=_TRAITS, rows=(145,))
def replaces_a_longer_file(ground: FilesystemGround) -> None:
    """Tried from a file to a longer one."""
    target = ground.make_file("longer", b"something longer than that")
    _expect_copied(ground, ground.make_file(), target, CONTENT)


@CHECKS.check("FS-246", Level.WORKS, needs=_NEEDS, traits=_TRAITS, rows=(146,))
def misses_a_missing_file(ground: FilesystemGround) -> None:
    """Tried from a name that does not exist."""
    target = ground.path("Y")
    _expect_refused(ground, ground.missing(), target, "X, Y", Code.NOT_FOUND)
    expect_missing(ground, target, "the refused copy_file(X, Y) left a file Y")


@CHECKS.check("FS-247", Level.WORKS, needs=_NEEDS, traits=(*_TRAITS, "directories"), rows=(147,))
def refuses_a_directory(ground: FilesystemGround) -> None:
    """Tried from a directory."""
    directory, target = ground.make_dir(), ground.missing()
    _expect_refused(ground, directory, target, "D, X", Code.FAILED_PRECONDITION)
    expect_missing(ground, target, "the refused copy_file(D, X) left X")


@CHECKS.check("FS-248", Level.WORKS, needs=_NEEDS, traits=(*_TRAITS, "directories"), rows=(148,))
def keeps_a_directory_that_is_the_target(ground: FilesystemGround) -> None:
    """Tried from a file to a directory."""
    file, directory = ground.make_file(), ground.make_dir()
    answer = ground.subject.copy_file(file, directory)
    expect_code(answer, "copy_file(F, D)", Code.FAILED_PRECONDITION, Code.OK)
    expect_directory(ground, directory, "copy_file(F, D) replaced D")
    if not answer.ok:
        return
    copied = f"{directory}/F"
    expect(ground.exists(copied), "copy_file(F, D) is OK, and there is no D/F")
    expect_content(ground, copied, CONTENT, "the content of D/F after copy_file(F, D)")
    if ground.subject.has("copy_file"):
        note("copy_file(F, D) copies into the directory; TensorFlow's test wants a refusal")


@CHECKS.check(
    "FS-249", Level.WORKS, needs=_NEEDS, traits=(*_TRAITS, "file-as-directory"), rows=(149,)
)
def refuses_names_below_files(ground: FilesystemGround) -> None:
    """Tried from a name below a file, and to one."""
    below, target, refused = ground.below_file(), ground.path("Y"), Code.FAILED_PRECONDITION
    _expect_refused(ground, below, target, "F/x, Y", refused)
    _expect_refused(ground, ground.make_file("G"), below, "G, F/x", refused)


@CHECKS.check("FS-250", Level.WORKS, needs=_NEEDS, traits=(*_TRAITS, "parents"), rows=(150,))
def misses_a_missing_directory(ground: FilesystemGround) -> None:
    """Tried from a file into a missing directory."""
    source = ground.make_file()
    _expect_refused(ground, source, ground.below_missing(), "F, X/y", Code.NOT_FOUND)


@CHECKS.check("FS-251", Level.WORKS, needs=_NEEDS, traits=(*_TRAITS, "empty-files"), rows=(151,))
def copies_an_empty_file(ground: FilesystemGround) -> None:
    """Tried on an empty file."""
    source, target = ground.make_empty_file(), ground.path("empty")
    expect_ok(ground.subject.copy_file(source, target), "copy_file(E, X)")
    expect(ground.exists(target), "copy_file(E, X) is OK, and there is no X")
    expect_content(ground, target, b"", "the content of the copy")


@CHECKS.check("FS-252", Level.WORKS, needs=_NEEDS, traits=_TRAITS, rows=(152,))
def survives_its_own_name(ground: FilesystemGround) -> None:
    """Tried from a file to itself; any code will do."""
    file = ground.make_file()
    ground.subject.copy_file(file, file)
    expect(ground.exists(file), "copy_file(F, F) lost the file")
    expect_content(ground, file, CONTENT, "the content after copy_file(F, F)")


@CHECKS.check("FS-253", Level.WORKS, needs=_NEEDS, traits=_TRAITS, rows=(153,))
def copies_a_long_file(ground: FilesystemGround) -> None:
    """Tried with 5 MiB."""
    length = int(ground.target.options.get("large_bytes", _LONG))
    content = ground.random.randbytes(length)
    source, target = ground.make_file("long", content), ground.path("copied_long")
    expect_ok(ground.subject.copy_file(source, target), f"copy_file of {length} bytes")
    copied = ground.content(target)
    expect_equal(len(copied), length, "the length of the copy")
    found, expected = sha256(copied).hexdigest(), sha256(content).hexdigest()
    expect_equal(found, expected, "the SHA-256 digest of the copy")


@CHECKS.check("FS-254", Level.ROBUST, needs=_NEEDS, traits=_TRAITS, rows=(154,), seconds=600)
def copies_beyond_two_gigabytes(ground: FilesystemGround) -> None:
    """Only where the option `large_files` asks for it: true, or a length in bytes."""
    wished = ground.target.options.get("large_files")
    if not wished:
        raise Unsupported("files of more than 2 GiB are tried with the option large_files only")
    length = _BEYOND_INT if wished is True else int(wished)
    source, target = _make_sparse(ground, length), ground.path("beyond")
    expect_ok(ground.subject.copy_file(source, target), f"copy_file of {length} bytes")
    expect_equal(ground.subject.stat(target).value.length, length, "the length of the copy")


def _make_sparse(ground: FilesystemGround, length: int) -> str:
    """Make a file of zeros: of holes on a local disk, of bytes elsewhere."""
    uri = ground.make_empty_file("sparse")
    path = local_path(ground, uri)
    if path is not None:
        os.truncate(path, length)
        return uri
    writer = expect_ok(ground.subject.new_writable_file(uri), "new_writable_file")
    block = bytes(min(length, 1 << 24))
    for offset in range(0, length, len(block)):
        expect_ok(writer.append(block[: length - offset]), "append")
    expect_ok(writer.close(), "close")
    writer.cleanup()
    return uri


@CHECKS.check("FS-255", Level.ROBUST, needs=_NEEDS, traits=_TRAITS, rows=(155,))
def keeps_the_target_of_a_failure(ground: FilesystemGround) -> None:
    """Tried from a missing name; on a local disk also with a limit on the length of files."""
    target = ground.make_file("kept")
    answer = ground.subject.copy_file(ground.missing(), target)
    expect(not answer.ok, "copy_file(X, F) is OK")
    expect_content(ground, target, CONTENT, "the target's content after copy_file(X, F)")
    source = ground.make_file("long", bytes(2 * _LIMIT))
    if local_path(ground, source) is None:
        return
    with file_size_limit(_LIMIT):
        answer = ground.subject.copy_file(source, target)
    by_default = ground.target.reached is Pass.HOST and not ground.subject.has("copy_file")
    if answer.ok or (by_default and not ground.exists(target)):
        return  # the host's own copy deletes what it cannot complete
    expect_content(ground, target, CONTENT, "the target's content after a copy that failed")
