"""Checks of files that are written: created, filled, seen by readers."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found, expect_ok
from modular_tf.check.check import CheckList
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.expectation import Unsupported, advise, expect, expect_equal
from modular_tf.check.filesystem.access_rights import read_only
from modular_tf.check.filesystem.expected_state import expect_content, expect_empty
from modular_tf.check.filesystem.full_store import file_without_room
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.filesystem.open_files import (
    append_and_close,
    expect_refused,
    expect_step,
    open_writer,
    writer_of,
)
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.ground import FilesystemGround
    from modular_tf.check.filesystem.subject import Writer

CHECKS = CheckList("filesystem", "writing")

_OPEN = ("new_writable_file",)
_APPEND = (*_OPEN, "append", "TF_WritableFileOps.close")
_TELL = (*_APPEND, "tell")
_WRITES = ("writes",)
_BIG_APPENDS, _BIG = 5, 1 << 20
_SMALL_APPENDS = 1000
_LONGER_THAN_BUFFERS = bytes(1 << 20)


def _expect_written(ground: FilesystemGround, name: str, *pieces: bytes) -> None:
    uri = ground.path(name)
    with writer_of(ground, uri) as writer:
        append_and_close(writer, *pieces)
    expect_content(ground, uri, b"".join(pieces), "the content of the closed file")


@CHECKS.check("FS-170", Level.WORKS, needs=_OPEN, traits=("writes", "empty-files"), rows=(70,))
def creates_a_file(ground: FilesystemGround) -> None:
    """Tried on a name that does not exist."""
    uri = ground.path("created")
    writer = expect_ok(ground.subject.new_writable_file(uri), "new_writable_file(X)")
    expect(writer is not None, "new_writable_file(X) is OK and left no file")
    closed = writer.close()
    writer.cleanup()
    expect_ok(closed, "close of a file without appends")
    expect(ground.exists(uri), "a file that was created and closed is not there")
    expect_empty(ground, uri, "the length of a file that nothing was appended to")


@CHECKS.check("FS-171", Level.WORKS, needs=_OPEN, traits=("writes", "parents"), rows=(71,))
def misses_a_missing_directory(ground: FilesystemGround) -> None:
    """Tried on a name in a directory that does not exist."""
    answer = ground.subject.new_writable_file(ground.below_missing())
    expect_refused(answer, "new_writable_file(X/y)", Code.NOT_FOUND)


@CHECKS.check("FS-172", Level.WORKS, needs=_OPEN, traits=("writes", "directories"), rows=(72,))
def refuses_a_directory(ground: FilesystemGround) -> None:
    """Tried on an empty directory."""
    answer = ground.subject.new_writable_file(ground.make_dir())
    expect_refused(answer, "new_writable_file(D)", Code.FAILED_PRECONDITION)


@CHECKS.check(
    "FS-173", Level.WORKS, needs=_OPEN, traits=("writes", "file-as-directory"), rows=(73,)
)
def refuses_a_name_below_a_file(ground: FilesystemGround) -> None:
    """Tried on a name below a file."""
    answer = ground.subject.new_writable_file(ground.below_file())
    expect_refused(answer, "new_writable_file(F/x)", Code.FAILED_PRECONDITION)


@CHECKS.check("FS-174", Level.WORKS, needs=_APPEND, traits=_WRITES, rows=(74,))
def replaces_content(ground: FilesystemGround) -> None:
    """Tried on a file, with one byte."""
    ground.make_file("replaced")
    _expect_written(ground, "replaced", b"z")


@CHECKS.check("FS-175", Level.WORKS, needs=_OPEN, traits=("writes", "empty-files"), rows=(75,))
def empties_a_file(ground: FilesystemGround) -> None:
    """Tried on a file, with no bytes."""
    uri = ground.make_file("emptied")
    with writer_of(ground, uri) as writer:
        append_and_close(writer)
    expect_empty(ground, uri, "the length of a file that was opened for writing and closed")


@CHECKS.check("FS-176", Level.WORKS, needs=_APPEND, traits=_WRITES, rows=(76,))
def keeps_what_is_appended(ground: FilesystemGround) -> None:
    """Tried with four bytes."""
    _expect_written(ground, "appended", b"asdf")


@CHECKS.check("FS-177", Level.WORKS, needs=_APPEND, traits=_WRITES, rows=(77,))
def appends_nothing(ground: FilesystemGround) -> None:
    """Tried with 0 bytes before and after others."""
    _expect_written(ground, "unchanged", b"", b"ab", b"", b"cd", b"")


@CHECKS.check("FS-178", Level.ROBUST, needs=_APPEND, traits=_WRITES, rows=(78,))
def keeps_bytes_of_all_kinds(ground: FilesystemGround) -> None:
    """Five big appends, a thousand of one byte, with a NUL inside and without."""
    big = [ground.random.randbytes(_BIG) for _ in range(_BIG_APPENDS)]
    _expect_written(ground, "big", *big)
    small = [bytes([number % 256]) for number in range(_SMALL_APPENDS)]
    _expect_written(ground, "small", *small)
    _expect_written(ground, "inner", b"no NUL", b"a\0b", b"\0", b"\r\n\xff\x1a", b"end")


@CHECKS.check("FS-179", Level.WORKS, needs=_TELL, traits=_WRITES, rows=(79,))
def tells_the_position(ground: FilesystemGround) -> None:
    """At the start and after four bytes."""
    with writer_of(ground, ground.path("told")) as writer:
        expect_equal(expect_ok(writer.tell(), "tell"), 0, "tell of a new file")
        expect_step(writer.append(CONTENT), "append")
        expect_equal(expect_ok(writer.tell(), "tell"), 4, "tell after 4 bytes")
        writer.close()


@CHECKS.check("FS-180", Level.WORKS, needs=_TELL, traits=_WRITES, rows=(80,))
def tells_twice(ground: FilesystemGround) -> None:
    """The same position, and the same content."""
    uri = ground.path("told-twice")
    with writer_of(ground, uri) as writer:
        expect_step(writer.append(b"ab"), "append")
        first = expect_ok(writer.tell(), "tell")
        expect_equal(expect_ok(writer.tell(), "tell"), first, "tell, asked again")
        append_and_close(writer, b"cd")
    expect_content(ground, uri, CONTENT, "the content of a file whose position was asked for")


@CHECKS.check("FS-181", Level.ROBUST, needs=_TELL, traits=_WRITES, rows=(81,))
def tells_failure_by_minus_one(ground: FilesystemGround) -> None:
    """In each state that a writer can be brought to."""
    with writer_of(ground, ground.path("consistent")) as writer:
        _expect_consistent(writer.tell(), "tell of a new file")
        for step in (partial(writer.append, CONTENT), writer.flush, writer.sync):
            with suppress(Unsupported):
                step()
            _expect_consistent(writer.tell(), "tell of a file with bytes")
        writer.close()
    _tell_without_room(ground)


def _tell_without_room(ground: FilesystemGround) -> None:
    with (
        suppress(Unsupported),  # there is room without end: nothing to tell of
        file_without_room(ground, "full-and-told") as uri,
        writer_of(ground, uri) as writer,
    ):
        writer.append(_LONGER_THAN_BUFFERS)
        _expect_consistent(writer.tell(), "tell after an append that found no room")
        writer.close()


def _expect_consistent(answer: Answer, what: str) -> None:
    position = answer.value if answer.returned is None else answer.returned
    if answer.ok:
        expect(position is not None and position >= 0, f"{what} is OK", found=str(position))
    elif answer.returned is not None:
        expect_equal(position, -1, f"what {what} returned with {code_found(answer)}")


@CHECKS.check("FS-182", Level.WORKS, needs=_APPEND, traits=_WRITES, rows=(82,))
def shows_what_is_synced(ground: FilesystemGround) -> None:
    """A second reader, after flush and after sync; the host flushes where there is no sync."""
    uri, has = ground.path("followed"), ground.subject.has
    if not has("flush") and not has("sync"):
        raise Unsupported("the plugin has neither flush nor sync")
    flushed = synced = True
    with writer_of(ground, uri) as writer:
        if has("flush"):
            flushed = _is_seen_after(ground, uri, writer, "flush")
        if has("sync"):
            synced = _is_seen_after(ground, uri, writer, "sync")
        expect_ok(writer.close(), "close")
    expect(synced, "a reader does not see what was appended before sync")
    advise(flushed, "a reader does not see what was appended before flush")


def _is_seen_after(ground: FilesystemGround, uri: str, writer: Writer, slot: str) -> bool:
    """Return whether a new reader sees what is appended before a flush or sync."""
    added = f"before {slot}".encode()
    expect_step(writer.append(added), "append")
    expect_ok(getattr(writer, slot)(), slot)
    found = ground.subject.new_random_access_file(uri)
    if not found.ok or found.value is None:
        return False
    seen = found.value.read(0, 100).value
    found.value.close()
    return bool(seen.endswith(added))


@CHECKS.check("FS-183", Level.WORKS, needs=_APPEND, traits=_WRITES, rows=(83,))
def shows_what_is_closed(ground: FilesystemGround) -> None:
    """A reader that is opened before cleanup."""
    uri = ground.path("finished")
    with writer_of(ground, uri) as writer:
        append_and_close(writer, b"one ", b"two ", b"end")
        expect_content(ground, uri, b"one two end", "the content right after close")


@CHECKS.check("FS-190", Level.ROBUST, needs=_APPEND, traits=_WRITES, rows=(90,))
def writes_in_two_threads(ground: FilesystemGround) -> None:
    """Two files, a thousand appends each."""
    names = ("thread-0", "thread-1")
    pieces = [bytes([65 + number]) * 100 for number in range(len(names))]
    writers = [open_writer(ground, name) for name in names]
    try:
        works = [
            partial(append_and_close, writer, *[piece] * _SMALL_APPENDS)
            for writer, piece in zip(writers, pieces, strict=True)
        ]
        run_at_once(works)
    finally:
        for writer in writers:
            writer.cleanup()
    for name, piece in zip(names, pieces, strict=True):
        found = ground.content(ground.path(name))
        expect(found == piece * _SMALL_APPENDS, "what two threads wrote to two files is mixed")


@CHECKS.check("FS-191", Level.ROBUST, needs=_OPEN, traits=("writes", "permissions"), rows=(91,))
def respects_missing_rights(ground: FilesystemGround) -> None:
    """A new file in a directory that nothing may be written to."""
    directory = ground.make_dir("forbidden")
    with read_only(ground, directory):
        answer = ground.subject.new_writable_file(f"{directory}/file")
        expect_refused(answer, "new_writable_file without rights", Code.PERMISSION_DENIED)
