"""Checks of `init` and `cleanup`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.answers import expect_ok
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.filesystem.expected_state import expect_content
from modular_tf.check.filesystem.further_ground import further_filesystem, ground_on, raw_subject
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.level import Level
from modular_tf.check.repetition import expect_no_leak, rounds_of

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

CHECKS = CheckList("filesystem", "init")

_ROUNDS = 50
_SECONDS = 150.0
"""What looks for credentials or a region in `init` may need some for each."""


@CHECKS.check("FS-132", Level.WORKS, passes=RAW, rows=(32,), seconds=_SECONDS)
def sets_its_handle_alone(ground: FilesystemGround) -> None:
    """Call it on a zeroed handle between guards."""
    other = raw_subject(ground).another()
    expect_ok(other.init(), "init")
    other.cleanup()


@CHECKS.check("FS-134", Level.ROBUST, passes=RAW, traits=("writes",), rows=(34,), seconds=_SECONDS)
def filesystems_are_independent(ground: FilesystemGround) -> None:
    """Use two, clean one up, and use the other."""
    with further_filesystem(ground) as second, ground_on(second, ground, "FS-134") as there:
        with further_filesystem(ground) as first, ground_on(first, ground, "FS-134") as here:
            here.make_file("F", b"first")
            uri = there.make_file()
            expect_content(here, here.path("F"), b"first", "the content of the first one's file")
        what = "the content of the second one's file after cleanup of the first"
        expect_content(there, uri, CONTENT, what)


@CHECKS.check("FS-135", Level.ROBUST, passes=RAW, rows=(35,), seconds=_SECONDS)
def comes_and_goes(ground: FilesystemGround) -> None:
    """Initialise and clean up 50 times, with a question in between."""

    def live() -> None:
        with further_filesystem(ground) as other:
            if other.has("path_exists"):
                other.path_exists(ground.missing())

    expect_no_leak(live, rounds_of(ground.target.options, _ROUNDS), "init and cleanup")
