"""Warnings about libraries beside a plugin that need TensorFlow and so cannot be opened here.

What a plugin names as needed is led to the host runtime, and so is what the probe finds that its
code may open by name. Any other library that needs one of TensorFlow's is not opened, such as one
that needs more than TensorFlow's C API; and a plugin that goes on without it offers less than it
could.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.host_exports import HOST_RUNTIME, REPLACED_SONAMES
from modular_tf.discovery.linking.opened_by_name import file_mentions
from modular_tf.discovery.sources.search_log import is_plugin_file_name
from modular_tf.errors import ElfError
from modular_tf.native.library import mapped_objects
from modular_tf.rules import Violation
from modular_tf.rules.first_contact import NEIGHBOURS_LINKABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OF_TENSORFLOW = REPLACED_SONAMES - {HOST_RUNTIME}


def unlinkable_neighbours(path: str, companions: Sequence[str]) -> Iterator[Violation]:
    """Yield a warning for each library beside a plugin that it names and that needs TensorFlow.

    Args:
        path: The plugin's file.
        companions: Files of the libraries that it brings along.
    """
    files = [os.path.realpath(file) for file in (path, *companions)]
    mapped = {*files, *(os.path.realpath(found.path) for found in mapped_objects())}
    for folder in dict.fromkeys(map(os.path.dirname, files)):
        for neighbour in _libraries_in(folder):
            missing = [] if neighbour in mapped else _needs_of_tensorflow(neighbour)
            if missing and any(file_mentions(file, os.path.basename(neighbour)) for file in files):
                yield Violation(
                    NEIGHBOURS_LINKABLE,
                    f"{neighbour}, which the plugin may open by itself, needs "
                    f"{' and '.join(missing)} of TensorFlow, so it cannot be opened here",
                )


def _libraries_in(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [os.path.join(folder, name) for name in sorted(names) if is_plugin_file_name(name)]


def _needs_of_tensorflow(path: str) -> list[str]:
    try:
        with ElfFile(path) as elf:
            return sorted(_OF_TENSORFLOW.intersection(elf.dynamic.needed))
    except ElfError:
        return []
