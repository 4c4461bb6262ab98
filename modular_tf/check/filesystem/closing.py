"""Checks of how writing a file ends: closed, abandoned, out of room."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found, expect_code, expect_ok
from modular_tf.check.check import HOST, RAW, CheckList
from modular_tf.check.expectation import Unsupported, advise, expect, expect_equal, note
from modular_tf.check.filesystem.expected_state import expect_content
from modular_tf.check.filesystem.full_store import file_without_room
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.filesystem.open_files import (
    append_and_close,
    expect_step,
    open_writer,
    writer_of,
)
from modular_tf.check.level import Level
from modular_tf.check.repetition import expect_no_leak, rounds_of

if TYPE_CHECKING:
    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.ground import FilesystemGround

CHECKS = CheckList("filesystem", "closing")

_OPEN = ("new_writable_file",)
_APPEND = (*_OPEN, "append", "TF_WritableFileOps.close")
_WRITES = ("writes",)
_MOST_ABANDONED = 256
_POOL = 32  # files after which a plugin has all the threads that it will keep
_OPEN_AT_ONCE = 16
_LONGER_THAN_BUFFERS = bytes(1 << 20)


@CHECKS.check("FS-184", Level.WORKS, needs=_APPEND, traits=_WRITES, rows=(84,))
def cleans_up_what_is_closed(ground: FilesystemGround) -> None:
    """Close of several files, then cleanup of all, the last one first."""
    names = ("ended-1", "ended-2", "ended-3")
    writers = [open_writer(ground, name) for name in names]
    for writer in writers:
        append_and_close(writer, CONTENT)
    for writer in reversed(writers):
        writer.cleanup()
    for name in names:
        expect_content(ground, ground.path(name), CONTENT, "the content after cleanup")


@CHECKS.check("FS-185", Level.ROBUST, passes=RAW, needs=_OPEN, traits=_WRITES, rows=(85,))
def cleans_up_what_is_abandoned(ground: FilesystemGround) -> None:
    """Cleanup without close; what becomes of the bytes is worth knowing."""
    uri = ground.path("abandoned")

    def abandon() -> None:
        with writer_of(ground, uri) as writer:
            writer.append(CONTENT)

    rounds = rounds_of(ground.target.options, _MOST_ABANDONED)
    expect_no_leak(abandon, rounds, "cleanup without close")
    kept = ground.exists(uri) and ground.content(uri) == CONTENT
    if not kept:
        note("a file that is cleaned up without close loses what was appended to it")


@CHECKS.check("FS-336", Level.ROBUST, needs=_APPEND, traits=_WRITES)
def leaves_nothing_of_what_is_closed(ground: FilesystemGround) -> None:
    """One file, written and closed again and again."""

    def write() -> None:
        with writer_of(ground, ground.path("written-often")) as writer:
            append_and_close(writer, CONTENT)

    for _ in range(_POOL):
        write()
    rounds = rounds_of(ground.target.options, _MOST_ABANDONED)
    expect_no_leak(write, rounds, "writing and closing a file")


@CHECKS.check("FS-186", Level.WORKS, passes=RAW, needs=_APPEND, traits=_WRITES, rows=(86,))
def leaves_cleanup_to_the_host(ground: FilesystemGround) -> None:
    """Many files that are closed before the first is cleaned up; memory freed twice shows then."""
    writers = [open_writer(ground, f"handle-{number}") for number in range(_OPEN_AT_ONCE)]
    handles = [getattr(writer, "handle", None) for writer in writers]
    for writer in writers:
        expect_step(writer.append(CONTENT), "append")
        expect_step(writer.close(), "close")
    left = [getattr(writer, "handle", None) for writer in writers]
    expect_equal(left, handles, "plugin_file after close")
    for writer in writers:
        writer.cleanup()


@CHECKS.check("FS-187", Level.ROBUST, needs=_APPEND, traits=_WRITES, rows=(87,))
def cleans_up_after_a_failing_close(ground: FilesystemGround) -> None:
    """A few bytes where there is no room: most plugins learn of it at close."""
    with file_without_room(ground, "full-at-close") as uri, writer_of(ground, uri) as writer:
        answers = [writer.append(CONTENT), writer.close()]
        writer.cleanup()
    _expect_told(answers)
    again = ground.make_file("after-failure")
    expect_content(ground, again, CONTENT, "the content of the next file")


def _expect_told(answers: list[Answer]) -> None:
    expect(
        not all(answer.ok for answer in answers),
        "a file is written and closed on a full store without an error",
        expected="another code than OK from append, flush or close",
    )


@CHECKS.check("FS-188", Level.ROBUST, needs=_APPEND, traits=_WRITES, rows=(88,))
def tells_that_there_is_no_room(ground: FilesystemGround) -> None:
    """Tried with 1 MiB on a full store."""
    with file_without_room(ground, "full") as uri, writer_of(ground, uri) as writer:
        answers = [writer.append(_LONGER_THAN_BUFFERS)]
        with suppress(Unsupported):
            answers.append(writer.flush())
        answers.append(writer.close())
    _expect_told(answers)
    expect(
        Code.RESOURCE_EXHAUSTED in [answer.code for answer in answers],
        "no call reports that the store is full",
        expected="RESOURCE_EXHAUSTED (8) from append, flush or close",
        found=", ".join(code_found(answer) for answer in answers),
    )
    advise(
        not answers[-1].ok,
        "close of a file that is not whole is OK, though an append before it failed",
        expected="the same error again",
        found=code_found(answers[-1]),
    )


@CHECKS.check("FS-189", Level.WORKS, passes=HOST, needs=_APPEND, traits=_WRITES, rows=(89,))
def refuses_what_is_closed(ground: FilesystemGround) -> None:
    """Each operation after close; flush and sync where the plugin has none."""
    uri = ground.path("guarded")
    with writer_of(ground, uri) as writer:
        expect_step(writer.append(CONTENT), "append")
        expect_ok(writer.flush(), "flush, which a plugin may lack")
        expect_ok(writer.sync(), "sync, which a plugin may lack")
        expect_ok(writer.close(), "close")
        expect_code(writer.close(), "close, again", Code.OK, Code.FAILED_PRECONDITION)
        refused = Code.FAILED_PRECONDITION
        expect_code(writer.append(b"more"), "append after close", refused)
        expect_code(writer.flush(), "flush after close", refused)
        expect_code(writer.sync(), "sync after close", refused)
        expect_code(writer.tell(), "tell after close", refused)
    expect_content(ground, uri, CONTENT, "the content of a file that was used after close")
