"""Checks of files that are written: created, filled, seen by readers."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import ROBUST, WARNING, Suite
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.expectation import Unsupported, advise, expect, expect_equal
from modular_tf.check.filesystem.access_rights import read_only
from modular_tf.check.filesystem.expected_state import expect_content, expect_empty
from modular_tf.check.filesystem.full_store import file_without_room
from modular_tf.check.filesystem.ground import CONTENT

if TYPE_CHECKING:
    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.ground import FilesystemGround
    from modular_tf.check.filesystem.subject import Writer

suite = Suite("filesystem", "writing", traits="writes", source="filesystem.h, TF_WritableFileOps")

_OPEN = ("new_writable_file",)
_APPEND = (*_OPEN, "append", "TF_WritableFileOps.close")
_TELL = (*_APPEND, "tell")
_BIG_APPENDS, _BIG = 5, 1 << 20
_SMALL_APPENDS = 1000
_LONGER_THAN_BUFFERS = bytes(1 << 20)


def append_and_close(writer: Writer, *pieces: bytes) -> None:
    """Append pieces and close; see `Answer.must_be`."""
    for piece in pieces:
        writer.append(piece).must_be_ok()
    writer.close().must_be_ok()


def _expect_written(fs: FilesystemGround, name: str, *pieces: bytes) -> None:
    uri = fs.path(name)
    with fs.subject.new_writable_file(uri).opened() as writer:
        append_and_close(writer, *pieces)
    expect_content(fs, uri, b"".join(pieces), "the content of the closed file")


@suite.check("FS-170", "new_writable_file", traits="writes empty-files")
def creates_a_file(fs: FilesystemGround) -> None:
    """new_writable_file creates a missing file; after close it exists and is empty.

    Otherwise: Files that nothing is written to, such as _SUCCESS marks, never appear.
    Remedy: Create the entry at opening or at close, even where nothing was appended.
    Source: filesystem.h, new_writable_file
    """
    uri = fs.path("created")
    writer = fs.subject.new_writable_file(uri).must_be_ok()
    expect(writer is not None, "new_writable_file(X) is OK and left no file")
    closed = writer.close()
    writer.cleanup()
    closed.must_be_ok()
    expect(fs.exists(uri), "a file that was created and closed is not there")
    expect_empty(fs, uri, "the length of a file that nothing was appended to")


@suite.check("FS-171", "new_writable_file", traits="writes parents")
def misses_a_missing_directory(fs: FilesystemGround) -> None:
    """new_writable_file in a missing directory is NOT_FOUND.

    Otherwise: Callers tell cases apart by the code: they take the wrong branch, or give up.
    Remedy: Set TF_NOT_FOUND and create no parents: callers do that where they want it.
    Source: filesystem.h, new_writable_file
    """
    fs.subject.new_writable_file(fs.below_missing()).must_be(Code.NOT_FOUND)


@suite.check("FS-172", "new_writable_file", traits="writes directories")
def refuses_a_directory(fs: FilesystemGround) -> None:
    """new_writable_file on a directory is FAILED_PRECONDITION.

    Otherwise: A directory is hidden behind a file, or the write fails much later.
    Remedy: Look at the kind of the entry, and set TF_FAILED_PRECONDITION.
    Source: filesystem.h, new_writable_file
    """
    fs.subject.new_writable_file(fs.make_dir()).must_be(Code.FAILED_PRECONDITION)


@suite.check("FS-173", "new_writable_file", traits="writes file-as-directory")
def refuses_a_name_below_a_file(fs: FilesystemGround) -> None:
    """new_writable_file below a file is FAILED_PRECONDITION.

    Otherwise: Callers tell cases apart by the code: they take the wrong branch, or give up.
    Remedy: Set TF_FAILED_PRECONDITION where a parent is a file.
    Source: filesystem.h, new_writable_file
    """
    fs.subject.new_writable_file(fs.below_file()).must_be(Code.FAILED_PRECONDITION)


@suite.check("FS-174", *_APPEND)
def replaces_content(fs: FilesystemGround) -> None:
    """new_writable_file on a file replaces its content.

    Otherwise: A checkpoint that is written again ends in the rest of the longer one before it.
    Remedy: Truncate at opening, or replace the object at close.
    Source: filesystem.h, new_writable_file
    """
    fs.make_file("replaced")
    _expect_written(fs, "replaced", b"z")


@suite.check("FS-175", "new_writable_file", traits="writes empty-files")
def empties_a_file(fs: FilesystemGround) -> None:
    """new_writable_file on a file empties it, even where nothing is appended.

    Otherwise: A file that was written anew still shows old content.
    Remedy: Truncate at opening, or write an empty object at close.
    Source: filesystem.h, new_writable_file
    """
    uri = fs.make_file("emptied")
    with fs.subject.new_writable_file(uri).opened() as writer:
        append_and_close(writer)
    expect_empty(fs, uri, "the length of a file that was opened for writing and closed")


@suite.check("FS-176", *_APPEND)
def keeps_what_is_appended(fs: FilesystemGround) -> None:
    """What was appended before close is the file's content.

    Otherwise: Nothing that is saved here can be trusted.
    Remedy: Keep every byte of each append, in order.
    """
    _expect_written(fs, "appended", b"asdf")


@suite.check("FS-177", *_APPEND)
def appends_nothing(fs: FilesystemGround) -> None:
    """An append of 0 bytes is OK and changes nothing, whatever its buffer is.

    Otherwise: Writing an empty string fails, or crashes on a NULL buffer.
    Remedy: Return OK before touching the buffer where n is 0.
    """
    _expect_written(fs, "unchanged", b"", b"ab", b"", b"cd", b"")


@suite.check("FS-178", *_APPEND, level=ROBUST)
def keeps_bytes_of_all_kinds(fs: FilesystemGround) -> None:
    """Big appends, many small ones, and bytes of any value arrive exactly and in order.

    Otherwise: Large or binary files are corrupted.
    Remedy: Take the length from n, never from a NUL, and write until all bytes are written.
    """
    big = [fs.random.randbytes(_BIG) for _ in range(_BIG_APPENDS)]
    _expect_written(fs, "big", *big)
    small = [bytes([number % 256]) for number in range(_SMALL_APPENDS)]
    _expect_written(fs, "small", *small)
    _expect_written(fs, "inner", b"no NUL", b"a\0b", b"\0", b"\r\n\xff\x1a", b"end")


@suite.check("FS-179", *_TELL)
def tells_the_position(fs: FilesystemGround) -> None:
    """tell is 0 for a new file, and the number of appended bytes after that.

    Otherwise: TFRecord and checkpoint indices point to wrong places.
    Remedy: Count appended bytes, buffered ones too.
    """
    with fs.subject.new_writable_file(fs.path("told")).opened() as writer:
        expect_equal(writer.tell().must_be_ok(), 0, "tell of a new file")
        writer.append(CONTENT).needed()
        expect_equal(writer.tell().must_be_ok(), 4, "tell after 4 bytes")
        writer.close()


@suite.check("FS-180", *_TELL)
def tells_twice(fs: FilesystemGround) -> None:
    """tell changes nothing: asked twice it answers the same.

    Otherwise: Who asks for the position moves it, and leaves a hole in the file.
    Remedy: Do not seek, flush or count in tell.
    """
    uri = fs.path("told-twice")
    with fs.subject.new_writable_file(uri).opened() as writer:
        writer.append(b"ab").needed()
        first = writer.tell().must_be_ok()
        expect_equal(writer.tell().must_be_ok(), first, "tell, asked again")
        append_and_close(writer, b"cd")
    expect_content(fs, uri, CONTENT, "the content of a file whose position was asked for")


@suite.check("FS-181", *_TELL, level=ROBUST)
def tells_failure_by_minus_one(fs: FilesystemGround) -> None:
    """tell returns -1 exactly when it sets another code than OK.

    Otherwise: TensorFlow stores -1 as the position, or takes a wrong one.
    Remedy: Return -1 with a code on failure, and a position of 0 or more with TF_OK.
    """
    with fs.subject.new_writable_file(fs.path("consistent")).opened() as writer:
        _expect_consistent(writer.tell(), "tell of a new file")
        for step in (partial(writer.append, CONTENT), writer.flush, writer.sync):
            with suppress(Unsupported):
                step()
            _expect_consistent(writer.tell(), "tell of a file with bytes")
        writer.close()
    _tell_without_room(fs)


def _tell_without_room(fs: FilesystemGround) -> None:
    with (
        suppress(Unsupported),  # there is room without end: nothing to tell of
        file_without_room(fs, "full-and-told") as uri,
        fs.subject.new_writable_file(uri).opened() as writer,
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


@suite.check("FS-182", *_APPEND)
def shows_what_is_synced(fs: FilesystemGround) -> None:
    """After sync a second reader sees all bytes; after flush it should.

    Otherwise: Event files that others follow, such as TensorBoard's, stay empty while training
    runs.
    Remedy: Write buffered bytes to the store in sync, and in flush where the store can show them.
    """
    uri, has = fs.path("followed"), fs.subject.has
    if not has("flush") and not has("sync"):
        raise Unsupported("the plugin has neither flush nor sync")
    flushed = synced = True
    with fs.subject.new_writable_file(uri).opened() as writer:
        if has("flush"):
            flushed = _is_seen_after(fs, uri, writer, "flush")
        if has("sync"):
            synced = _is_seen_after(fs, uri, writer, "sync")
        writer.close().must_be_ok()
    expect(synced, "a reader does not see what was appended before sync")
    advise(flushed, "a reader does not see what was appended before flush")


def _is_seen_after(fs: FilesystemGround, uri: str, writer: Writer, slot: str) -> bool:
    """Return whether a new reader sees what is appended before a flush or sync."""
    added = f"before {slot}".encode()
    writer.append(added).needed()
    getattr(writer, slot)().must_be_ok()
    found = fs.subject.new_random_access_file(uri)
    if not found.ok or found.value is None:
        return False
    seen = found.value.read(0, 100).value
    found.value.close()
    return bool(seen.endswith(added))


@suite.check("FS-183", *_APPEND)
def shows_what_is_closed(fs: FilesystemGround) -> None:
    """After close a new reader sees all bytes.

    Otherwise: The end of each file is missing.
    Remedy: Flush buffers in close, and return only when the store has them.
    """
    uri = fs.path("finished")
    with fs.subject.new_writable_file(uri).opened() as writer:
        append_and_close(writer, b"one ", b"two ", b"end")
        expect_content(fs, uri, b"one two end", "the content right after close")


@suite.check("FS-190", *_APPEND, level=ROBUST)
def writes_in_two_threads(fs: FilesystemGround) -> None:
    """Two files are written by two threads at the same time without mixing.

    Otherwise: Parallel savers write into each other's files.
    Remedy: Keep buffers and positions in the file's own memory.
    Source: TensorFlow's threads
    """
    names = ("thread-0", "thread-1")
    pieces = [bytes([65 + number]) * 100 for number in range(len(names))]
    writers = [fs.subject.new_writable_file(fs.path(name)).needed() for name in names]
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
        found = fs.content(fs.path(name))
        expect(found == piece * _SMALL_APPENDS, "what two threads wrote to two files is mixed")


@suite.check(
    "FS-191", "new_writable_file", level=ROBUST, traits="writes permissions", severity=WARNING
)
def respects_missing_rights(fs: FilesystemGround) -> None:
    """Writing where nothing may be written is PERMISSION_DENIED.

    Otherwise: Users are told anything but that their rights are missing.
    Remedy: Map the store's refusal to TF_PERMISSION_DENIED.
    Source: filesystem.h, new_writable_file
    """
    directory = fs.make_dir("forbidden")
    with read_only(fs, directory):
        fs.subject.new_writable_file(f"{directory}/file").must_be(Code.PERMISSION_DENIED)
