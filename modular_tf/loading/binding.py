"""How a plugin is mapped so that it calls the host runtime and nothing else does."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

from modular_tf.discovery.elf import ElfFile
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.fork_lock import ForkLock
from modular_tf.loading.private_copy import copy_for_host, keep_in_memory
from modular_tf.loading.stub_library import stub_library
from modular_tf.native.library import RTLD_DEEPBIND, RTLD_NOW_LOCAL, Library, show_as
from modular_tf.native.runtime_library import load_runtime, tensorflow_is_loaded

if TYPE_CHECKING:
    from collections.abc import Sequence

_stub_numbers = itertools.count(1)
_lock = ForkLock()

# Libraries stay mapped for the life of the process, so a file is mapped once, for all services.
_bound: dict[tuple[int, int, int, int], Library] = {}


def bind(path: str, companions: Sequence[str], stand_ins: frozenset[str]) -> Library:
    """Map a plugin, bound to the host runtime; the same file again gives the same library.

    A library that needs TensorFlow's by name is mapped from a private copy, any other from its
    own file. With a real TensorFlow in the process the plugin's own scope comes first
    (`RTLD_DEEPBIND`), since TensorFlow's symbols are global; never otherwise, because that would
    also bypass a preloaded allocator.

    Args:
        path: The plugin's file.
        companions: Files of libraries that the plugin brings along, those that others of them
            need first.
        stand_ins: Names of libraries in whose place the host runtime stands.

    Raises:
        PluginError: It cannot be mapped (LD-050), with the dynamic linker's reason.
    """
    with _lock:
        key = _file_key(path)
        if key not in _bound:
            _bound[key] = _map(path, companions, stand_ins)
        return _bound[key]


def _file_key(path: str) -> tuple[int, int, int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _map(path: str, companions: Sequence[str], stand_ins: frozenset[str]) -> Library:
    runtime = load_runtime()
    copied = {file: _copy_if_bound_to_tensorflow(file, stand_ins) for file in (*companions, path)}
    target = copied[path] or path
    if target == path and Library.find(path) is not None:
        # Mapped by somebody else, and bound to what they have: a copy of ours is a second library.
        with ElfFile(path) as elf:
            target = copy_for_host(elf, stand_ins)
    flags = RTLD_NOW_LOCAL
    needed = [runtime.path]
    if any(copied.values()):
        # A copy has lost the folder that its companions are found from; so name them all.
        needed += [copied[companion] or companion for companion in companions]
    needed.append(target)
    if tensorflow_is_loaded():
        flags |= RTLD_DEEPBIND
        needed = [*_preloaded(), *needed]
    with ElfFile(path) as elf:
        machine = elf.image.machine_number
    soname = f"libmodular_tf_stub.so.{next(_stub_numbers)}"
    stub = keep_in_memory(stub_library(soname, needed, machine), soname)
    try:
        Library.open(stub, flags)
    except ModularTFError as error:
        raise PluginError(
            f"{path}: the dynamic linker refuses it: {error.message} (rule LD-050)",
            plugin=path,
            path=path,
            rule="LD-050",
        ) from error
    library = Library.find(target)
    if library is None:
        raise PluginError(f"{path}: mapped, but not found again (rule LD-050)", rule="LD-050")
    for file, copy in ((path, target), *copied.items()):
        if copy is not None:
            show_as(copy, file)
    return Library(path, library.handle)


def _copy_if_bound_to_tensorflow(path: str, stand_ins: frozenset[str]) -> str | None:
    """Return the path of a private copy for a file that needs TensorFlow's libraries by name."""
    with ElfFile(path) as elf:
        if stand_ins.isdisjoint(elf.dynamic.needed):
            return None
        return copy_for_host(elf, stand_ins)


def _preloaded() -> list[str]:
    """Return what the user preloaded: its allocator must stay in front of the C library's.

    A name without a path is found again by itself; one that was never found is left out.
    """
    names = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    return [name for name in names if Library.find(name) is not None]
