"""Checks of caches and transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import BOTH, RAW, Suite
from modular_tf.check.expectation import Blocked, expect, expect_equal
from modular_tf.check.filesystem.expected_state import expect_content
from modular_tf.check.filesystem.further_ground import raw_subject
from modular_tf.check.filesystem.ground import CONTENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.ground import FilesystemGround
    from modular_tf.check.filesystem.raw_subject import RawFilesystem

suite = Suite("filesystem", "transactions", ways=RAW, source="filesystem.h")

_NONE = (0, (1 << 64) - 1)
"""What is no token: NULL, and -1."""


@suite.check("FS-301", "flush_caches", ways=BOTH, traits="writes")
def flushing_loses_nothing(fs: FilesystemGround) -> None:
    """flush_caches loses nothing, and can be called at any time.

    Otherwise: Files that were written are not there, or an old version of them is.
    Remedy: Drop only what can be fetched again; write the rest out first.
    """
    subject = fs.subject
    for _ in range(2):
        subject.flush_caches()
    uri = fs.make_file()
    subject.flush_caches()
    expect_content(fs, uri, CONTENT, "the content of F after flush_caches")
    writer = subject.new_writable_file(fs.path("G")).must_be_ok()
    writer.append(CONTENT).must_be_ok()
    subject.flush_caches()
    writer.append(CONTENT).must_be_ok()
    writer.close().must_be_ok()
    writer.cleanup()
    what = "the content of G, flushed while it was open"
    expect_content(fs, fs.path("G"), CONTENT * 2, what)


@suite.check("FS-302", "start_transaction")
def starts(fs: FilesystemGround) -> None:
    """start_transaction gives a token, or says why not.

    Otherwise: There is nothing to add files to.
    Remedy: Set *token on success; return -1 and a status otherwise.
    """
    answer = raw_subject(fs).start_transaction()
    answer.must_be(Code.OK, Code.FAILED_PRECONDITION)
    if answer.ok:
        expect(answer.value not in _NONE, "start_transaction is OK and leaves no token")
        _end(raw_subject(fs), answer)


@suite.check(
    "FS-303",
    "start_transaction",
    "end_transaction",
    "add_to_transaction",
    "get_transaction_for_path",
)
def finds_what_was_added(fs: FilesystemGround) -> None:
    """A path that was added to a transaction leads back to that transaction.

    Otherwise: Files of one transaction are written outside it.
    Remedy: Keep open transactions in a table, by token and by path.
    """
    subject, path = raw_subject(fs), fs.path("added")
    token = _started(subject)
    added, found = subject.add_to_transaction(path, token), subject.get_transaction_for_path(path)
    subject.end_transaction(token)
    added.must_be_ok()
    found.must_be_ok()
    expect_equal(found.value, token, "the transaction of a path that was added")


@suite.check("FS-304", "get_transaction_for_path")
def finds_nothing_else(fs: FilesystemGround) -> None:
    """A path that is in no transaction has none: NOT_FOUND.

    Otherwise: Files are written into transactions of others.
    Remedy: Keep open transactions in a table, by token and by path.
    """
    raw_subject(fs).get_transaction_for_path(fs.path("never-added")).must_be(Code.NOT_FOUND)


@suite.check("FS-305", "get_or_start_transaction_for_path", "end_transaction")
def starts_one_per_path(fs: FilesystemGround) -> None:
    """get_or_start_transaction_for_path gives one transaction per path.

    Otherwise: Parts of a file are in different transactions.
    Remedy: Keep open transactions in a table, by token and by path.
    """
    subject, path = raw_subject(fs), fs.path("shared")
    first = subject.get_or_start_transaction_for_path(path)
    if first.code == Code.FAILED_PRECONDITION:
        raise Blocked(f"no transaction: {first.message}")
    token = first.must_be_ok()
    second = subject.get_or_start_transaction_for_path(path)
    subject.end_transaction(token)
    second.must_be_ok()
    expect_equal(second.value, token, "the transaction of the path, asked for again")


@suite.check("FS-306", "start_transaction", "end_transaction")
def ends_once(fs: FilesystemGround) -> None:
    """A transaction ends once; a second end, or that of an unknown one, is NOT_FOUND.

    Otherwise: What was committed is committed again, or memory is freed twice.
    Remedy: Keep open transactions in a table, by token and by path.
    """
    subject = raw_subject(fs)
    token = _started(subject)
    subject.end_transaction(token).must_be_ok()
    subject.end_transaction(token).must_be(Code.NOT_FOUND)


@suite.check("FS-307", "start_transaction", "end_transaction", "decode_transaction_token")
def describes(fs: FilesystemGround) -> None:
    """decode_transaction_token gives a string of plugin_memory_allocate.

    Otherwise: Logging a transaction crashes.
    Remedy: Return a copy; never NULL, never a literal.
    """
    subject = raw_subject(fs)
    token = _started(subject)
    text = subject.decode_transaction_token(token)
    subject.end_transaction(token)
    expect(text is not None, "decode_transaction_token gives NULL", expected="a string")


@suite.check("FS-308", "start_transaction")
def says_the_same_twice(fs: FilesystemGround) -> None:
    """Operations on transactions return -1 if and only if their status is not OK.

    Otherwise: Callers look at one or at the other.
    Remedy: Return 0 with OK, and -1 with every other code.
    """
    for slot, answer in _each_operation(raw_subject(fs), fs):
        agreed = answer.returned == (0 if answer.ok else -1)
        expect(
            agreed,
            f"{slot} returns one thing, and its status says another",
            expected="0 with OK, -1 with another code",
            found=f"{answer.returned} with {code_found(answer)}",
        )


def _each_operation(subject: RawFilesystem, fs: FilesystemGround) -> Iterator[tuple[str, Answer]]:
    path = fs.path("counted")
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
