"""Libraries that a plugin's code may open by name, led to the host runtime.

The dynamic linker would look for the library of TensorFlow that such a library needs. So mirrors of
folders show a copy in the place of its file, which needs a library of the host by another name.
"""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.linking.opened_by_name import file_mentions
from modular_tf.loading.origin_folder import ShownLibrary, mirrored_path, show_no_longer
from modular_tf.loading.private_copy import copy_for_host
from modular_tf.native.library import Library
from modular_tf.native.sanitizers import sanitizer_of_process

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from modular_tf.loading.opened_file import OpenDescriptor, OpenedFile
    from modular_tf.loading.target import LinkNames

# Short, so that it fits in the place of every name of a library of TensorFlow.
_HOST_NAME = "libmtf.so"
_numbers = itertools.count(1)


class OpenedByName(NamedTuple):
    """The libraries that one plugin's code may open by name.

    Attributes:
        host_name: What their copies need in the place of TensorFlow's libraries; this plugin alone
            has a library of that name.
        shown: The copies.
        levels: How many parent folders of its own each one searches, by its file.
    """

    host_name: str
    shown: tuple[ShownLibrary, ...]
    levels: dict[str, int]

    def mirrored_path(self, file: str, source: OpenDescriptor, levels: int) -> str | None:
        """Return a path to an open file in a mirror of its folder that shows the libraries.

        Args:
            file: The plugin's file, or that of a library that it needs.
            source: The open file that is mapped for it.
            levels: How many parent folders it searches.
        """
        if not self.shown:
            return mirrored_path(file, source, levels)
        folder = os.path.realpath(os.path.dirname(file))
        levels = max(levels, *(_levels_from(folder, *searched) for searched in self.levels.items()))
        return mirrored_path(file, source, levels, self.shown, shown_for=self.host_name)

    def close_unopened(self) -> None:
        """Close the copies that nobody has opened; a second call does nothing."""
        for library in self.shown:
            is_unopened = library.source.is_open and Library.find(library.source.mapped_as) is None
            if is_unopened and show_no_longer(library):
                library.source.close()


NOTHING_BY_NAME = OpenedByName("", (), {})


def opened_by_name(
    files: Sequence[tuple[OpenedFile, LinkNames]],
    replaced_sonames: frozenset[str],
    copies: ExitStack,
) -> OpenedByName:
    """Return copies of libraries, led to a library that does not exist yet.

    Args:
        files: The libraries, as they are.
        replaced_sonames: Names of libraries that the host runtime replaces.
        copies: Closes the copies.

    Raises:
        PluginError: As `copy_for_host`.
    """
    if not files:
        return NOTHING_BY_NAME
    host_name = f"{_HOST_NAME}.{next(_numbers)}"
    shown = []
    for file, _ in files:
        source = copy_for_host(file, replaced_sonames, host_name)
        copies.callback(source.close)
        if sanitizer_of_process() is not None:
            source.keep()  # see `binding`
        shown.append(ShownLibrary(file.path, source))
    levels = {file.path: names.levels or 0 for file, names in files}
    return OpenedByName(host_name, tuple(shown), levels)


def is_needed(
    files: Sequence[tuple[OpenedFile, LinkNames]], replaced_sonames: frozenset[str]
) -> list[bool]:
    """Return for each library whether it is mapped at once; others are opened by name.

    One that a library of the system needs is not named by any of these, but not in their code
    either.

    Args:
        files: The libraries, the plugin last.
        replaced_sonames: Names of libraries that the host runtime replaces.
    """
    *others, plugin = files
    waiting = [found for found in others if not replaced_sonames.isdisjoint(found[1].needed)]
    reached = [plugin, *(found for found in others if found not in waiting)]
    for needing in reached:
        linked = set(map(os.path.basename, needing[1].linked))
        reached += [found for found in waiting if not linked.isdisjoint(_names(*found))]
        waiting = [found for found in waiting if found not in reached]
    by_name = [found for found in waiting if _is_mentioned(found[0], reached)]
    return [found not in by_name for found in files]


def _is_mentioned(file: OpenedFile, by: Sequence[tuple[OpenedFile, LinkNames]]) -> bool:
    name = os.path.basename(file.path)
    return any(file_mentions(other.mapped_as, name) for other, _ in by)


def _names(file: OpenedFile, names: LinkNames) -> set[str]:
    return {os.path.basename(file.path), names.soname or ""}


def _levels_from(folder: str, file: str, levels: int) -> int:
    """Return how many parents of a folder are needed for a file that searches `levels` of its."""
    way = os.path.relpath(os.path.realpath(os.path.dirname(file)), folder).split("/")
    ups = way.count("..")
    return ups - (len(way) - ups - way.count(".")) + levels
