"""Checks of what holds for every operation: statuses, memory, names outside of the root."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import BOTH, RAW, ROBUST, WARNING, Suite
from modular_tf.check.expectation import Blocked, Unsupported, expect, expect_none
from modular_tf.check.filesystem.operations import MOVES, QUESTIONS, REMOVALS, OpenFile
from modular_tf.check.filesystem.workspace import FilesystemWorkspace, expect_content
from modular_tf.check.memory_watch import raise_harm_at_loading
from modular_tf.filesystem.uri import dirname

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from modular_tf.check.answers import Answer

Call = tuple[str, "Answer"]
"""An operation, and what it returned."""

_CONTENT = b"content of each file"


def successes(fs: FilesystemWorkspace) -> Iterator[Call]:
    """Call each operation that is offered so that it should succeed."""
    uri, other, directory = (fs.path(name) for name in ("each-file", "each-copy", "each-dir"))
    for slot in ("new_writable_file", "new_appendable_file"):
        yield from _called(
            fs, slot, uri, uses=[("append", _CONTENT), ("tell",), ("flush",), ("sync",), ("close",)]
        )
    yield from _called(fs, "new_random_access_file", uri, uses=[("read", 0, 4)])
    yield from _called(fs, "new_read_only_memory_region_from_file", uri)
    for slot in ("path_exists", "stat", "get_file_size"):
        yield from _called(fs, slot, uri)
    yield from _called(fs, "copy_file", uri, other)
    if fs.offers("copy_file"):
        yield from _called(fs, "rename_file", other, f"{other}-renamed")
    yield from _called(fs, "create_dir", directory)
    for slot in ("is_directory", "get_children", "delete_dir"):
        yield from _called(fs, slot, directory)
    yield from _called(fs, "recursively_create_dir", f"{directory}-deep/er")
    yield from _called(fs, "delete_recursively", f"{directory}-deep")
    yield from _called(fs, "get_matching_paths", f"{fs.root}/each-*")
    yield from _called(fs, "delete_file", uri)


def failures(fs: FilesystemWorkspace) -> Iterator[Call]:
    """Call each operation that is offered so that it should fail: on names of nothing."""
    for slot in (*QUESTIONS, *REMOVALS):
        yield from _called(fs, slot, fs.missing())
    for slot in MOVES:
        yield from _called(fs, slot, fs.missing(), fs.path("Y"))
    for slot in ("create_dir", "new_writable_file", "new_appendable_file"):
        yield from _called(fs, slot, fs.below_missing())


def codes_of_all(fs: FilesystemWorkspace) -> dict[str, int]:
    """Return the code of each operation by its slot, the last one where it has two."""
    return {slot: answer.code for slot, answer in successes(fs)}


def _called(
    fs: FilesystemWorkspace, slot: str, *uris: str, uses: list[tuple[Any, ...]] | None = None
) -> Iterator[Call]:
    """Call an operation where it is offered, and what it opens by `uses`; clean that up."""
    answer = _tried(fs, slot, partial(fs.call, slot, *uris))
    if answer is None:
        return
    yield slot, answer
    file = answer.value
    if isinstance(file, OpenFile):
        for use, *arguments in uses or [] if answer.ok else []:
            used = _tried(fs, use, partial(file.call, use, *arguments))
            if used is not None:
                yield use, used
        file.cleanup()


def _tried(fs: FilesystemWorkspace, slot: str, call: Callable[[], Answer]) -> Answer | None:
    try:
        return call() if fs.offers(slot) else None
    except (Unsupported, Blocked):
        return None


def is_success(answer: Answer) -> bool:
    """Return whether an answer is no failure; the end of a file is none."""
    return answer.code in {Code.OK, Code.OUT_OF_RANGE}


statuses = Suite("filesystem", "statuses", ways=RAW, source="tf_status.h")

_CODES = range(1, 17)
_NAME = 200  # bytes; local disks take 255
_DEEP = (1_000, 4_200)  # bytes in all
_LONG_NAMES = ("n" * 1_000, "n" * 70_000)


@statuses.check("FS-136", severity=WARNING)
def success_sets_ok(fs: FilesystemWorkspace) -> None:
    """An operation that succeeds sets its status to OK.

    Otherwise: A status that comes with something in it keeps it: success looks like failure.
    Remedy: Call TF_SetStatus on every way out, with TF_OK where the operation succeeds.
    Source: filesystem.h, on statuses
    """
    worked = [(slot, answer) for slot, answer in successes(fs) if is_success(answer)]
    if not worked:
        raise Unsupported("no operation works on what the check can make: see the checks of each")
    silent = (slot for slot, answer in worked if answer.touched is False)
    expect_none(silent, "{} operations do not set their status", expected="OK, set in each call")


@statuses.check("FS-137", severity=WARNING)
def failures_have_a_code_and_a_message(fs: FilesystemWorkspace) -> None:
    """An operation that fails sets one of the 16 codes, and a message in UTF-8.

    Otherwise: Users cannot tell what went wrong.
    Remedy: Choose a code of tf_status.h, and say what failed and on what.
    """
    failed = [call for call in failures(fs) if not call[1].ok]  # UNIMPLEMENTED is FS-138
    if not failed:
        raise Unsupported("no operation fails on what is missing: see the checks of each")
    for slot, answer in failed:
        expect(
            answer.code in _CODES,
            f"{slot} fails with a number that is no code",
            expected="1 to 16",
            found=code_found(answer),
        )
        expect(answer.message_is_text, f"the message of {slot} is not UTF-8", found=answer.message)
        expect(answer.message, f"{slot} fails without a message", found=code_found(answer))


@statuses.check("FS-138", severity=WARNING)
def what_is_offered_is_implemented(fs: FilesystemWorkspace) -> None:
    """An operation that the plugin offers does not answer UNIMPLEMENTED.

    Otherwise: The host's default is not used, since the plugin claims to have an answer.
    Remedy: Leave the slot NULL.
    Source: filesystem.h
    """
    answers = [*successes(fs), *failures(fs)]
    empty = (slot for slot, answer in answers if answer.code == Code.UNIMPLEMENTED)
    expect_none(empty, "operations are set and UNIMPLEMENTED")


@statuses.check("FS-357", level=ROBUST, ways=BOTH, seconds=120)
def long_paths_work_or_are_refused(fs: FilesystemWorkspace) -> None:
    """An operation on a long path works on this path alone, or fails with a code.

    Otherwise: Programs whose paths are long crash, or read and replace another file.
    Remedy: Size buffers by the length of the path; refuse what is too long by INVALID_ARGUMENT.
    Source: POSIX, pathname resolution; tf_status.h
    """
    for directory in (*("/".join(["d" * _NAME] * (n // _NAME)) for n in _DEEP), *_LONG_NAMES):
        there = fs.below(root := fs.path(directory))
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
def statuses_are_never_read(fs: FilesystemWorkspace) -> None:
    """What an operation does is the same whatever its status held before.

    Otherwise: A host that uses a status again after a failure gets that failure from every call.
    Remedy: Set the status to OK first, and look only at what the plugin itself put there.
    """
    fresh, used = dict(successes(fs.below(fs.make_dir("fresh")))), fs.below(fs.make_dir("used"))
    with fs.by_slots.poisoned():
        poisoned = dict(successes(used))
    differing = (
        slot
        for slot in fresh.keys() & poisoned.keys()
        if fresh[slot].touched and fresh[slot].code != poisoned[slot].code
    )
    expect_none(differing, "operations do something else where their status was UNKNOWN before")


outside = Suite("filesystem", "outside", level=ROBUST, seconds=60)

_NOWHERE = "modular-tf-check-nowhere"


@outside.check("FS-333")
def names_in_missing_containers_are_refused(fs: FilesystemWorkspace) -> None:
    """Operations on names in a container, volume or folder that does not exist return a status.

    Otherwise: A mistyped name ends the program, where an exception leaves the plugin.
    Remedy: Catch every exception in every function that C calls, and set a status.
    Source: filesystem.h; published plugins, observed
    """
    for place in _places(fs.root):
        uri = f"{place}/directory/file"
        for slot in filter(fs.offers, (one for one in QUESTIONS if one != "path_exists")):
            with suppress(Unsupported, Blocked):
                answer = fs.call(slot, uri)
                if isinstance(answer.value, OpenFile):  # some stores look at the first read only
                    answer.value.cleanup()
        if fs.offers("path_exists"):
            answer = fs.path_exists(uri)
            expect(not answer.ok, f"path_exists({uri}) is OK, and nothing is there")


def _places(root: str) -> Iterator[str]:
    """Yield a missing name on each level, innermost first, down to the one below the host."""
    level = root
    while "/" in (above := dirname(level).rstrip("/")) and above != level:
        level = above
        yield f"{level}/{_NOWHERE}"


memory = Suite("filesystem", "memory", level=ROBUST, ways=RAW)

_ODD_LENGTHS = (1, 7, 8, 15, 16, 17, 31, 63, 64, 65, 127, 4095, 4096, 4097)
"""In bytes: where buffers that are one byte too short show."""

_LONGEST_NAME = 255


@memory.check("FS-329")
def only_own_memory_is_written(fs: FilesystemWorkspace) -> None:
    """A plugin writes only into its own memory and what it is lent, and frees a block once.

    Otherwise: The damage shows up elsewhere: a crash, or wrong data, in whatever lies beside it.
    Remedy: Run the plugin with AddressSanitizer, and look at the calls before the one that is
    named.
    Source: the C language; filesystem.h, on const arguments

    Lengths at which buffers are often too short. The access itself looks at all memory after each
    call, and fails the check.
    """
    raise_harm_at_loading("FS-329")
    for length in _ODD_LENGTHS:
        name = fs.path("n" * min(length, _LONGEST_NAME))
        copy, directory = fs.path("copy"), fs.path("directory")
        uses = [("append", b"x" * length), ("tell",), ("flush",), ("close",)]
        reads = ((0, length), (length - 1, 2), (0, 2 * length), (length, 1))
        for _ in _called(fs, "new_writable_file", name, uses=uses):
            pass
        for _ in _called(
            fs, "new_random_access_file", name, uses=[("read", *part) for part in reads]
        ):
            pass
        calls: tuple[tuple[Any, ...], ...] = (
            *((slot, name) for slot in ("path_exists", "stat", "is_directory", "get_file_size")),
            ("paths_exist", [name, fs.missing()], True),
            ("get_children", fs.root),
            ("get_matching_paths", f"{name[:-1]}*"),
            ("copy_file", name, copy),
            ("rename_file", copy, fs.path("moved")),
            ("create_dir", directory),
            ("delete_dir", directory),
            ("delete_file", name),
        )
        for slot, *arguments in calls:
            with suppress(Unsupported):
                fs.call(slot, *arguments)
