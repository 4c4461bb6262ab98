"""Checks that a plugin leaves alone what it has handed over: the host frees it after copying."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.check import RAW, CheckList
from modular_tf.check.expectation import expect, expect_equal
from modular_tf.check.filesystem.every_operation import codes_of_all
from modular_tf.check.filesystem.further_ground import (
    further_filesystem,
    ground_on,
    initialised,
    registration_of,
)
from modular_tf.check.filesystem.registration_memory import content_of, overwrite
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround
    from modular_tf.check.filesystem.registration_memory import Block

CHECKS = CheckList("filesystem", "handed-over")

_SECONDS = 90.0


@CHECKS.check("FS-126", Level.WORKS, passes=RAW, rows=(26,), seconds=_SECONDS)
def cleanup_leaves_it_alone(ground: FilesystemGround) -> None:
    """Clean up while the memory is watched: allocators write to what is freed."""
    watched = registration_of(ground).allocated_blocks()
    other = initialised(ground)
    before = content_of(watched)
    other.cleanup()
    _expect_unchanged(before, watched, "cleanup freed or changed what was handed over")


@CHECKS.check("FS-128", Level.WORKS, passes=RAW, rows=(28,), seconds=_SECONDS)
def operations_leave_it_alone(ground: FilesystemGround) -> None:
    """Work while the memory is watched."""
    watched = registration_of(ground).allocated_blocks()
    before = content_of(watched)
    with further_filesystem(ground) as other:
        with ground_on(other, ground, "FS-128") as there:
            codes_of_all(there)
        _expect_unchanged(before, watched, "an operation freed or changed what was handed over")


@CHECKS.check("FS-127", Level.WORKS, passes=RAW, rows=(27,), seconds=_SECONDS)
def works_without_it(ground: FilesystemGround) -> None:
    """Tried by working on after the arguments of init are overwritten."""
    expected = codes_of_all(ground)
    overwrite(registration_of(ground).allocated_blocks())
    with further_filesystem(ground) as other, ground_on(other, ground, "FS-127") as there:
        found = codes_of_all(there)
    expect_equal(found, expected, "what the operations return without the plugin's own tables")


def _expect_unchanged(before: dict[str, bytes | None], watched: list[Block], message: str) -> None:
    after = content_of(watched)
    changed = [name for name, content in before.items() if content != after[name]]
    expect(not changed, message, found=", ".join(changed))
