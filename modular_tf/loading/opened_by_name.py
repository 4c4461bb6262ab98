"""Libraries that a plugin's code may open by name, led to the host runtime.

The dynamic linker would look for the library of TensorFlow that such a library needs. So mirrors of
folders show a copy instead of its file, which needs a library of the host by another name.

Any other library that needs one of TensorFlow's cannot be opened, such as one that needs more than
TensorFlow's C API; a plugin that goes on without it offers less than it could, and a trial warns.
"""

from __future__ import annotations

import itertools
import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.host_exports import HOST_RUNTIME, REPLACED_SONAMES
from modular_tf.discovery.linking.link_scope import file_mentions
from modular_tf.discovery.sources.search_log import is_plugin_file_name
from modular_tf.errors import ElfError
from modular_tf.loading.bound_files import bound_files
from modular_tf.loading.origin_folder import ShownLibrary
from modular_tf.loading.private_copy import copy_for_host
from modular_tf.native.library import Library, mapped_objects
from modular_tf.native.sanitizers import sanitizer_of_process
from modular_tf.rules import Violation
from modular_tf.rules.first_contact import NEIGHBOURS_LINKABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import ExitStack

    from modular_tf.loading.binding import LinkNames
    from modular_tf.loading.opened_file import OpenDescriptor, OpenedFile

_OF_TENSORFLOW = REPLACED_SONAMES - {HOST_RUNTIME}
# Short, so that it fits in the place of every name of a library of TensorFlow.
_HOST_NAME = "libmtf.so"
_numbers = itertools.count(1)


class OpenedByName(NamedTuple):
    """The libraries that one plugin's code may open by name."""

    host_name: str  # what they need instead of TensorFlow's libraries; this plugin's alone
    shown: tuple[ShownLibrary, ...]  # their copies
    levels: dict[str, int]  # how many parent folders of its own each one searches, by its file

    def mirrored_path(self, file: str, source: OpenDescriptor, levels: int) -> str | None:
        """Return a path to an open file in a mirror of its folder that shows the libraries."""
        if not self.shown:
            return bound_files.mirrors.path_in(file, source, levels)
        folder = os.path.realpath(os.path.dirname(file))
        levels = max(levels, *(_levels_from(folder, *searched) for searched in self.levels.items()))
        return bound_files.mirrors.path_in(
            file, source, levels, self.shown, shown_for=self.host_name
        )

    def close_unopened(self) -> None:
        """Close the copies that nobody has opened; a second call does nothing."""
        for library in self.shown:
            is_unopened = library.source.is_open and Library.find(library.source.mapped_as) is None
            if is_unopened and bound_files.mirrors.show_no_longer(library):
                library.source.close()


NOTHING_BY_NAME = OpenedByName("", (), {})


def opened_by_name(
    files: Sequence[tuple[OpenedFile, LinkNames]],
    replaced_sonames: frozenset[str],
    copies: ExitStack,
) -> OpenedByName:
    """Return copies of libraries, led to a library that does not exist yet; `copies` closes them.

    Raises `PluginError` as `copy_for_host`.
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

    Opened by name are libraries that need one of TensorFlow's, that no other library here needs,
    and whose file name is in the bytes of one. One that is not named at all is mapped at once: a
    library of the system may need it. The plugin is the last of the files.
    """
    *others, plugin = files
    waiting = [found for found in others if not replaced_sonames.isdisjoint(found[1].needed)]
    reached = [plugin, *(found for found in others if found not in waiting)]
    for needing in reached:
        linked = set(map(os.path.basename, needing[1].linked))
        reached += [
            (file, names)
            for file, names in waiting
            if os.path.basename(file.path) in linked or names.soname in linked
        ]
        waiting = [found for found in waiting if found not in reached]
    by_name = [
        (file, names)
        for file, names in waiting
        if any(file_mentions(it.mapped_as, os.path.basename(file.path)) for it, _ in reached)
    ]
    return [found not in by_name for found in files]


def _levels_from(folder: str, file: str, levels: int) -> int:
    """Return how many parents of a folder are needed for a file that searches `levels` of its."""
    way = os.path.relpath(os.path.realpath(os.path.dirname(file)), folder).split("/")
    ups = way.count("..")
    return ups - (len(way) - ups - way.count(".")) + levels


def unlinkable_neighbours(path: str, companions: Sequence[str]) -> Iterator[Violation]:
    """Yield a warning for each library beside a plugin that it names and that needs TensorFlow."""
    files = [os.path.realpath(file) for file in (path, *companions)]
    mapped = {*files, *(os.path.realpath(found.path) for found in mapped_objects())}
    for folder in dict.fromkeys(map(os.path.dirname, files)):
        names: list[str] = []
        with suppress(OSError):
            names = sorted(filter(is_plugin_file_name, os.listdir(folder)))
        for neighbour in (os.path.join(folder, name) for name in names):
            missing: list[str] = []
            if neighbour not in mapped:
                with suppress(ElfError), ElfFile(neighbour) as elf:
                    missing = sorted(_OF_TENSORFLOW.intersection(elf.dynamic.needed))
            if missing and any(file_mentions(file, os.path.basename(neighbour)) for file in files):
                yield Violation(
                    NEIGHBOURS_LINKABLE,
                    f"{neighbour}, which the plugin may open by itself, needs "
                    f"{' and '.join(missing)} of TensorFlow, so it cannot be opened here",
                )
