"""Checks of caches, transactions and the configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import BOTH, NOTE, RAW, Suite
from modular_tf.check.expectation import Blocked, Unsupported, advise, expect, expect_equal, note
from modular_tf.check.filesystem.workspace import CONTENT, expect_content
from modular_tf.filesystem.configuration import Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.workspace import FilesystemWorkspace

transactions = Suite("filesystem", "transactions", ways=RAW, source="filesystem.h")

_NONE = (0, (1 << 64) - 1)
"""What is no token: NULL, and -1."""


@transactions.check("FS-301", "flush_caches", ways=BOTH, traits="writes")
def flushing_loses_nothing(fs: FilesystemWorkspace) -> None:
    """flush_caches loses nothing, and can be called at any time.

    Otherwise: Files that were written are not there, or an old version of them is.
    Remedy: Drop only what can be fetched again; write the rest out first.
    """
    for _ in range(2):
        fs.flush_caches()
    uri = fs.make_file()
    fs.flush_caches()
    expect_content(fs, uri, CONTENT, "the content of F after flush_caches")
    writer = fs.new_writable_file(fs.path("G")).must_be_ok()
    writer.append(CONTENT).must_be_ok()
    fs.flush_caches()
    writer.append(CONTENT).must_be_ok()
    writer.close().must_be_ok()
    writer.cleanup()
    what = "the content of G, flushed while it was open"
    expect_content(fs, fs.path("G"), CONTENT * 2, what)


@transactions.check("FS-302", "start_transaction")
def a_transaction_starts(fs: FilesystemWorkspace) -> None:
    """start_transaction gives a token, or says why not.

    Otherwise: There is nothing to add files to.
    Remedy: Set *token on success; return -1 and a status otherwise.
    """
    answer = fs.start_transaction()
    answer.must_be(Code.OK, Code.FAILED_PRECONDITION)
    if answer.ok:
        expect(answer.value not in _NONE, "start_transaction is OK and leaves no token")
        _end(fs, answer)


@transactions.check(
    "FS-303",
    "start_transaction",
    "end_transaction",
    "add_to_transaction",
    "get_transaction_for_path",
)
def an_added_path_leads_to_its_transaction(fs: FilesystemWorkspace) -> None:
    """A path that was added to a transaction leads back to that transaction.

    Otherwise: Files of one transaction are written outside it.
    Remedy: Keep open transactions in a table, by token and by path.
    """
    path = fs.path("added")
    token = _started(fs)
    added, found = fs.add_to_transaction(path, token), fs.get_transaction_for_path(path)
    fs.end_transaction(token)
    added.must_be_ok()
    found.must_be_ok()
    expect_equal(found.value, token, "the transaction of a path that was added")


@transactions.check("FS-304", "get_transaction_for_path")
def another_path_has_no_transaction(fs: FilesystemWorkspace) -> None:
    """A path that is in no transaction has none: NOT_FOUND.

    Otherwise: Files are written into transactions of others.
    Remedy: Keep open transactions in a table, by token and by path.
    """
    fs.get_transaction_for_path(fs.path("never-added")).must_be(Code.NOT_FOUND)


@transactions.check("FS-305", "get_or_start_transaction_for_path", "end_transaction")
def a_path_has_one_transaction(fs: FilesystemWorkspace) -> None:
    """get_or_start_transaction_for_path gives one transaction per path.

    Otherwise: Parts of a file are in different transactions.
    Remedy: Keep open transactions in a table, by token and by path.
    """
    path = fs.path("shared")
    first = fs.get_or_start_transaction_for_path(path)
    if first.code == Code.FAILED_PRECONDITION:
        raise Blocked(f"no transaction: {first.message}")
    token = first.must_be_ok()
    second = fs.get_or_start_transaction_for_path(path)
    fs.end_transaction(token)
    second.must_be_ok()
    expect_equal(second.value, token, "the transaction of the path, asked for again")


@transactions.check("FS-306", "start_transaction", "end_transaction")
def a_transaction_ends_once(fs: FilesystemWorkspace) -> None:
    """A transaction ends once; a second end, or that of an unknown one, is NOT_FOUND.

    Otherwise: What was committed is committed again, or memory is freed twice.
    Remedy: Keep open transactions in a table, by token and by path.
    """
    token = _started(fs)
    fs.end_transaction(token).must_be_ok()
    fs.end_transaction(token).must_be(Code.NOT_FOUND)


@transactions.check("FS-307", "start_transaction", "end_transaction", "decode_transaction_token")
def a_transaction_is_described(fs: FilesystemWorkspace) -> None:
    """decode_transaction_token gives a string of plugin_memory_allocate.

    Otherwise: Logging a transaction crashes.
    Remedy: Return a copy; never NULL, never a literal.
    """
    token = _started(fs)
    text = fs.decode_transaction_token(token).value
    fs.end_transaction(token)
    expect(text is not None, "decode_transaction_token gives NULL", expected="a string")


@transactions.check("FS-308", "start_transaction")
def results_agree_with_statuses(fs: FilesystemWorkspace) -> None:
    """Operations on transactions return -1 if and only if their status is not OK.

    Otherwise: Callers look at one or at the other.
    Remedy: Return 0 with OK, and -1 with every other code.
    """
    for slot, answer in _each_operation(fs):
        agreed = answer.returned == (0 if answer.ok else -1)
        expect(
            agreed,
            f"{slot} returns one thing, and its status says another",
            expected="0 with OK, -1 with another code",
            found=f"{answer.returned} with {code_found(answer)}",
        )


def _each_operation(fs: FilesystemWorkspace) -> Iterator[tuple[str, Answer]]:
    path = fs.path("counted")
    if fs.has("get_transaction_for_path"):
        yield "get_transaction_for_path", fs.get_transaction_for_path(path)
    if fs.has("get_or_start_transaction_for_path"):
        begun = fs.get_or_start_transaction_for_path(path)
        yield "get_or_start_transaction_for_path", begun
        _end(fs, begun)
    started = fs.start_transaction()
    yield "start_transaction", started
    if not started.ok or started.value in _NONE:
        return
    if fs.has("add_to_transaction"):
        yield "add_to_transaction", fs.add_to_transaction(path, started.value)
    if fs.has("end_transaction"):
        for _ in range(2):
            yield "end_transaction", fs.end_transaction(started.value)


def _end(fs: FilesystemWorkspace, answer: Answer) -> None:
    """End what was started: a plugin may have one transaction at a time."""
    if answer.ok and answer.value not in _NONE and fs.has("end_transaction"):
        fs.end_transaction(answer.value)


def _started(fs: FilesystemWorkspace) -> int:
    """Start a transaction and return its token.

    Raises:
        Blocked: There is none.
    """
    answer = fs.start_transaction()
    if not answer.ok or answer.value in _NONE:
        raise Blocked("no transaction could be started", "FS-302", found=code_found(answer))
    return int(answer.value)


settings = Suite("filesystem", "settings", source="filesystem.h")

_GET, _SET = "get_filesystem_configuration", "set_filesystem_configuration"
_SET_ONE = f"{_SET}_option"
_UNKNOWN = "no_option_of_this_name"


@settings.check("FS-309", "get_filesystem_configuration")
def options_are_whole(fs: FilesystemWorkspace) -> None:
    """get_filesystem_configuration gives whole options: name, value, type, count, values.

    Otherwise: A program that lists the options crashes.
    Remedy: Fill every field, and allocate each pointer by plugin_memory_allocate.
    """
    options = _all_listed(fs)
    names = [option.name for option in options]
    expect("" not in names, "an option has no name")
    expect_equal(len(set(names)), len(names), "the number of different names")


@settings.check("FS-310", "get_filesystem_configuration", "set_filesystem_configuration")
def options_can_be_set(fs: FilesystemWorkspace) -> None:
    """set_filesystem_configuration takes what the plugin gave, and no options at all.

    Otherwise: A configuration that was saved cannot be restored.
    Remedy: Accept every option that get_filesystem_configuration lists, with its own value.
    """
    options = _listed(fs)
    fs.set_filesystem_configuration(options).must_be_ok()
    fs.set_filesystem_configuration([]).must_be_ok()
    expect_equal(_listed(fs), options, "the configuration, after it was set to itself")
    unknown = fs.set_filesystem_configuration([Option(_UNKNOWN, (1,))])
    advise(not unknown.ok, f"{_SET} takes an option that it does not know")
    for option in options[:1]:
        other = fs.set_filesystem_configuration([_of_another_type(option)])
        advise(not other.ok, f"{_SET} takes {option.name} with values of another type")


@settings.check("FS-311", "get_filesystem_configuration", "get_filesystem_configuration_option")
def options_are_found_by_name(fs: FilesystemWorkspace) -> None:
    """Single options are found by the names that the configuration lists, others are not.

    Otherwise: Options are listed that cannot be read or set.
    Remedy: Answer a key that is not listed with NOT_FOUND, and every other one with the option.
    """
    sets = fs.has(_SET_ONE)
    for option in _listed(fs):
        found = fs.get_filesystem_configuration_option(option.name).must_be_ok()
        expect_equal(found, option, f"the option {option.name}, asked for by its name")
        if sets:
            fs.set_filesystem_configuration_option(option).must_be_ok()
    fs.get_filesystem_configuration_option(_UNKNOWN).must_be(Code.NOT_FOUND)
    if sets:
        fs.set_filesystem_configuration_option(Option(_UNKNOWN, (1,))).must_be(Code.NOT_FOUND)


@settings.check("FS-312", "get_filesystem_configuration", "set_filesystem_configuration", ways=RAW)
def options_are_copied(fs: FilesystemWorkspace) -> None:
    """The plugin keeps copies of the options that it is given.

    Otherwise: The caller's memory is reused, and the option changes by itself or crashes.
    Remedy: Copy names, values and buffers.
    """
    options = _listed(fs)
    for option in options:
        answer = fs.set_filesystem_configuration([option])
        expect(answer.ok, f"{_SET} refuses {option.name}", found=code_found(answer))
    expect_equal(_listed(fs), options, "the configuration, after the caller's memory changed")


@settings.check("FS-313", ways=RAW, severity=NOTE)
def keys_are_not_offered(fs: FilesystemWorkspace) -> None:
    """get_filesystem_configuration_keys is NULL.

    Otherwise: No host calls it: its signature does not say who allocates the keys, nor how many.
    Remedy: Leave it NULL; get_filesystem_configuration lists the names.
    """
    if fs.has("get_filesystem_configuration_keys"):
        note("get_filesystem_configuration_keys is set, which no host can call")


def _listed(fs: FilesystemWorkspace) -> list[Option]:
    """Return the options.

    Raises:
        Deviation: They cannot be listed.
        Unsupported: There are none.
    """
    options = _all_listed(fs)
    if not options:
        raise Unsupported("there are no options")
    return options


def _all_listed(fs: FilesystemWorkspace) -> list[Option]:
    """Return the options, of which there may be none.

    Raises:
        Deviation: They cannot be listed.
    """
    answer = fs.get_filesystem_configuration()
    options: list[Option] = answer.must_be_ok()
    number = answer.returned
    if number is not None:  # through the slot
        expect(number >= 0, f"{_GET} returns a negative count", found=str(number))
        expect_equal(len(options), number, "the number of options in the array")
    return options


def _of_another_type(option: Option) -> Option:
    is_text = option.values and isinstance(option.values[0], bytes)
    return replace(option, values=(7,) if is_text else (b"seven",))
