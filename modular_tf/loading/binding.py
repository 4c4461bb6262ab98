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
from modular_tf.native.library import (
    RTLD_DEEPBIND,
    RTLD_NOW_LOCAL,
    Library,
    absent_function,
    show_as,
)
from modular_tf.native.runtime_library import load_runtime, tensorflow_is_loaded

if TYPE_CHECKING:
    from collections.abc import Sequence

_stub_numbers = itertools.count(1)
_lock = ForkLock()

# Libraries stay mapped for the life of the process, so a file is mapped once, for all services.
_bound: dict[tuple[int, int, int, int], Library] = {}


def bind(
    path: str, companions: Sequence[str], stand_ins: frozenset[str], absent: Sequence[str] = ()
) -> Library:
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
        absent: Functions that nobody has; one that returns 0 stands in their place.

    Raises:
        PluginError: It cannot be mapped (LD-050), with the dynamic linker's reason.
    """
    with _lock:
        key = _file_key(path)
        if key not in _bound:
            _bound[key] = _map(path, companions, stand_ins, absent)
        return _bound[key]


def is_bound(path: str) -> bool:
    """Tell whether this very file was mapped by `bind` before; a replaced one was not."""
    try:
        return _file_key(path) in _bound
    except OSError:
        return False


def _file_key(path: str) -> tuple[int, int, int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _map(
    path: str, companions: Sequence[str], stand_ins: frozenset[str], absent: Sequence[str]
) -> Library:
    copies = _private_copies(path, companions, stand_ins)
    target = copies.get(path, path)
    needed = [load_runtime().path]
    if copies:
        # A copy has lost the folder that its companions are found from; so name them all.
        needed += [copies.get(companion, companion) for companion in companions]
    _map_stub(path, [*needed, target], absent)
    library = Library.find(target)
    if library is None:
        raise PluginError(f"{path}: mapped, but not found again (rule LD-050)", rule="LD-050")
    for file, copy in copies.items():
        show_as(copy, file)
    return Library(path, library.handle)


def _private_copies(
    path: str, companions: Sequence[str], stand_ins: frozenset[str]
) -> dict[str, str]:
    """Return what to map in the place of those files that cannot be mapped themselves."""
    copies = {}
    for file in (*companions, path):
        with ElfFile(file) as elf:
            bound_to_tensorflow = not stand_ins.isdisjoint(elf.dynamic.needed)
            # Mapped by somebody else, a plugin is bound to what they have; and the dynamic linker
            # replaces a dollar and what follows it in a path.
            if bound_to_tensorflow or "$" in file or (file == path and Library.find(path)):
                copies[file] = copy_for_host(elf, stand_ins)
    return copies


def _map_stub(path: str, needed: list[str], absent: Sequence[str]) -> None:
    """Map a stub that needs these libraries, the plugin last, and defines what is absent."""
    flags = RTLD_NOW_LOCAL
    if tensorflow_is_loaded():
        flags |= RTLD_DEEPBIND
        needed = [*_preloaded(), *needed]
    with ElfFile(path) as elf:
        machine = elf.image.machine_number
    soname = f"libmodular_tf_stub.so.{next(_stub_numbers)}"
    functions = dict.fromkeys(absent, absent_function())
    stub = stub_library(soname, needed, machine, functions)
    try:
        Library.open(keep_in_memory(stub, soname), flags)
    except ModularTFError as error:
        raise PluginError(
            f"{path}: the dynamic linker refuses it: {error.message} (rule LD-050)",
            plugin=path,
            path=path,
            rule="LD-050",
        ) from error


def _preloaded() -> list[str]:
    """Return what the user preloaded: its allocator must stay in front of the C library's.

    A name without a path is found again by itself; one that was never found is left out.
    """
    names = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    return [name for name in names if Library.find(name) is not None]
