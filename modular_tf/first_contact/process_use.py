"""The resources of the process that a plugin keeps, as a share of those that it may have."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.rules import Violation
from modular_tf.rules.first_contact import PROCESS_STATE_KEPT, RIGHTS_KEPT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from modular_tf.first_contact.process_limits import ProcessLimits

_DESCRIPTORS, _WATCHES, _MAPPINGS = "descriptors", "inotify instances", "mappings of memory"
_FILES_OF_LIMITS = {
    _WATCHES: "/proc/sys/fs/inotify/max_user_instances",
    _MAPPINGS: "/proc/sys/vm/max_map_count",
}
_OWNERS = {_DESCRIPTORS: "the process", _WATCHES: "the user", _MAPPINGS: "the process"}
_FEW, _HALF = 8, 2  # an eighth is a warning, half is refused


def process_use() -> dict[str, int]:
    """Return how many of each resource the process has now.

    Raises:
        OSError: That cannot be read.
    """
    open_files = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the directory's own
            open_files.append(os.readlink(f"/proc/self/fd/{name}"))
    with open("/proc/self/maps", "rb") as maps:
        mappings = sum(1 for _ in maps)
    return {
        _DESCRIPTORS: len(open_files),
        _WATCHES: open_files.count("anon_inode:inotify"),
        _MAPPINGS: mappings,
    }


def use_changes(
    before: Mapping[str, int], after: Mapping[str, int], own: ProcessLimits
) -> Iterator[Violation]:
    """Yield a violation for each resource of which a plugin keeps a large share.

    Args:
        before: What there was before it ran.
        after: What there is now.
        own: The limits of the application.
    """
    limits = {_DESCRIPTORS: own["RLIMIT_NOFILE"][0], **_limits_of_files()}
    for name, limit in limits.items():
        kept = after.get(name, 0) - before.get(name, 0)
        if kept > 0 and kept * _FEW >= limit:
            yield Violation(
                RIGHTS_KEPT if kept * _HALF >= limit else PROCESS_STATE_KEPT,
                f"keeps {kept} of the {int(limit)} {name} that {_OWNERS[name]} may have",
            )


def _limits_of_files() -> dict[str, int]:
    """Return the limits that files have; there may be none."""
    found = {}
    for name, path in _FILES_OF_LIMITS.items():
        with suppress(OSError, ValueError), open(path, "rb") as file:
            found[name] = int(file.read())
    return found
