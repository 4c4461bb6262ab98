"""Checks of the statuses that operations set, whatever they do."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.expectation import Blocked, Unsupported, expect
from modular_tf.check.filesystem.every_operation import failures, is_success, successes
from modular_tf.check.filesystem.expected_state import expect_content
from modular_tf.check.filesystem.further_ground import raw_subject
from modular_tf.check.filesystem.ground import FilesystemGround
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.every_operation import Call

CHECKS = CheckList("filesystem", "statuses")

_CODES = range(1, 17)
_NAME = 200  # bytes; local disks take 255
_DEEP = (1_000, 4_200)  # bytes in all
_LONG_NAMES = ("n" * 1_000, "n" * 70_000)


@CHECKS.check("FS-136", Level.WORKS, passes=RAW, rows=(36,))
def success_is_said(ground: FilesystemGround) -> None:
    """Look for operations that work and leave their status as it came."""
    worked = [(slot, answer) for slot, answer in successes(ground) if is_success(answer)]
    if not worked:
        raise Unsupported("no operation works on what the check can make: see the checks of each")
    silent = sorted({slot for slot, answer in worked if answer.touched is False})
    expect(
        not silent,
        f"{len(silent)} operations do not set their status",
        expected="OK, set in each call",
        found=", ".join(silent),
    )


@CHECKS.check("FS-137", Level.WORKS, passes=RAW, rows=(37,))
def failures_are_explained(ground: FilesystemGround) -> None:
    """Look at codes and messages of operations that fail."""
    for slot, answer in _failed(ground):
        expect(
            answer.code in _CODES,
            f"{slot} fails with a number that is no code",
            expected="1 to 16",
            found=code_found(answer),
        )
        expect(answer.message_is_text, f"the message of {slot} is not UTF-8", found=answer.message)
        expect(answer.message, f"{slot} fails without a message", found=code_found(answer))


@CHECKS.check("FS-138", Level.WORKS, passes=RAW, rows=(38,))
def what_is_offered_is_there(ground: FilesystemGround) -> None:
    """Look for operations that are set, and answer UNIMPLEMENTED."""
    answers = [*successes(ground), *failures(ground)]
    empty = sorted({slot for slot, answer in answers if answer.code == Code.UNIMPLEMENTED})
    expect(not empty, "operations are set and UNIMPLEMENTED", found=", ".join(empty))


@CHECKS.check("FS-357", Level.ROBUST, seconds=120)
def takes_long_paths(ground: FilesystemGround) -> None:
    """Each operation below directories of 1000 and 4200 bytes, and names of 1000 and 70000."""
    for directory in (*("/".join(["d" * _NAME] * (n // _NAME)) for n in _DEEP), *_LONG_NAMES):
        root = ground.path(directory)
        there = FilesystemGround(ground.subject, root, ground.target, ground.random)
        what = f"a path of {len(root)} bytes"
        _expect_codes(failures(there), what)
        if ground.subject.offers("new_writable_file"):
            with suppress(Unsupported):
                ground.subject.recursively_create_dir(root)
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


def _expect_two_files(ground: FilesystemGround, what: str) -> None:
    """Demand that two files whose paths differ at the end are two, where they can be made."""
    try:
        uris = {ground.make_file(name, name.encode()): name for name in ("one", "two")}
    except (Blocked, Unsupported):  # refused
        return
    for uri, name in uris.items():
        expect_content(ground, uri, name.encode(), f"the content of a file with {what}")


@CHECKS.check("FS-334", Level.ROBUST, passes=RAW)
def statuses_are_only_set(ground: FilesystemGround) -> None:
    """Look for operations that do something else where their status held an error before."""
    subject = raw_subject(ground)
    fresh, root = _answers_of(ground, ground.make_dir("fresh")), ground.make_dir("used")
    with subject.poisoned():
        poisoned = _answers_of(ground, root)
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


def _answers_of(ground: FilesystemGround, root: str) -> dict[str, Answer]:
    """Return the answer of each operation by its slot, the last one where it has two."""
    there = FilesystemGround(ground.subject, root, ground.target, ground.random)
    return dict(successes(there))


def _failed(ground: FilesystemGround) -> list[Call]:
    """Return the operations that failed where they must; UNIMPLEMENTED is FS-138."""
    found = [call for call in failures(ground) if not call[1].ok]
    if not found:
        raise Unsupported("no operation fails on what is missing: see the checks of each")
    return found
