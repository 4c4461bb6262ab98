"""Libraries that a plugin's code may open by name, and that need one of TensorFlow's.

A plugin may choose a library for this processor in a constructor and open it with dlopen. Where
that library needs one of TensorFlow's, only a copy of it can be led to the host. So such libraries
are found before: in the folders where the linker, or the plugin's code, looks from the plugin's own
folder, those that need a library of TensorFlow and whose file name is part of the plugin's bytes.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from itertools import islice
from typing import TYPE_CHECKING

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.dynamic_linker import running_program
from modular_tf.discovery.linking.host_exports import HOST_RUNTIME
from modular_tf.discovery.linking.link_scope import MAX_LIBRARIES, LinkedLibrary, LinkScope
from modular_tf.discovery.linking.system_libraries import expand, is_of_system
from modular_tf.discovery.sources.search_log import is_plugin_file_name
from modular_tf.errors import ElfError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.discovery.linking.host_exports import HostExports
    from modular_tf.discovery.linking.link_scope import ProcessScope

__all__ = ["file_mentions", "libraries_opened_by_name"]

_BLOCK_BYTES = 1 << 20


def libraries_opened_by_name(
    own: Sequence[LinkedLibrary], scope: LinkScope, process: ProcessScope, host: HostExports
) -> Iterator[LinkScope]:
    """Yield a scope for each library that code may open by name and that needs TensorFlow.

    Each scope begins with that library, and has what comes with it beside what is mapped before. It
    is closed when the next one is asked for.

    `own` are the plugin and the libraries that it brings along; `scope` is the plugin's.
    """
    needed = {library.elf.identity for library in scope.libraries}
    replaced = host.sonames - {HOST_RUNTIME}
    for path in _neighbours(own):
        elf = _open(path)
        if elf is None:
            continue
        with elf:
            if elf.identity in needed or replaced.isdisjoint(elf.dynamic.needed):
                continue
            name = os.path.basename(path)
            if any(file_mentions(library.elf.path, name) for library in own):
                root = LinkedLibrary(name, elf, is_companion=True)
                with (
                    suppress(ElfError),
                    closing(LinkScope(root, process, offered=host.sonames, before=scope)) as found,
                ):
                    yield found


def _neighbours(own: Sequence[LinkedLibrary]) -> Iterator[str]:
    """Yield libraries in the folders that are searched from the folders of these libraries."""
    folders: dict[str, str] = {}
    for library in own:
        for folder in _folders(library):
            folders.setdefault(os.path.realpath(folder), folder)
    for folder in folders.values():
        yield from islice(_libraries_in(folder), MAX_LIBRARIES)


def _folders(library: LinkedLibrary) -> Iterator[str]:
    dynamic, origin = library.elf.dynamic, os.path.dirname(library.elf.path)
    for template in dynamic.search_path:
        if "$ORIGIN" in template or "${ORIGIN}" in template:
            yield from expand(template, origin)
    if dynamic.strings.mentions(b"dladdr"):
        yield origin


def _libraries_in(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = (os.path.join(folder, name) for name in sorted(names) if is_plugin_file_name(name))
    return [path for path in found if not is_of_system(path)]


def _open(path: str) -> ElfFile | None:
    try:
        elf = ElfFile(path)
    except ElfError:
        return None
    if elf.image.machine_number == running_program().machine and elf.is_shared_object:
        return elf
    elf.close()
    return None


def file_mentions(path: str, name: str) -> bool:
    """Return whether the bytes of a file contain a name; False if it cannot be read."""
    wanted, end = os.fsencode(name), b""
    try:
        with open(path, "rb") as stream:
            while block := stream.read(_BLOCK_BYTES):
                if wanted in end + block:
                    return True
                end = block[-len(wanted) :]
    except OSError:
        return False
    return False
