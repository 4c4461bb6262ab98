"""The check of names beside what there is: another container, another volume, another folder."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.check.check import ROBUST, Suite
from modular_tf.check.expectation import Blocked, Unsupported, expect
from modular_tf.filesystem.uri import dirname

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.ground import FilesystemGround

suite = Suite("filesystem", "outside", level=ROBUST, seconds=60)

_NOWHERE = "modular-tf-check-nowhere"
_QUESTIONS = (
    "get_children",
    "stat",
    "is_directory",
    "get_file_size",
    "new_random_access_file",
    "new_read_only_memory_region_from_file",
)


@suite.check("FS-333")
def comes_back_from_nowhere(fs: FilesystemGround) -> None:
    """Operations on names in a container, volume or folder that does not exist return a status.

    Otherwise: A mistyped name ends the program, where an exception leaves the plugin.
    Remedy: Catch every exception in every function that C calls, and set a status.
    Source: filesystem.h; published plugins, observed
    """
    for place in _places(fs.root):
        uri = f"{place}/directory/file"
        for slot in _QUESTIONS:
            if fs.subject.offers(slot):
                with suppress(Unsupported, Blocked):
                    _close(getattr(fs.subject, slot)(uri))
        if fs.subject.offers("path_exists"):
            answer = fs.subject.path_exists(uri)
            expect(not answer.ok, f"path_exists({uri}) is OK, and nothing is there")


def _places(root: str) -> Iterator[str]:
    """Yield a missing name on each level, innermost first, down to the one below the host."""
    level = root
    while "/" in (above := dirname(level).rstrip("/")) and above != level:
        level = above
        yield f"{level}/{_NOWHERE}"


def _close(answer: Answer) -> None:
    """Close what was opened though nothing is there; some stores look at the first read only."""
    if hasattr(answer.value, "close"):
        answer.value.close()
