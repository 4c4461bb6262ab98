"""Files that checks open, and give back whatever happens."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found, expect_code, expect_ok
from modular_tf.check.expectation import Blocked, Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.ground import FilesystemGround
    from modular_tf.check.filesystem.subject import Reader, Region, Writer


@contextmanager
def reader_of(ground: FilesystemGround, uri: str) -> Iterator[Reader]:
    """Open a file for reading within the block.

    Raises:
        Blocked: It cannot be opened; another check is about that.
        Unsupported: The plugin opens none.
    """
    reader = handle(ground.subject.new_random_access_file(uri), f"new_random_access_file({uri})")
    try:
        yield reader
    finally:
        reader.close()


@contextmanager
def writer_of(ground: FilesystemGround, uri: str, *, append: bool = False) -> Iterator[Writer]:
    """Open a file for writing within the block; closing it is the block's, cleanup is not.

    Raises:
        Blocked: It cannot be opened; another check is about that.
        Unsupported: The plugin opens none.
    """
    slot = "new_appendable_file" if append else "new_writable_file"
    writer = handle(getattr(ground.subject, slot)(uri), f"{slot}({uri})")
    try:
        yield writer
    finally:
        writer.cleanup()


def open_writer(ground: FilesystemGround, name: str) -> Writer:
    """Open a file below the root for writing; closing and cleanup are the caller's.

    Raises:
        Blocked: It cannot be opened; another check is about that.
        Unsupported: The plugin opens none.
    """
    uri = ground.path(name)
    writer: Writer = handle(ground.subject.new_writable_file(uri), f"new_writable_file({uri})")
    return writer


@contextmanager
def region_of(ground: FilesystemGround, uri: str) -> Iterator[Region]:
    """Map a file within the block.

    Raises:
        Blocked: It cannot be mapped; another check is about that.
        Unsupported: The plugin maps none.
    """
    slot = "new_read_only_memory_region_from_file"
    region = handle(ground.subject.new_read_only_memory_region_from_file(uri), f"{slot}({uri})")
    try:
        yield region
    finally:
        region.close()


def handle(answer: Answer, what: str) -> Any:
    """Return what an opening gave, where that is only a step of a check.

    Args:
        answer: Of the opening.
        what: It was, with its arguments.

    Raises:
        Blocked: It failed.
        Unsupported: It is UNIMPLEMENTED.
    """
    expect_step(answer, what)
    if answer.value is None:
        raise Blocked(f"{what} is OK and left no file")
    return answer.value


def expect_step(answer: Answer, what: str) -> None:
    """Go on where an operation worked that is only a step of a check.

    Args:
        answer: Of the operation.
        what: It was, with its arguments.

    Raises:
        Blocked: It failed; another check is about that.
        Unsupported: It is UNIMPLEMENTED.
    """
    if answer.code == Code.UNIMPLEMENTED:
        raise Unsupported(f"{what} is UNIMPLEMENTED")
    if not answer.ok:
        raise Blocked(f"{what} failed", found=code_found(answer))


def expect_refused(answer: Answer, what: str, *codes: Code) -> None:
    """Demand that an opening was refused; one that was not is closed.

    Args:
        answer: Of the opening.
        what: It was, with its arguments.
        *codes: With which codes it may be refused.

    Raises:
        Deviation: It was not, or with another code.
        Unsupported: It is UNIMPLEMENTED.
    """
    if answer.ok and answer.value is not None:
        answer.value.close()
        if hasattr(answer.value, "cleanup"):
            answer.value.cleanup()
    expect_code(answer, what, *codes)


def append_and_close(writer: Writer, *pieces: bytes) -> None:
    """Append pieces and close.

    Raises:
        Deviation: One of it failed.
    """
    for piece in pieces:
        expect_ok(writer.append(piece), f"append of {len(piece)} bytes")
    expect_ok(writer.close(), "close")
