"""Checks of what holds for every operation: statuses, memory, names outside of the root."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import BOTH, RAW, ROBUST, WARNING, Suite
from modular_tf.check.expectation import Blocked, Unsupported, expect
from modular_tf.check.filesystem.access import QUESTIONS, OpenFile
from modular_tf.check.filesystem.every_operation import failures, is_success, successes
from modular_tf.check.filesystem.workspace import FilesystemWorkspace, expect_content
from modular_tf.check.memory_watch import raise_harm_at_loading
from modular_tf.filesystem.uri import dirname

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.every_operation import Call

statuses = Suite("filesystem", "statuses", ways=RAW, source="tf_status.h")

_CODES = range(1, 17)
_NAME = 200  # bytes; local disks take 255
_DEEP = (1_000, 4_200)  # bytes in all
_LONG_NAMES = ("n" * 1_000, "n" * 70_000)


@statuses.check("FS-136", severity=WARNING)
def success_is_said(fs: FilesystemWorkspace) -> None:
    """An operation that succeeds sets its status to OK.

    Otherwise: A status that comes with something in it keeps it: success looks like failure.
    Remedy: End each operation with TF_SetStatus, on every way out.
    """
    worked = [(slot, answer) for slot, answer in successes(fs) if is_success(answer)]
    if not worked:
        raise Unsupported("no operation works on what the check can make: see the checks of each")
    silent = sorted({slot for slot, answer in worked if answer.touched is False})
    expect(
        not silent,
        f"{len(silent)} operations do not set their status",
        expected="OK, set in each call",
        found=", ".join(silent),
    )


@statuses.check("FS-137", severity=WARNING)
def failures_are_explained(fs: FilesystemWorkspace) -> None:
    """An operation that fails sets one of the 16 codes, and a message in UTF-8.

    Otherwise: Users cannot tell what went wrong.
    Remedy: Choose a code of tf_status.h, and say what failed and on what.
    """
    for slot, answer in _failed(fs):
        expect(
            answer.code in _CODES,
            f"{slot} fails with a number that is no code",
            expected="1 to 16",
            found=code_found(answer),
        )
        expect(answer.message_is_text, f"the message of {slot} is not UTF-8", found=answer.message)
        expect(answer.message, f"{slot} fails without a message", found=code_found(answer))


@statuses.check("FS-138", severity=WARNING)
def what_is_offered_is_there(fs: FilesystemWorkspace) -> None:
    """An operation that the plugin offers does not answer UNIMPLEMENTED.

    Otherwise: The host's default is not used, since the plugin claims to have an answer.
    Remedy: Leave the slot NULL.
    Source: filesystem.h
    """
    answers = [*successes(fs), *failures(fs)]
    empty = sorted({slot for slot, answer in answers if answer.code == Code.UNIMPLEMENTED})
    expect(not empty, "operations are set and UNIMPLEMENTED", found=", ".join(empty))


@statuses.check("FS-357", level=ROBUST, ways=BOTH, seconds=120)
def takes_long_paths(fs: FilesystemWorkspace) -> None:
    """An operation on a long path works on this path alone, or fails with a code.

    Otherwise: Programs whose paths are long crash, or read and replace another file.
    Remedy: Size buffers by the length of the path; refuse what is too long by INVALID_ARGUMENT.
    Source: POSIX, pathname resolution; tf_status.h
    """
    for directory in (*("/".join(["d" * _NAME] * (n // _NAME)) for n in _DEEP), *_LONG_NAMES):
        root = fs.path(directory)
        there = fs.below(root)
        what = f"a path of {len(root)} bytes"
        _expect_codes(failures(there), what)
        if fs.offers("new_writable_file"):
            with suppress(Unsupported):
                fs.recursively_create_dir(root)
            _expect_codes(successes(there), what)
            _expect_two_files(there, what)


def _expect_codes(calls: Iterable[Call], what: str) -> None:
    for slot, answer in calls:
        expect(
            answer.ok or answer.code in _CODES,
            f"{slot} on {what} fails with a number that is no code",
            expected="0 to 16",
            found=code_found(answer),
        )


def _expect_two_files(fs: FilesystemWorkspace, what: str) -> None:
    """Demand that two files whose paths differ at the end are two, where they can be made."""
    try:
        uris = {fs.make_file(name, name.encode()): name for name in ("one", "two")}
    except (Blocked, Unsupported):  # refused
        return
    for uri, name in uris.items():
        expect_content(fs, uri, name.encode(), f"the content of a file with {what}")


@statuses.check("FS-334", level=ROBUST, severity=WARNING)
def statuses_are_only_set(fs: FilesystemWorkspace) -> None:
    """What an operation does is the same whatever its status held before.

    Otherwise: A host that uses a status again after a failure gets that failure from every call.
    Remedy: Set the status to OK first, and look only at what the plugin itself put there.
    """
    fresh, root = _answers_of(fs, fs.make_dir("fresh")), fs.make_dir("used")
    with fs.poisoned():
        poisoned = _answers_of(fs, root)
    differing = sorted(
        slot
        for slot in fresh.keys() & poisoned.keys()
        if fresh[slot].touched and fresh[slot].code != poisoned[slot].code
    )
    expect(
        not differing,
        "operations do something else where their status was UNKNOWN before",
        found=", ".join(differing),
    )


def _answers_of(fs: FilesystemWorkspace, root: str) -> dict[str, Answer]:
    """Return the answer of each operation by its slot, the last one where it has two."""
    there = fs.below(root)
    return dict(successes(there))


def _failed(fs: FilesystemWorkspace) -> list[Call]:
    """Return the operations that failed where they must; UNIMPLEMENTED is FS-138."""
    found = [call for call in failures(fs) if not call[1].ok]
    if not found:
        raise Unsupported("no operation fails on what is missing: see the checks of each")
    return found


outside = Suite("filesystem", "outside", level=ROBUST, seconds=60)

_NOWHERE = "modular-tf-check-nowhere"


@outside.check("FS-333")
def comes_back_from_nowhere(fs: FilesystemWorkspace) -> None:
    """Operations on names in a container, volume or folder that does not exist return a status.

    Otherwise: A mistyped name ends the program, where an exception leaves the plugin.
    Remedy: Catch every exception in every function that C calls, and set a status.
    Source: filesystem.h; published plugins, observed
    """
    for place in _places(fs.root):
        uri = f"{place}/directory/file"
        for slot in filter(fs.offers, QUESTIONS):
            with suppress(Unsupported, Blocked):
                answer = fs.call(slot, uri)
                if isinstance(answer.value, OpenFile):  # some stores look at the first read only
                    answer.value.cleanup()
                is_there = slot == "path_exists" and answer.ok
                expect(not is_there, f"path_exists({uri}) is OK, and nothing is there")


def _places(root: str) -> Iterator[str]:
    """Yield a missing name on each level, innermost first, down to the one below the host."""
    level = root
    while "/" in (above := dirname(level).rstrip("/")) and above != level:
        level = above
        yield f"{level}/{_NOWHERE}"


memory = Suite("filesystem", "memory", level=ROBUST, ways=RAW)

_ODD_LENGTHS = (1, 7, 8, 15, 16, 17, 31, 63, 64, 65, 127, 4095, 4096, 4097)
"""In bytes: where buffers that are one byte too short show."""


@memory.check("FS-329")
def keeps_to_its_memory(fs: FilesystemWorkspace) -> None:
    """A plugin writes only into its own memory and what it is lent, and frees a block once.

    Otherwise: The damage shows up elsewhere: a crash, or wrong data, in whatever lies beside it.
    Remedy: Run the plugin with AddressSanitizer, and look at the calls before the one that is
    named.
    Source: the C language; filesystem.h, on const arguments

    Lengths at which buffers are often too short; memory is looked at after each call.
    The access itself looks at all memory after each call, and fails the check.
    """
    raise_harm_at_loading("FS-329")
    for length in _ODD_LENGTHS:
        for step in (_use_file, _ask, _list, _move, _remove):
            with suppress(Unsupported):
                step(fs, length)


def _use_file(fs: FilesystemWorkspace, length: int) -> None:
    writer = fs.new_writable_file(_name(fs, length)).value
    if writer is not None:
        for step in (lambda: writer.append(b"x" * length), writer.tell, writer.flush, writer.close):
            _attempt(step)
        writer.cleanup()
    reader = fs.new_random_access_file(_name(fs, length)).value
    if reader is not None:
        for offset, n in ((0, length), (length - 1, 2), (0, 2 * length), (length, 1)):
            _attempt(partial(reader.read, offset, n))
        reader.close()


def _ask(fs: FilesystemWorkspace, length: int) -> None:
    uri = _name(fs, length)
    for question in (fs.path_exists, fs.stat, fs.is_directory):
        _attempt(partial(question, uri))
    _attempt(lambda: fs.get_file_size(uri))
    _attempt(lambda: fs.paths_exist([uri, fs.missing()]))


def _list(fs: FilesystemWorkspace, length: int) -> None:
    pattern = f"{_name(fs, length)[:-1]}*"
    _attempt(lambda: fs.get_children(fs.root))
    _attempt(lambda: fs.get_matching_paths(pattern))


def _move(fs: FilesystemWorkspace, length: int) -> None:
    uri = _name(fs, length)
    _attempt(lambda: fs.copy_file(uri, fs.path("copy")))
    _attempt(lambda: fs.rename_file(fs.path("copy"), fs.path("moved")))


def _remove(fs: FilesystemWorkspace, length: int) -> None:
    directory = fs.path("directory")
    _attempt(lambda: fs.create_dir(directory))
    _attempt(lambda: fs.delete_dir(directory))
    _attempt(lambda: fs.delete_file(_name(fs, length)))


def _attempt(step: Callable[[], object]) -> None:
    with suppress(Unsupported):
        step()


def _name(fs: FilesystemWorkspace, length: int) -> str:
    """Return a URI whose last name has so many bytes, as far as names may be long."""
    longest = 255
    return fs.path("n" * min(length, longest))
