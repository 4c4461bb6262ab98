"""Checks of how writing a file ends: closed, abandoned, out of room."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import HOST, RAW, ROBUST, WARNING, WORKS, Suite
from modular_tf.check.expectation import Unsupported, advise, expect, expect_equal, note
from modular_tf.check.filesystem.expected_state import expect_content
from modular_tf.check.filesystem.full_store import file_without_room
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.filesystem.writing import append_and_close
from modular_tf.check.repetition import expect_no_leak, rounds_of

if TYPE_CHECKING:
    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.ground import FilesystemGround

suite = Suite(
    "filesystem",
    "closing",
    level=ROBUST,
    traits="writes",
    source="filesystem.h, TF_WritableFileOps",
)

_OPEN = ("new_writable_file",)
_APPEND = (*_OPEN, "append", "TF_WritableFileOps.close")
_MOST_ABANDONED = 256
_POOL = 32  # files after which a plugin has all the threads that it will keep
_OPEN_AT_ONCE = 16
_LONGER_THAN_BUFFERS = bytes(1 << 20)


@suite.check("FS-184", *_APPEND, level=WORKS)
def cleans_up_what_is_closed(fs: FilesystemGround) -> None:
    """close and then cleanup end a file, and cleanup changes nothing in it.

    Otherwise: The usual end of each written file crashes, or damages it.
    Remedy: Finish the file in close; release memory, and nothing else, in cleanup.
    """
    names = ("ended-1", "ended-2", "ended-3")
    writers = [fs.subject.new_writable_file(fs.path(name)).needed() for name in names]
    for writer in writers:
        append_and_close(writer, CONTENT)
    for writer in reversed(writers):
        writer.cleanup()
    for name in names:
        expect_content(fs, fs.path(name), CONTENT, "the content after cleanup")


@suite.check("FS-185", "new_writable_file", ways=RAW, severity=WARNING)
def cleans_up_what_is_abandoned(fs: FilesystemGround) -> None:
    """cleanup without close releases everything.

    Otherwise: TensorFlow cleans abandoned files up without closing them: each leaks a descriptor.
    Remedy: Close what is still open in cleanup, without reporting.
    Source: TensorFlow 2.21, observed
    """
    uri = fs.path("abandoned")

    def abandon() -> None:
        with fs.subject.new_writable_file(uri).opened() as writer:
            writer.append(CONTENT)

    rounds = rounds_of(fs.target.options, _MOST_ABANDONED)
    expect_no_leak(abandon, rounds, "cleanup without close")
    kept = fs.exists(uri) and fs.content(uri) == CONTENT
    if not kept:
        note("a file that is cleaned up without close loses what was appended to it")


@suite.check("FS-336", *_APPEND)
def leaves_nothing_of_what_is_closed(fs: FilesystemGround) -> None:
    """Writing and closing files again and again leaves no descriptors or memory behind.

    Otherwise: A program that saves often runs out of descriptors, and then cannot save.
    Remedy: Close the temporary file, and free what an upload took, in cleanup at the latest.
    """

    def write() -> None:
        with fs.subject.new_writable_file(fs.path("written-often")).opened() as writer:
            append_and_close(writer, CONTENT)

    for _ in range(_POOL):
        write()
    rounds = rounds_of(fs.target.options, _MOST_ABANDONED)
    expect_no_leak(write, rounds, "writing and closing a file")


@suite.check("FS-186", *_APPEND, level=WORKS, ways=RAW)
def leaves_cleanup_to_the_host(fs: FilesystemGround) -> None:
    """close does not run cleanup: the handle can still be cleaned up after it.

    Otherwise: The host calls cleanup after close: memory is freed twice.
    Remedy: Leave plugin_file and its memory to cleanup.

    Many files are closed before the first is cleaned up: memory freed twice shows then.
    """
    writers = [
        fs.subject.new_writable_file(fs.path(f"handle-{number}")).needed()
        for number in range(_OPEN_AT_ONCE)
    ]
    handles = [getattr(writer, "handle", None) for writer in writers]
    for writer in writers:
        writer.append(CONTENT).needed()
        writer.close().needed()
    left = [getattr(writer, "handle", None) for writer in writers]
    expect_equal(left, handles, "plugin_file after close")
    for writer in writers:
        writer.cleanup()


@suite.check("FS-187", *_APPEND)
def cleans_up_after_a_failing_close(fs: FilesystemGround) -> None:
    """After a failing close cleanup is safe, and the failure is told.

    Otherwise: A full disk ends in a crash, or in a file that looks whole.
    Remedy: Report what could not be written from close, and stay ready for cleanup.

    Most plugins learn at close that there is no room.
    """
    with (
        file_without_room(fs, "full-at-close") as uri,
        fs.subject.new_writable_file(uri).opened() as writer,
    ):
        answers = [writer.append(CONTENT), writer.close()]
        writer.cleanup()
    _expect_told(answers)
    again = fs.make_file("after-failure")
    expect_content(fs, again, CONTENT, "the content of the next file")


def _expect_told(answers: list[Answer]) -> None:
    expect(
        not all(answer.ok for answer in answers),
        "a file is written and closed on a full store without an error",
        expected="another code than OK from append, flush or close",
    )


@suite.check("FS-188", *_APPEND)
def tells_that_there_is_no_room(fs: FilesystemGround) -> None:
    """Without room, append, flush or close is RESOURCE_EXHAUSTED, and close of a part is never OK.

    Otherwise: A truncated file is taken for a whole one.
    Remedy: Set TF_RESOURCE_EXHAUSTED, and remember the failure until close.
    """
    with file_without_room(fs, "full") as uri, fs.subject.new_writable_file(uri).opened() as writer:
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


@suite.check("FS-189", *_APPEND, level=WORKS, ways=HOST)
def refuses_what_is_closed(fs: FilesystemGround) -> None:
    """A closed file takes no more calls: close again is harmless, all else is refused.

    Otherwise: TensorFlow forwards such calls, and plugins crash on them; this host refuses them.
    Remedy: Nothing to do for a plugin, if closing once works and keeps the content.
    Source: design §9, our own host
    """
    uri = fs.path("guarded")
    with fs.subject.new_writable_file(uri).opened() as writer:
        writer.append(CONTENT).needed()
        writer.flush().must_be_ok()
        writer.sync().must_be_ok()
        writer.close().must_be_ok()
        writer.close().must_be(Code.OK, Code.FAILED_PRECONDITION)
        refused = Code.FAILED_PRECONDITION
        writer.append(b"more").must_be(refused)
        writer.flush().must_be(refused)
        writer.sync().must_be(refused)
        writer.tell().must_be(refused)
    expect_content(fs, uri, CONTENT, "the content of a file that was used after close")
