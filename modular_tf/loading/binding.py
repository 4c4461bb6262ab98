"""How a plugin is mapped so that it calls the host runtime and nothing else does."""

from __future__ import annotations

import itertools
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.file_identity import FileIdentity
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.fork_lock import ForkLock
from modular_tf.loading.opened_file import OpenedFile, changed_since
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
    from collections.abc import Mapping, Sequence

    from modular_tf.discovery.file_identity import SeenFile

_stub_numbers = itertools.count(1)
_lock = ForkLock()


class _Bound(NamedTuple):
    library: Library
    mapped_as: str
    sha256: str | None


# Libraries stay mapped for the life of the process, so a file is mapped once, for all services.
_bound: dict[tuple[int, ...] | tuple[str, ...], _Bound] = {}


def bind(
    path: str,
    companions: Sequence[str],
    stand_ins: frozenset[str],
    absent: Sequence[str] = (),
    *,
    checked: Sequence[SeenFile] | None = None,
    sealed: bool = False,
) -> Library:
    """Map a plugin, bound to the host runtime; the same file again gives the same library.

    Each file is opened once, and what was opened is compared with what was checked, and mapped. A
    library that needs TensorFlow's by name is mapped from a private copy. So is one that changed
    less than a tick of the clock before it was checked, since only its bytes can tell whether it
    changed again. With a real TensorFlow in the process the plugin's own scope comes first
    (`RTLD_DEEPBIND`), since TensorFlow's symbols are global; never otherwise, because that would
    also bypass a preloaded allocator.

    Args:
        path: The plugin's file.
        companions: Files of libraries that the plugin brings along, those that others of them
            need first.
        stand_ins: Names of libraries in whose place the host runtime stands.
        absent: Functions that nobody has; one that returns 0 stands in their place.
        checked: The files as they were when they were checked; None where nobody checked them.
        sealed: Map copies that nobody can write to, one for all files with the same bytes. A
            mapped file shows what is written to it later.

    Raises:
        PluginError: It cannot be mapped (LD-050), with the dynamic linker's reason; or it is not
            what was checked (LD-082).
        OSError: A file cannot be opened.
    """
    seen = None if checked is None else {file.path: file for file in checked}
    with _lock, ExitStack() as opened:
        files = [_open(file, seen, opened) for file in (*companions, path)]
        identity = _file_key(files[-1].identity)
        hashes = tuple(file.sha256() for file in files) if sealed else None
        key = hashes or identity
        known = _bound.get(key)
        if known is None or not files[-1].may_be(known.sha256):
            known = _map(files, stand_ins, absent, sealed=sealed)
            _bound[key] = _bound[identity] = known
        if known.library.path == path:
            return known.library
        show_as(known.mapped_as, path)
        return Library(path, known.library.handle)


def is_bound(path: str) -> bool:
    """Tell whether this very file was mapped by `bind` before; a replaced one was not."""
    try:
        return _file_key(FileIdentity.of(os.stat(path))) in _bound
    except OSError:
        return False


def _open(path: str, seen: Mapping[str, SeenFile] | None, opened: ExitStack) -> OpenedFile:
    if seen is not None and path not in seen:  # it appeared after all files were judged
        raise changed_since(path)
    file = OpenedFile(path, seen[path] if seen is not None else None)
    opened.callback(file.close)
    return file


def _file_key(identity: FileIdentity) -> tuple[int, int, int, int]:
    """Return what stays the same when only owner or mode of a file change."""
    return identity.device, identity.inode, identity.size, identity.mtime_ns


def _map(
    files: Sequence[OpenedFile], stand_ins: frozenset[str], absent: Sequence[str], *, sealed: bool
) -> _Bound:
    """Map files, the plugin last; all are named, since an open file has no folder to find others.

    Raises:
        PluginError: See `bind`.
    """
    plugin = files[-1]
    machine = _machine_of(plugin)
    # Mapped by somebody else, a plugin is bound to what they have.
    is_elsewhere = Library.find(plugin.mapped_as) is not None
    targets = {
        _target(file, stand_ins, copy=sealed or (is_elsewhere and file is plugin)): file.path
        for file in files
    }
    for file in files:
        file.keep()
    _map_stub(plugin.path, targets, machine, absent)
    target = list(targets)[-1]
    library = Library.find(target)
    if library is None:
        path = plugin.path
        raise PluginError(f"{path}: mapped, but not found again (rule LD-050)", rule="LD-050")
    for mapped, path in targets.items():
        show_as(mapped, path)
    return _Bound(Library(plugin.path, library.handle), target, plugin.known_sha256)


def _machine_of(file: OpenedFile) -> int:
    with ElfFile(file.mapped_as) as elf:
        machine: int = elf.image.machine_number
        return machine


def _target(file: OpenedFile, stand_ins: frozenset[str], *, copy: bool) -> str:
    """Return what to map in the place of a file: the open file itself, or a copy."""
    with ElfFile(file.mapped_as) as elf:
        is_bound_to_tensorflow = not stand_ins.isdisjoint(elf.dynamic.needed)
    if copy or is_bound_to_tensorflow or (file.must_be_compared and file.may_change):
        return copy_for_host(file, stand_ins)
    if file.must_be_compared:
        file.sha256()
    return file.mapped_as


def _map_stub(path: str, targets: Mapping[str, str], machine: int, absent: Sequence[str]) -> None:
    """Map a stub that needs the host runtime and these targets, and defines what is absent."""
    flags = RTLD_NOW_LOCAL
    needed = [load_runtime().path, *targets]
    if tensorflow_is_loaded():
        flags |= RTLD_DEEPBIND
        needed = [*_preloaded(), *needed]
    soname = f"libmodular_tf_stub.so.{next(_stub_numbers)}"
    functions = dict.fromkeys(absent, absent_function())
    stub = stub_library(soname, needed, machine, functions)
    try:
        Library.open(keep_in_memory(stub, soname), flags)
    except ModularTFError as error:
        reason = _with_paths(error.message, targets)
        raise PluginError(
            f"{path}: the dynamic linker refuses it: {reason} (rule LD-050)",
            plugin=path,
            path=path,
            rule="LD-050",
        ) from error


def _with_paths(message: str, targets: Mapping[str, str]) -> str:
    """Let the dynamic linker speak of files, not of descriptors."""
    for target in sorted(targets, key=len, reverse=True):  # fd/1 begins fd/12
        message = message.replace(target, targets[target])
    return message


def _preloaded() -> list[str]:
    """Return what the user preloaded: its allocator must stay in front of the C library's.

    A name without a path is found again by itself; one that was never found is left out.
    """
    names = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    return [name for name in names if Library.find(name) is not None]
