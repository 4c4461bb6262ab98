"""Checks of caches and transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found, expect_code, expect_ok
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.expectation import Blocked, expect, expect_equal
from modular_tf.check.filesystem.expected_state import expect_content
from modular_tf.check.filesystem.further_ground import raw_subject
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.ground import FilesystemGround
    from modular_tf.check.filesystem.raw_subject import RawFilesystem

CHECKS = CheckList("filesystem", "transactions")

_START = ("start_transaction", "end_transaction")
_NONE = (0, (1 << 64) - 1)
"""What is no token: NULL, and -1."""


@CHECKS.check("FS-301", Level.WORKS, needs=("flush_caches",), traits=("writes",), rows=(201,))
def flushing_loses_nothing(ground: FilesystemGround) -> None:
    """Twice; between writing and reading, and while a file is open."""
    subject = ground.subject
    for _ in range(2):
        subject.flush_caches()
    uri = ground.make_file()
    subject.flush_caches()
    expect_content(ground, uri, CONTENT, "the content of F after flush_caches")
    writer = expect_ok(subject.new_writable_file(ground.path("G")), "new_writable_file(G)")
    expect_ok(writer.append(CONTENT), "append(G)")
    subject.flush_caches()
    expect_ok(writer.append(CONTENT), "append(G) after flush_caches")
    expect_ok(writer.close(), "close(G)")
    writer.cleanup()
    what = "the content of G, flushed while it was open"
    expect_content(ground, ground.path("G"), CONTENT * 2, what)


@CHECKS.check("FS-302", Level.WORKS, passes=RAW, needs=("start_transaction",), rows=(202,))
def starts(ground: FilesystemGround) -> None:
    """A token, or FAILED_PRECONDITION."""
    answer = raw_subject(ground).start_transaction()
    expect_code(answer, "start_transaction", Code.OK, Code.FAILED_PRECONDITION)
    if answer.ok:
        expect(answer.value not in _NONE, "start_transaction is OK and leaves no token")
        _end(raw_subject(ground), answer)


@CHECKS.check(
    "FS-303",
    Level.WORKS,
    passes=RAW,
    needs=(*_START, "add_to_transaction", "get_transaction_for_path"),
    rows=(203,),
)
def finds_what_was_added(ground: FilesystemGround) -> None:
    """Add a path, and ask for its transaction."""
    subject, path = raw_subject(ground), ground.path("added")
    token = _started(subject)
    added, found = subject.add_to_transaction(path, token), subject.get_transaction_for_path(path)
    subject.end_transaction(token)
    expect_ok(added, "add_to_transaction")
    expect_ok(found, "get_transaction_for_path")
    expect_equal(found.value, token, "the transaction of a path that was added")


@CHECKS.check("FS-304", Level.WORKS, passes=RAW, needs=("get_transaction_for_path",), rows=(204,))
def finds_nothing_else(ground: FilesystemGround) -> None:
    """Tried on a path that was not added."""
    answer = raw_subject(ground).get_transaction_for_path(ground.path("never-added"))
    expect_code(answer, "get_transaction_for_path", Code.NOT_FOUND)


@CHECKS.check(
    "FS-305",
    Level.WORKS,
    passes=RAW,
    needs=("get_or_start_transaction_for_path", "end_transaction"),
    rows=(205,),
)
def starts_one_per_path(ground: FilesystemGround) -> None:
    """Tried twice on one path."""
    subject, path = raw_subject(ground), ground.path("shared")
    first = subject.get_or_start_transaction_for_path(path)
    if first.code == Code.FAILED_PRECONDITION:
        raise Blocked(f"no transaction: {first.message}")
    token = expect_ok(first, "get_or_start_transaction_for_path")
    second = subject.get_or_start_transaction_for_path(path)
    subject.end_transaction(token)
    expect_ok(second, "get_or_start_transaction_for_path, again")
    expect_equal(second.value, token, "the transaction of the path, asked for again")


@CHECKS.check("FS-306", Level.WORKS, passes=RAW, needs=_START, rows=(206,))
def ends_once(ground: FilesystemGround) -> None:
    """Tried twice on one transaction."""
    subject = raw_subject(ground)
    token = _started(subject)
    expect_ok(subject.end_transaction(token), "end_transaction")
    again = subject.end_transaction(token)
    expect_code(again, "end_transaction, again", Code.NOT_FOUND)


@CHECKS.check(
    "FS-307", Level.WORKS, passes=RAW, needs=(*_START, "decode_transaction_token"), rows=(207,)
)
def describes(ground: FilesystemGround) -> None:
    """Tried on a new transaction."""
    subject = raw_subject(ground)
    token = _started(subject)
    text = subject.decode_transaction_token(token)
    subject.end_transaction(token)
    expect(text is not None, "decode_transaction_token gives NULL", expected="a string")


@CHECKS.check("FS-308", Level.WORKS, passes=RAW, needs=("start_transaction",), rows=(208,))
def says_the_same_twice(ground: FilesystemGround) -> None:
    """Compare what each operation returns with its status."""
    for slot, answer in _each_operation(raw_subject(ground), ground):
        agreed = answer.returned == (0 if answer.ok else -1)
        expect(
            agreed,
            f"{slot} returns one thing, and its status says another",
            expected="0 with OK, -1 with another code",
            found=f"{answer.returned} with {code_found(answer)}",
        )


def _each_operation(
    subject: RawFilesystem, ground: FilesystemGround
) -> Iterator[tuple[str, Answer]]:
    path = ground.path("counted")
    if subject.has("get_transaction_for_path"):
        yield "get_transaction_for_path", subject.get_transaction_for_path(path)
    if subject.has("get_or_start_transaction_for_path"):
        begun = subject.get_or_start_transaction_for_path(path)
        yield "get_or_start_transaction_for_path", begun
        _end(subject, begun)
    started = subject.start_transaction()
    yield "start_transaction", started
    if not started.ok or started.value in _NONE:
        return
    if subject.has("add_to_transaction"):
        yield "add_to_transaction", subject.add_to_transaction(path, started.value)
    if subject.has("end_transaction"):
        for _ in range(2):
            yield "end_transaction", subject.end_transaction(started.value)


def _end(subject: RawFilesystem, answer: Answer) -> None:
    """End what was started: a plugin may have one transaction at a time."""
    if answer.ok and answer.value not in _NONE and subject.has("end_transaction"):
        subject.end_transaction(answer.value)


def _started(subject: RawFilesystem) -> int:
    """Start a transaction and return its token.

    Raises:
        Blocked: There is none.
    """
    answer = subject.start_transaction()
    if not answer.ok or answer.value in _NONE:
        raise Blocked(f"no transaction could be started ({code_found(answer)}): see FS-302")
    return int(answer.value)
