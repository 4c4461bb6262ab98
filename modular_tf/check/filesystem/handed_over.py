"""Checks that a plugin leaves alone what it has handed over: the host frees it after copying."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.check import RAW, Suite
from modular_tf.check.expectation import expect, expect_equal
from modular_tf.check.filesystem.every_operation import codes_of_all
from modular_tf.check.filesystem.further_ground import (
    further_filesystem,
    ground_on,
    initialised,
    registration_of,
)
from modular_tf.check.filesystem.registration_memory import content_of, overwrite

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround
    from modular_tf.check.filesystem.registration_memory import Block

suite = Suite("filesystem", "handed-over", ways=RAW, seconds=90, source="filesystem.h")


@suite.check("FS-126")
def cleanup_leaves_it_alone(fs: FilesystemGround) -> None:
    """The plugin does not free what it has handed over.

    Otherwise: The host has freed it: freeing it twice crashes.
    Remedy: Keep no pointers to schemes, tables and the ops array.

    The memory is watched: allocators write to what is freed.
    """
    watched = registration_of(fs).allocated_blocks()
    other = initialised(fs)
    before = content_of(watched)
    other.cleanup()
    _expect_unchanged(before, watched, "cleanup freed or changed what was handed over")


@suite.check("FS-128")
def operations_leave_it_alone(fs: FilesystemGround) -> None:
    """The plugin does not write to what it has handed over.

    Otherwise: The memory is the host's and freed: the write hits what came in its place.
    Remedy: Keep no pointers to schemes, tables and the ops array.
    """
    watched = registration_of(fs).allocated_blocks()
    before = content_of(watched)
    with further_filesystem(fs) as other:
        with ground_on(other, fs, "FS-128") as there:
            codes_of_all(there)
        _expect_unchanged(before, watched, "an operation freed or changed what was handed over")


@suite.check("FS-127")
def works_without_it(fs: FilesystemGround) -> None:
    """The plugin works after its own tables are overwritten.

    Otherwise: The host frees them after copying: what still reads them crashes, sooner or later.
    Remedy: Let functions call each other by name, not through the registered tables.
    """
    expected = codes_of_all(fs)
    overwrite(registration_of(fs).allocated_blocks())
    with further_filesystem(fs) as other, ground_on(other, fs, "FS-127") as there:
        found = codes_of_all(there)
    expect_equal(found, expected, "what the operations return without the plugin's own tables")


def _expect_unchanged(before: dict[str, bytes | None], watched: list[Block], message: str) -> None:
    after = content_of(watched)
    changed = [name for name, content in before.items() if content != after[name]]
    expect(not changed, message, found=", ".join(changed))
