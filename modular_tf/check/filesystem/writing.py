"""Checks of writing files: created, filled, continued, closed, abandoned, out of room."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import HOST, RAW, ROBUST, WARNING, WORKS, Suite
from modular_tf.check.expectation import Unsupported, advise, expect, expect_equal, note
from modular_tf.check.filesystem.local_store import ON_A_FULL_STORE, file_without_room, read_only
from modular_tf.check.filesystem.refusals import MISSING, REFUSED, refusals
from modular_tf.check.filesystem.workspace import CONTENT, expect_content, expect_empty
from modular_tf.check.under_load import at_once, must_not_grow, rounds_of

if TYPE_CHECKING:
    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.operations import Writer
    from modular_tf.check.filesystem.workspace import FilesystemWorkspace

writing = Suite("filesystem", "writing", traits="writes", source="filesystem.h, TF_WritableFileOps")

_APPEND = ("new_writable_file", "append", "TF_WritableFileOps.close")
_TELL = (*_APPEND, "tell")
_BIG_APPENDS, _BIG = 5, 1 << 20
_SMALL_APPENDS = 1000
_LONGER_THAN_BUFFERS = bytes(1 << 20)


def _append_and_close(writer: Writer, *pieces: bytes) -> None:
    """Append pieces and close; see `Answer.must_be`."""
    for piece in pieces:
        writer.append(piece).must_be_ok()
    writer.close().must_be_ok()


def _expect_written(fs: FilesystemWorkspace, name: str, *pieces: bytes) -> None:
    uri = fs.path(name)
    with fs.new_writable_file(uri).opened() as writer:
        _append_and_close(writer, *pieces)
    expect_content(fs, uri, b"".join(pieces), "the content of the closed file")


@writing.check("FS-170", "new_writable_file", traits="writes empty-files")
def a_missing_file_is_created(fs: FilesystemWorkspace) -> None:
    """new_writable_file creates a missing file; after close it exists and is empty.

    Otherwise: Files that nothing is written to, such as _SUCCESS marks, never appear.
    Remedy: Create the entry at opening or at close, even where nothing was appended.
    Source: filesystem.h, new_writable_file
    """
    uri = fs.path("created")
    writer = fs.new_writable_file(uri).must_be_ok()
    closed = writer.close()
    writer.cleanup()
    closed.must_be_ok()
    expect(fs.exists(uri), "a file that was created and closed is not there")
    expect_empty(fs, uri, "the length of a file that nothing was appended to")


refusals(writing, {
    "FS-171": ("new_writable_file(X/y)", MISSING, "writes parents",
        "Callers distinguish cases by the code: they take the wrong branch, or give up.",
        "Set TF_NOT_FOUND and create no parents: callers do that where they want it."),
    "FS-172": ("new_writable_file(D)", REFUSED, "writes directories",
        "A directory is hidden behind a file, or the write fails much later.",
        "Look at the kind of the entry, and set TF_FAILED_PRECONDITION."),
    "FS-173": ("new_writable_file(F/x)", REFUSED, "writes file-as-directory"),
})  # fmt: skip


@writing.check("FS-174", *_APPEND)
def content_is_replaced(fs: FilesystemWorkspace) -> None:
    """new_writable_file on a file replaces its content.

    Otherwise: A checkpoint that is written again ends in the rest of the longer one before it.
    Remedy: Truncate at opening, or replace the object at close.
    Source: filesystem.h, new_writable_file
    """
    fs.make_file("replaced")
    _expect_written(fs, "replaced", b"z")


@writing.check("FS-175", "new_writable_file", traits="writes empty-files")
def opening_empties_a_file(fs: FilesystemWorkspace) -> None:
    """new_writable_file on a file empties it, even where nothing is appended.

    Otherwise: A file that was written anew still shows old content.
    Remedy: Truncate at opening, or write an empty object at close.
    Source: filesystem.h, new_writable_file
    """
    uri = fs.make_file("emptied")
    with fs.new_writable_file(uri).opened() as writer:
        _append_and_close(writer)
    expect_empty(fs, uri, "the length of a file that was opened for writing and closed")


@writing.check("FS-176", *_APPEND)
def appended_bytes_are_the_content(fs: FilesystemWorkspace) -> None:
    """What was appended before close is the file's content.

    Otherwise: Nothing that is saved here can be trusted.
    Remedy: Keep every byte of each append, in order.
    """
    _expect_written(fs, "appended", b"asdf")


@writing.check("FS-177", *_APPEND)
def appending_nothing_changes_nothing(fs: FilesystemWorkspace) -> None:
    """An append of 0 bytes is OK and changes nothing, whatever its buffer is.

    Otherwise: Writing an empty string fails, or crashes on a NULL buffer.
    Remedy: Return OK before touching the buffer where n is 0.
    """
    _expect_written(fs, "unchanged", b"", b"ab", b"", b"cd", b"")


@writing.check("FS-178", *_APPEND, level=ROBUST)
def bytes_of_all_kinds_arrive(fs: FilesystemWorkspace) -> None:
    """Big appends, many small ones, and bytes of any value arrive exactly and in order.

    Otherwise: Large or binary files are corrupted.
    Remedy: Take the length from n, never from a NUL, and write until all bytes are written; empty a
    buffer before a piece that goes past it.
    """
    big = [fs.random.randbytes(_BIG) for _ in range(_BIG_APPENDS)]
    _expect_written(fs, "big", *big)
    _expect_written(fs, "mixed", b"small", big[0], b"small again", *big[1:], b"end")
    small = [bytes([number % 256]) for number in range(_SMALL_APPENDS)]
    _expect_written(fs, "small", *small)
    _expect_written(fs, "inner", b"no NUL", b"a\0b", b"\0", b"\r\n\xff\x1a", b"end")


@writing.check("FS-179", *_TELL)
def tell_counts_the_bytes(fs: FilesystemWorkspace) -> None:
    """tell is 0 for a new file, and the number of appended bytes after that.

    Otherwise: TFRecord and checkpoint indices point to wrong places.
    Remedy: Count appended bytes, buffered ones too.
    """
    with fs.new_writable_file(fs.path("told")).opened() as writer:
        expect_equal(writer.tell().must_be_ok(), 0, "tell of a new file")
        writer.append(CONTENT).needed()
        expect_equal(writer.tell().must_be_ok(), 4, "tell after 4 bytes")
        writer.close()


@writing.check("FS-180", *_TELL)
def tell_changes_nothing(fs: FilesystemWorkspace) -> None:
    """tell changes nothing: asked twice it answers the same.

    Otherwise: Who asks for the position moves it, and leaves a hole in the file.
    Remedy: Do not seek, flush or count in tell.
    """
    uri = fs.path("told-twice")
    with fs.new_writable_file(uri).opened() as writer:
        writer.append(b"ab").needed()
        first = writer.tell().must_be_ok()
        expect_equal(writer.tell().must_be_ok(), first, "tell, asked again")
        _append_and_close(writer, b"cd")
    expect_content(fs, uri, CONTENT, "the content of a file whose position was asked for")


@writing.check("FS-181", *_TELL, level=ROBUST)
def a_failing_tell_returns_minus_one(fs: FilesystemWorkspace) -> None:
    """tell returns -1 exactly when it sets another code than OK.

    Otherwise: TensorFlow stores -1 as the position, or takes a wrong one.
    Remedy: Return -1 with a code on failure, and a position of 0 or more with TF_OK.
    """
    with fs.new_writable_file(fs.path("consistent")).opened() as writer:
        _expect_consistent(writer.tell(), "tell of a new file")
        for step in (partial(writer.append, CONTENT), writer.flush, writer.sync):
            with suppress(Unsupported):
                step()
            _expect_consistent(writer.tell(), "tell of a file with bytes")
        writer.close()
    _tell_without_room(fs)


def _tell_without_room(fs: FilesystemWorkspace) -> None:
    with (
        suppress(Unsupported),  # there is room without end: nothing to tell of
        file_without_room(fs, "full-and-told") as uri,
        fs.new_writable_file(uri).opened() as writer,
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


@writing.check("FS-182", *_APPEND)
def readers_see_what_is_synced(fs: FilesystemWorkspace) -> None:
    """After sync a second reader sees all bytes; after flush it should.

    Otherwise: Event files that others follow, such as TensorBoard's, stay empty while training
    runs.
    Remedy: Write buffered bytes to the store in sync, and in flush where the store can show them.
    """
    uri, has = fs.path("followed"), fs.has
    if not has("flush") and not has("sync"):
        raise Unsupported("the plugin has neither flush nor sync")
    flushed = synced = True
    with fs.new_writable_file(uri).opened() as writer:
        if has("flush"):
            flushed = _is_seen_after(fs, uri, writer, "flush")
        if has("sync"):
            synced = _is_seen_after(fs, uri, writer, "sync")
        writer.close().must_be_ok()
    expect(synced, "a reader does not see what was appended before sync")
    advise(flushed, "a reader does not see what was appended before flush")


def _is_seen_after(fs: FilesystemWorkspace, uri: str, writer: Writer, slot: str) -> bool:
    """Return whether a new reader sees what is appended before a flush or sync."""
    added = f"before {slot}".encode()
    writer.append(added).needed()
    getattr(writer, slot)().must_be_ok()
    found = fs.new_random_access_file(uri)
    if not found.ok or found.value is None:
        return False
    seen = found.value.read(0, 100).value
    found.value.close()
    return bool(seen.endswith(added))


@writing.check("FS-183", *_APPEND)
def readers_see_what_is_closed(fs: FilesystemWorkspace) -> None:
    """After close a new reader sees all bytes.

    Otherwise: The end of each file is missing.
    Remedy: Flush buffers in close, and return only when the store has them.
    """
    uri = fs.path("finished")
    with fs.new_writable_file(uri).opened() as writer:
        _append_and_close(writer, b"one ", b"two ", b"end")
        expect_content(fs, uri, b"one two end", "the content right after close")


@writing.check("FS-190", *_APPEND, level=ROBUST)
def two_threads_write_two_files(fs: FilesystemWorkspace) -> None:
    """Two files are written by two threads at the same time without mixing.

    Otherwise: Parallel savers write into each other's files.
    Remedy: Keep buffers and positions in the file's own memory.
    Source: TensorFlow's threads
    """
    names = ("thread-0", "thread-1")
    pieces = [bytes([65 + number]) * 100 for number in range(len(names))]
    writers = [fs.new_writable_file(fs.path(name)).needed() for name in names]
    try:
        works = [
            partial(_append_and_close, writer, *[piece] * _SMALL_APPENDS)
            for writer, piece in zip(writers, pieces, strict=True)
        ]
        at_once(works)
    finally:
        for writer in writers:
            writer.cleanup()
    for name, piece in zip(names, pieces, strict=True):
        found = fs.content(fs.path(name))
        expect(found == piece * _SMALL_APPENDS, "what two threads wrote to two files is mixed")


@writing.check(
    "FS-191", "new_writable_file", level=ROBUST, traits="writes permissions", severity=WARNING
)
def missing_rights_are_permission_denied(fs: FilesystemWorkspace) -> None:
    """Writing where nothing may be written is PERMISSION_DENIED.

    Otherwise: Users are told anything but that their rights are missing.
    Remedy: Map the store's refusal to TF_PERMISSION_DENIED.
    Source: filesystem.h, new_writable_file
    """
    directory = fs.make_dir("forbidden")
    with read_only(fs, directory):
        fs.new_writable_file(f"{directory}/file").must_be(Code.PERMISSION_DENIED)


closing = Suite(
    "filesystem",
    "closing",
    level=ROBUST,
    traits="writes",
    source="filesystem.h, TF_WritableFileOps",
)

_MOST_ABANDONED = 256
_POOL = 32  # files after which a plugin has all the threads that it will keep
_OPEN_AT_ONCE = 16


@closing.check("FS-184", *_APPEND, level=WORKS)
def cleanup_changes_no_closed_file(fs: FilesystemWorkspace) -> None:
    """close and then cleanup end a file, and cleanup changes nothing in it.

    Otherwise: The usual end of each written file crashes, or damages it.
    Remedy: Finish the file in close; release memory, and nothing else, in cleanup.
    """
    names = ("ended-1", "ended-2", "ended-3")
    writers = [fs.new_writable_file(fs.path(name)).needed() for name in names]
    for writer in writers:
        _append_and_close(writer, CONTENT)
    for writer in reversed(writers):
        writer.cleanup()
    for name in names:
        expect_content(fs, fs.path(name), CONTENT, "the content after cleanup")


@closing.check("FS-185", "new_writable_file", ways=RAW, severity=WARNING)
def cleanup_without_close_leaves_nothing(fs: FilesystemWorkspace) -> None:
    """cleanup without close releases everything.

    Otherwise: TensorFlow cleans abandoned files up without closing them: each leaks a descriptor.
    Remedy: Close what is still open in cleanup, without reporting.
    Source: TensorFlow 2.21, observed
    """
    uri = fs.path("abandoned")

    def abandon() -> None:
        with fs.new_writable_file(uri).opened() as writer:
            writer.append(CONTENT)

    rounds = rounds_of(fs.target.options, _MOST_ABANDONED)
    must_not_grow(abandon, rounds, "cleanup without close")
    kept = fs.exists(uri) and fs.content(uri) == CONTENT
    if not kept:
        note("a file that is cleaned up without close loses what was appended to it")


@closing.check("FS-336", *_APPEND)
def writing_often_leaves_nothing(fs: FilesystemWorkspace) -> None:
    """Writing and closing files again and again leaves no descriptors or memory behind.

    Otherwise: A program that saves often runs out of descriptors, and then cannot save.
    Remedy: Close the temporary file, and free what an upload took, in cleanup at the latest.
    """

    def write() -> None:
        with fs.new_writable_file(fs.path("written-often")).opened() as writer:
            _append_and_close(writer, CONTENT)

    for _ in range(_POOL):
        write()
    rounds = rounds_of(fs.target.options, _MOST_ABANDONED)
    must_not_grow(write, rounds, "writing and closing a file")


@closing.check("FS-186", *_APPEND, level=WORKS, ways=RAW)
def close_does_not_clean_up(fs: FilesystemWorkspace) -> None:
    """close does not run cleanup: the handle can still be cleaned up after it.

    Otherwise: The host calls cleanup after close: memory is freed twice.
    Remedy: Leave plugin_file and its memory to cleanup.

    Many files are closed before the first is cleaned up: memory freed twice shows then.
    """
    writers = [
        fs.new_writable_file(fs.path(f"handle-{number}")).needed()
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


@closing.check("FS-187", *_APPEND, place=ON_A_FULL_STORE)
def cleanup_after_a_failing_close_is_safe(fs: FilesystemWorkspace) -> None:
    """After a failing close cleanup is safe, and the failure is told.

    Otherwise: A full disk ends in a crash, or in a file that looks whole.
    Remedy: Report what could not be written from close, and stay ready for cleanup.

    Most plugins learn at close that there is no room.
    """
    with (
        file_without_room(fs, "full-at-close") as uri,
        fs.new_writable_file(uri).opened() as writer,
    ):
        answers = [writer.append(CONTENT), writer.close()]
        writer.cleanup()
    _expect_reported(answers)
    again = fs.make_file("after-failure")
    expect_content(fs, again, CONTENT, "the content of the next file")


def _expect_reported(answers: list[Answer]) -> None:
    expect(
        not all(answer.ok for answer in answers),
        "a file is written and closed on a full store without an error",
        expected="another code than OK from append, flush or close",
    )


@closing.check("FS-188", *_APPEND, place=ON_A_FULL_STORE)
def a_full_store_is_resource_exhausted(fs: FilesystemWorkspace) -> None:
    """On a full store append, flush or close is RESOURCE_EXHAUSTED; after that close is never OK.

    Otherwise: A truncated file is taken for a whole one.
    Remedy: Set TF_RESOURCE_EXHAUSTED, and remember the failure until close.
    """
    with file_without_room(fs, "full") as uri, fs.new_writable_file(uri).opened() as writer:
        answers = [writer.append(_LONGER_THAN_BUFFERS)]
        with suppress(Unsupported):
            answers.append(writer.flush())
        answers.append(writer.close())
    _expect_reported(answers)
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


@closing.check("FS-189", *_APPEND, level=WORKS, ways=HOST)
def a_closed_file_is_refused(fs: FilesystemWorkspace) -> None:
    """flush, sync and close work; a closed file takes no more calls but close, which is harmless.

    Otherwise: TensorFlow forwards such calls, and plugins crash on them; this host refuses them.
    Remedy: Let flush, sync and the first close work and store the whole content; the host refuses
    what comes later before it reaches the plugin.
    Source: host recommendation
    """
    uri = fs.path("guarded")
    with fs.new_writable_file(uri).opened() as writer:
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


appending = Suite(
    "filesystem", "appending", traits="writes append", source="filesystem.h, new_appendable_file"
)


def _continue(fs: FilesystemWorkspace, uri: str, *pieces: bytes) -> None:
    opened = fs.new_appendable_file(uri)
    opened.must_be_ok()
    with opened.opened() as writer:
        _append_and_close(writer, *pieces)


@appending.check("FS-192", "new_appendable_file", traits="writes append empty-files")
def appending_creates_a_file(fs: FilesystemWorkspace) -> None:
    """new_appendable_file creates a missing file, empty.

    Otherwise: The first run of a program that continues its log fails.
    Remedy: Create the file where it is missing.
    """
    uri = fs.path("log")
    _continue(fs, uri)
    expect(fs.exists(uri), "a file that was opened for appending and closed is not there")
    expect_empty(fs, uri, "the length of a file that nothing was appended to")


@appending.check("FS-193", "new_appendable_file")
def appending_keeps_the_content(fs: FilesystemWorkspace) -> None:
    """new_appendable_file keeps what is there, and appends go behind it.

    Otherwise: A log that is continued loses what was in it.
    Remedy: Open without truncating, and write at the end.
    """
    uri = fs.make_file("continued")
    _continue(fs, uri, b"qwer")
    expect_content(fs, uri, b"abcdqwer", "the content of a file that is appended to")


@appending.check("FS-194", "new_appendable_file", "tell", severity=WARNING)
def tell_starts_at_the_end(fs: FilesystemWorkspace) -> None:
    """tell of a file that was just opened for appending is its length.

    Otherwise: Offsets that a writer notes down are wrong by the length of the old content.
    Remedy: Start at the length of the file, not at 0.
    """
    with fs.new_appendable_file(fs.make_file("end-told")).opened() as writer:
        position = writer.tell().must_be_ok()
        writer.close()
    expect_equal(position, len(CONTENT), "tell of a file of 4 bytes, opened for appending")


refusals(appending, {
    "FS-195": ("new_appendable_file(X/y)", MISSING, "writes append parents"),
    "FS-196": ("new_appendable_file(D)", REFUSED, "writes append directories"),
    "FS-197": ("new_appendable_file(F/x)", REFUSED, "writes append file-as-directory"),
})  # fmt: skip


@appending.check("FS-198", "new_appendable_file")
def appending_nothing_keeps_the_file(fs: FilesystemWorkspace) -> None:
    """Opening for appending and closing again changes nothing.

    Otherwise: Files are emptied by those who only look whether they can be written.
    Remedy: Do not truncate, and do not write an empty object at close.
    """
    uri = fs.make_file("untouched")
    _continue(fs, uri)
    expect_content(fs, uri, CONTENT, "the content of a file that nothing was appended to")
