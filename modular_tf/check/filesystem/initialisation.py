"""Checks of `init` and `cleanup`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.check import RAW, ROBUST, WARNING, WORKS, Suite
from modular_tf.check.filesystem.expected_state import expect_content
from modular_tf.check.filesystem.further_ground import further_filesystem, ground_on, raw_subject
from modular_tf.check.filesystem.ground import CONTENT
from modular_tf.check.repetition import expect_no_leak, rounds_of

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

# What looks for credentials or a region in `init` may need some time for each.
suite = Suite("filesystem", "init", level=ROBUST, ways=RAW, seconds=150, source="filesystem.h")

_ROUNDS = 50


@suite.check("FS-132", level=WORKS)
def sets_its_handle_alone(fs: FilesystemGround) -> None:
    """init succeeds on a zeroed handle, and writes to plugin_filesystem alone.

    Otherwise: The scheme is not registered; what lies behind the handle is the host's.
    Remedy: Set filesystem->plugin_filesystem or leave it NULL; a status that is not set is OK.
    """
    other = raw_subject(fs).another()
    other.init().must_be_ok()
    other.cleanup()


@suite.check("FS-134", traits="writes", severity=WARNING)
def filesystems_are_independent(fs: FilesystemGround) -> None:
    """Two filesystems of one plugin do not disturb each other.

    Otherwise: A host that registers the plugin again, or forks, breaks the filesystem that it has.
    Remedy: Keep all state behind plugin_filesystem.
    Source: design §9
    """
    with further_filesystem(fs) as second, ground_on(second, fs, "FS-134") as there:
        with further_filesystem(fs) as first, ground_on(first, fs, "FS-134") as here:
            here.make_file("F", b"first")
            uri = there.make_file()
            expect_content(here, here.path("F"), b"first", "the content of the first one's file")
        what = "the content of the second one's file after cleanup of the first"
        expect_content(there, uri, CONTENT, what)


@suite.check("FS-135", severity=WARNING)
def comes_and_goes(fs: FilesystemGround) -> None:
    """init and cleanup can follow each other many times, and nothing is left behind.

    Otherwise: Each reload of the plugin costs file descriptors or memory.
    Remedy: Release in cleanup all that init has acquired.
    """

    def live() -> None:
        with further_filesystem(fs) as other:
            if other.has("path_exists"):
                other.path_exists(fs.missing())

    expect_no_leak(live, rounds_of(fs.target.options, _ROUNDS), "init and cleanup")
