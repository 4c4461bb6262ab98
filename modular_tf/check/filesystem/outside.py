"""The check of names beside what there is: another container, another volume, another folder."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.check.check import CheckList
from modular_tf.check.expectation import Blocked, Unsupported, expect
from modular_tf.check.level import Level
from modular_tf.filesystem.uri import dirname

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.ground import FilesystemGround

CHECKS = CheckList("filesystem", "outside")

_NOWHERE = "modular-tf-check-nowhere"
_QUESTIONS = (
    "get_children",
    "stat",
    "is_directory",
    "get_file_size",
    "new_random_access_file",
    "new_read_only_memory_region_from_file",
)


@CHECKS.check("FS-333", Level.ROBUST, seconds=60)
def comes_back_from_nowhere(ground: FilesystemGround) -> None:
    """On every level above the root, ask about names beside it; nothing is made there."""
    for place in _places(ground.root):
        uri = f"{place}/directory/file"
        for slot in _QUESTIONS:
            if ground.subject.offers(slot):
                with suppress(Unsupported, Blocked):
                    _close(getattr(ground.subject, slot)(uri))
        if ground.subject.offers("path_exists"):
            answer = ground.subject.path_exists(uri)
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
