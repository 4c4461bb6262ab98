"""Demands on what is there after an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.expectation import Blocked, Deviation, expect, expect_equal

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround


def expect_content(ground: FilesystemGround, uri: str, content: bytes, what: str) -> None:
    """Demand that a file holds exactly some bytes.

    Args:
        ground: Where it stands.
        uri: The file's.
        content: What it must hold.
        what: Which content that is, such as `the content of F after the refusal`.

    Raises:
        Deviation: It holds others, or cannot be read any more.
    """
    try:
        found = ground.content(uri)
    except Blocked as lost:
        raise Deviation(f"{what} cannot be read", found=f"{lost}: {lost.found}") from lost
    expect_equal(found, content, what)


def expect_empty(ground: FilesystemGround, uri: str, what: str) -> None:
    """Demand that a file has no bytes, by its statistics where there are any.

    Stores that cannot read an empty file still have it.

    Args:
        ground: Where it stands.
        uri: The file's.
        what: What has no bytes, such as `the length of a new file`.

    Raises:
        Deviation: It has some, or cannot be looked at.
    """
    if not ground.subject.offers("stat"):
        expect_content(ground, uri, b"", what)
        return
    answer = ground.subject.stat(uri)
    expect(answer.ok and answer.value is not None, f"{what} cannot be had", found=answer.message)
    expect_equal(answer.value.length, 0, what)


def expect_missing(ground: FilesystemGround, uri: str, message: str) -> None:
    """Demand that nothing is there; the message says what it means that something is."""
    expect(not ground.exists(uri), message)


def expect_directory(ground: FilesystemGround, uri: str, message: str) -> None:
    """Demand that a directory is there; the message says what it means that none is.

    A plugin without `stat` is taken at the word of `path_exists`.
    """
    if not ground.subject.offers("stat"):
        expect(ground.exists(uri), message)
        return
    answer = ground.subject.stat(uri)
    expect(answer.ok and answer.value is not None and answer.value.is_directory, message)
