"""Checks of opening files for reading, and of `read`."""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found, expect_code, expect_ok
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.expectation import Unsupported, advise, expect, expect_equal, note
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.filesystem.open_files import expect_refused, handle, reader_of
from modular_tf.check.filesystem.prepared_files import long_content
from modular_tf.check.level import Level
from modular_tf.check.repetition import expect_no_leak, rounds_of

if TYPE_CHECKING:
    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.ground import FilesystemGround
    from modular_tf.check.filesystem.subject import Reader

CHECKS = CheckList("filesystem", "reading")

_OPEN = ("new_random_access_file",)
_READ = ("new_random_access_file", "read")
_WRITES = ("writes",)
_ODD = 65_521  # bytes; no block of anything is so long
_THREADS = 8
_READS_OF_A_THREAD = 50
_PART = 1000  # bytes, of each thread
_FURTHEST = 2**64 - 1


@CHECKS.check("FS-150", Level.WORKS, needs=_OPEN, traits=_WRITES, rows=(50,))
def opens_a_file(ground: FilesystemGround) -> None:
    """Tried on a file."""
    uri = ground.make_file("opened")
    answer = ground.subject.new_random_access_file(uri)
    reader = expect_ok(answer, "new_random_access_file(F)")
    expect(reader is not None, "new_random_access_file(F) is OK and left no file")
    address = getattr(reader, "handle", None)  # in the raw pass
    reader.close()
    advise(
        address != 0,
        "new_random_access_file(F) is OK and left plugin_file NULL",
        expected="a pointer to the open file",
        found="NULL",
    )


@CHECKS.check("FS-151", Level.WORKS, needs=_OPEN, rows=(51,))
def misses_a_missing_file(ground: FilesystemGround) -> None:
    """Tried on a name that does not exist."""
    answer = ground.subject.new_random_access_file(ground.missing())
    expect_refused(answer, "new_random_access_file(X)", Code.NOT_FOUND)
    expect(
        answer.value is None,
        "the failed new_random_access_file(X) set plugin_file, which is never cleaned up",
        expected="plugin_file left alone",
    )


@CHECKS.check("FS-152", Level.WORKS, needs=_OPEN, rows=(52,))
def misses_a_missing_directory(ground: FilesystemGround) -> None:
    """Tried on a name in a directory that does not exist."""
    answer = ground.subject.new_random_access_file(ground.below_missing())
    expect_refused(answer, "new_random_access_file(X/y)", Code.NOT_FOUND)


@CHECKS.check("FS-153", Level.WORKS, needs=_OPEN, traits=("directories",), rows=(53,))
def refuses_a_directory(ground: FilesystemGround) -> None:
    """Tried on an empty directory."""
    answer = ground.subject.new_random_access_file(ground.make_dir())
    expect_refused(answer, "new_random_access_file(D)", Code.FAILED_PRECONDITION)


@CHECKS.check(
    "FS-154", Level.WORKS, needs=_OPEN, traits=("writes", "file-as-directory"), rows=(54,)
)
def refuses_a_name_below_a_file(ground: FilesystemGround) -> None:
    """Tried on a name below a file."""
    answer = ground.subject.new_random_access_file(ground.below_file())
    expect_refused(answer, "new_random_access_file(F/x)", Code.FAILED_PRECONDITION)


@CHECKS.check("FS-155", Level.WORKS, needs=_OPEN, rows=(55,))
def refuses_the_empty_path(ground: FilesystemGround) -> None:
    """An empty path, where the plugin translates it into something."""
    if ground.subject.has("translate_name"):
        translated = ground.subject.translate_name("")
        if not translated.ok or translated.value is None:
            raise Unsupported("translate_name refuses the empty path")
    answer = ground.subject.new_random_access_file("")
    what = 'new_random_access_file("")'
    if answer.code == Code.INVALID_ARGUMENT:  # as plain, and what stores say that want a bucket
        note(f"{what} is refused by another code than callers know", found=code_found(answer))
    expect_refused(answer, what, Code.NOT_FOUND, Code.FAILED_PRECONDITION)


def _expect_read(answer: Answer, expected: bytes, what: str, *codes: Code) -> None:
    """Demand bytes, count and code; through the host there is no count."""
    expect_code(answer, what, *codes)
    if answer.returned is not None:
        expect_equal(answer.returned, len(expected), f"what {what} returned")
    expect_equal(answer.value, expected, f"what {what} gave")


@CHECKS.check("FS-156", Level.WORKS, needs=_READ, traits=_WRITES, rows=(56,))
def reads_a_whole_file(ground: FilesystemGround) -> None:
    """Tried with 4 bytes at offset 0 of a file of 4."""
    with reader_of(ground, ground.make_file("whole")) as reader:
        _expect_read(reader.read(0, 4), CONTENT, "read(0, 4)", Code.OK)


@CHECKS.check("FS-157", Level.WORKS, needs=_READ, traits=_WRITES, rows=(57,))
def reads_from_the_middle(ground: FilesystemGround) -> None:
    """Tried with 2 bytes at offset 1 of a file of 4."""
    with reader_of(ground, ground.make_file("middle")) as reader:
        _expect_read(reader.read(1, 2), b"bc", "read(1, 2)", Code.OK)


@CHECKS.check("FS-158", Level.WORKS, needs=_READ, traits=_WRITES, rows=(58,))
def reads_across_the_end(ground: FilesystemGround) -> None:
    """Tried with 10 bytes at offset 0 of a file of 4."""
    with reader_of(ground, ground.make_file("across")) as reader:
        _expect_read(reader.read(0, 10), CONTENT, "read(0, 10)", Code.OUT_OF_RANGE)


@CHECKS.check("FS-159", Level.WORKS, needs=_READ, traits=_WRITES, rows=(59,))
def reads_behind_the_end(ground: FilesystemGround) -> None:
    """Tried at offsets 4 and 100 of a file of 4 bytes."""
    with reader_of(ground, ground.make_file("behind")) as reader:
        _expect_read(reader.read(4, 1), b"", "read(4, 1)", Code.OUT_OF_RANGE)
        _expect_read(reader.read(100, 1), b"", "read(100, 1)", Code.OUT_OF_RANGE)


@CHECKS.check("FS-160", Level.WORKS, needs=_READ, traits=_WRITES, rows=(60,))
def reads_nothing(ground: FilesystemGround) -> None:
    """Tried with 0 bytes; OUT_OF_RANGE at the end of the file is accepted."""
    with reader_of(ground, ground.make_file("nothing")) as reader:
        _expect_read(reader.read(0, 0), b"", "read(0, 0)", Code.OK, Code.OUT_OF_RANGE)


@CHECKS.check("FS-161", Level.WORKS, needs=_READ, traits=("writes", "empty-files"), rows=(61,))
def reads_an_empty_file(ground: FilesystemGround) -> None:
    """Tried with 1 byte at offset 0 of an empty file."""
    with reader_of(ground, ground.make_empty_file("empty")) as reader:
        _expect_read(reader.read(0, 1), b"", "read(0, 1) of E", Code.OUT_OF_RANGE)


@CHECKS.check("FS-162", Level.WORKS, passes=RAW, needs=_READ, traits=_WRITES, rows=(62,))
def tells_of_a_short_read(ground: FilesystemGround) -> None:
    """Reads as TensorFlow's copy makes them: a block at a time, until one is not OK."""
    with reader_of(ground, ground.make_file("looped")) as reader:
        for offset, n in ((2, 10), (0, 131_072), (4, 131_072)):
            answer = reader.read(offset, n)
            expect(
                answer.returned == n or not answer.ok,
                f"read({offset}, {n}) gave less and is OK: a copy of the file never ends",
                expected="OUT_OF_RANGE (11)",
                found=f"OK (0), {answer.returned} bytes",
            )


@CHECKS.check("FS-163", Level.WORKS, passes=RAW, needs=_READ, traits=_WRITES, rows=(63,))
def stays_within_the_buffer(ground: FilesystemGround) -> None:
    """Buffers that are too small for what is there; the subject guards what is behind them."""
    with reader_of(ground, ground.make_file("bounded", b"0123456789" * 10)) as reader:
        for offset, n in ((0, 0), (0, 1), (3, 2), (0, 7), (50, 49), (90, 100)):
            returned = reader.read(offset, n).returned
            expect(
                -1 <= returned <= n,
                f"read({offset}, {n}) returned what no read can",
                expected=f"-1 to {n}",
                found=str(returned),
            )


@CHECKS.check("FS-164", Level.ROBUST, passes=RAW, needs=_READ, traits=_WRITES, rows=(64,))
def returns_minus_one_on_failure(ground: FilesystemGround) -> None:
    """The furthest offset that there is; to say that it is behind the end is right too."""
    with reader_of(ground, ground.make_file("failing")) as reader:
        answer = reader.read(_FURTHEST, 4)
    expect(not answer.ok, f"read({_FURTHEST}, 4) is OK", found=f"{answer.returned} bytes")
    expected = 0 if answer.code == Code.OUT_OF_RANGE else -1
    what = f"what read({_FURTHEST}, 4) returned with {code_found(answer)}"
    expect_equal(answer.returned, expected, what)


@CHECKS.check("FS-165", Level.ROBUST, needs=_READ, traits=_WRITES, rows=(65,))
def reads_a_big_file_in_odd_pieces(ground: FilesystemGround) -> None:
    """Tried with 5 MiB."""
    content = long_content(ground.target.options)
    length = len(content)
    with reader_of(ground, ground.make_file("big", content)) as reader:
        pieces = [
            reader.read(offset, min(_ODD, length - offset)) for offset in range(0, length, _ODD)
        ]
    for number, piece in enumerate(pieces):
        expect_code(piece, f"read({number * _ODD}, {_ODD})", Code.OK)
    found = sha256(b"".join(piece.value for piece in pieces)).hexdigest()
    expect_equal(found, sha256(content).hexdigest(), f"the SHA-256 digest of {length} bytes")


@CHECKS.check("FS-166", Level.ROBUST, needs=_READ, traits=_WRITES, rows=(66,), seconds=60)
def serves_threads_and_handles(ground: FilesystemGround) -> None:
    """Eight threads on one handle, then two handles of one file."""
    content = long_content(ground.target.options)[: _THREADS * _PART]
    uri = ground.make_file("shared", content)
    read = partial(
        _read_again, content=content, rounds=rounds_of(ground.target.options, _READS_OF_A_THREAD)
    )
    with reader_of(ground, uri) as first:
        run_at_once([partial(read, first, thread=at) for at in range(_THREADS)])
        with reader_of(ground, uri) as second:
            read(second, thread=1)
            read(first, thread=0)
        read(first, thread=2)


def _read_again(reader: Reader, *, content: bytes, rounds: int, thread: int) -> None:
    """Read what no other thread reads, again and again."""
    offset, n = thread * _PART, _PART
    for _ in range(rounds):
        answer = reader.read(offset, n)
        what = f"read({offset}, {n}) beside other threads and handles"
        expect(answer.ok, f"{what} failed", found=code_found(answer))
        expect(answer.value == content[offset : offset + n], f"{what} gave other bytes")


@CHECKS.check("FS-167", Level.ROBUST, needs=_READ, traits=_WRITES, rows=(67,))
def keeps_what_is_open(ground: FilesystemGround) -> None:
    """A file that is replaced, then deleted, below an open reader."""
    uri = ground.make_file("vanishing")
    with reader_of(ground, uri) as reader:
        ground.make_file("vanishing", b"WXYZ")
        replaced = reader.read(0, 4)
        ground.subject.delete_file(uri)
        deleted = reader.read(0, 4)
    for answer, what in ((replaced, "replaced"), (deleted, "deleted")):
        if not answer.ok:
            note(f"a read of a file that was {what} fails", found=code_found(answer))
        if answer.value != CONTENT:
            note(f"a reader of a file that was {what} gives other bytes", found=repr(answer.value))


@CHECKS.check("FS-168", Level.ROBUST, needs=_OPEN, traits=_WRITES, rows=(68,))
def leaves_nothing_behind(ground: FilesystemGround) -> None:
    """Opening and cleanup, and openings that fail."""
    uri, missing = ground.make_file("often"), ground.path("never")

    def open_and_fail() -> None:
        handle(ground.subject.new_random_access_file(uri), "new_random_access_file(F)").close()
        unexpected = ground.subject.new_random_access_file(missing).value
        if unexpected is not None:  # some stores look for the file at the first read only
            unexpected.close()

    expect_no_leak(open_and_fail, rounds_of(ground.target.options), "opening a file")


@CHECKS.check("FS-169", Level.WORKS, passes=RAW, needs=_OPEN, rows=(69,))
def names_the_path(ground: FilesystemGround) -> None:
    """The message for a missing file."""
    answer = ground.subject.new_random_access_file(ground.path("not-here"))
    if answer.ok:
        answer.value.close()
        raise Unsupported("new_random_access_file(X) is OK, and has no message: see FS-151")
    expect(
        "not-here" in answer.message,
        "the message of the failed new_random_access_file(X) does not name the path",
        expected="a message with 'not-here' in it",
        found=repr(answer.message),
    )
