"""Mapping a plugin so that it, and nothing else in the process, uses the host runtime."""

from __future__ import annotations

import itertools
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.elf.stub_library import stub_library
from modular_tf.discovery.linking.host_exports import REPLACED_SONAMES
from modular_tf.discovery.linking.system_libraries import expand, is_relative
from modular_tf.discovery.privileges import linker_variable
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.loading.bound_files import Bound, bound_files, file_key
from modular_tf.loading.opened_libraries import only_opened_by_name, opened_by_name
from modular_tf.loading.origin_folder import origin_levels
from modular_tf.loading.private_copy import (
    DESCRIPTORS,
    OpenedFile,
    changed_since,
    copy_for_host,
    in_memory,
)
from modular_tf.loading.published import stores_of
from modular_tf.native.library import (
    RTLD_DEEPBIND,
    RTLD_NOW_LOCAL,
    Library,
    mapped_since,
    show_as,
)
from modular_tf.native.plugin_names import note_code
from modular_tf.native.runtime_library import (
    absent_function,
    guarded_stream_function,
    load_runtime,
    tensorflow_is_loaded,
)
from modular_tf.native.sanitizers import sanitizer_of_process
from modular_tf.rules import Violation
from modular_tf.rules.loading import MAPPABLE, PROC_MOUNTED
from modular_tf.rules.shortage import SHORTAGE, ShortageError, names_shortage, raise_shortage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.loading.opened_libraries import OpenedByName
    from modular_tf.loading.private_copy import OpenDescriptor

_STUB = "libmodular_tf_stub.so"
_stub_numbers = itertools.count(1)
_lock = ForkLock()


class LinkNames(NamedTuple):
    """The names in a library that the dynamic linker reads, as they are written there."""

    soname: str | None
    needed: tuple[str, ...]
    linked: tuple[str, ...]  # the needed ones, and its filters (DT_AUXILIARY, DT_FILTER)
    search_path: tuple[str, ...]
    levels: int | None  # as `origin_levels`

    @classmethod
    def of(cls, path: str, file: str) -> LinkNames:
        """Return the names in the library at a path, which is open from a file."""
        with ElfFile(path) as elf:
            found = elf.dynamic
            levels = origin_levels(elf, file)
            linked = tuple(one.name for one in found.linked)
            return cls(found.soname, found.needed, linked, found.search_path, levels)

    @property
    def must_differ(self) -> bool:
        """Whether names have to be changed in a copy (`private_copy`)."""
        replaced = not REPLACED_SONAMES.isdisjoint(self.needed)
        return replaced or any(map(is_relative, self.search_path))


class Target(NamedTuple):
    """A library to map: its file, and the path by which it, or a copy of it, is mapped."""

    file: OpenedFile
    mapped_as: str
    is_copy: bool
    names: LinkNames


def map_file(
    path: str,
    companions: Sequence[str],
    absent: Sequence[str] = (),
    *,
    checked: Sequence[SeenFile] | None = None,
    sealed: bool = False,
) -> Library:
    """Return the mapped library of a plugin that the probe found loadable; constructors run.

    As `bind`, with arguments from `LoadFacts` and `TrustVerdict`. A file that cannot be opened is a
    `PluginError` (LD-050), and what this process has too little of a `ShortageError`.
    """
    try:
        return bind(path, companions, absent, checked=checked, sealed=sealed)
    except OSError as error:  # gone or changed since the probe, ...
        raise_shortage(error)
        message = f"{path}: cannot be mapped: {error}"
        raise Violation(MAPPABLE, message, path=path).error(PluginError) from error


def bind(
    path: str,
    companions: Sequence[str],
    absent: Sequence[str] = (),
    *,
    checked: Sequence[SeenFile] | None = None,
    sealed: bool = False,
) -> Library:
    """Return a plugin's library, mapped and bound to the host runtime, once per file.

    Each file is opened once, compared with the file that was checked, and mapped through that
    descriptor. A library that needs TensorFlow's by name is mapped from a private copy. So is one
    that only its hash can identify as the checked file. With a real TensorFlow in the process the
    plugin's own scope comes first (`RTLD_DEEPBIND`), since TensorFlow's symbols are global; never
    otherwise, because that would also bypass a preloaded allocator.

    `companions` are in the order of their needs; those that nobody needs are mapped when the
    plugin's code opens them by name. `absent` are functions that are not defined anywhere: each is
    replaced by one that returns 0 and reports its call by name (KN-100). `checked` has the files as
    they were when they were checked, None if they were not. With `sealed`, sealed copies are
    mapped, one for all files with the same bytes: a mapped file shows what is written to it later.
    """
    if not os.path.exists(DESCRIPTORS):
        message = f"{path}: cannot be mapped: {DESCRIPTORS} does not exist"
        raise Violation(PROC_MOUNTED, message, path=path).error(PluginError, plugin=path)
    seen = None if checked is None else {file.path: file for file in checked}
    with _lock, ExitStack() as opened, ExitStack() as copies:
        files = []
        for name in (*companions, path):
            if seen is not None and name not in seen:  # it appeared after all files were judged
                raise changed_since(name)
            files.append(OpenedFile(name, seen[name] if seen is not None else None))
            opened.callback(files[-1].close)
        identity = file_key(files[-1].identity)
        hashes = tuple(file.sha256() for file in files) if sealed else None
        key = hashes or identity
        known = bound_files.files.get(key)
        if known is None or not files[-1].may_be(known.sha256):
            read = [(file, LinkNames.of(file.mapped_as, file.path)) for file in files]
            others = only_opened_by_name(read)
            needed = [found for found in read if found not in others]
            by_name = opened_by_name(others, copies)
            targets = _targets(needed, by_name, opened, sealed=sealed)
            known = _map(targets, absent, by_name)
            bound_files.files[key] = bound_files.files[identity] = known
            copies.pop_all()
        if known.library.path in bound_files.guarded:
            bound_files.guarded.add(path)
        if known.library.path == path:
            return known.library
        show_as(known.mapped_as, path)
        return Library(path, known.library.handle)


def _map(targets: Sequence[Target], absent: Sequence[str], by_name: OpenedByName) -> Bound:
    """Map all files by one stub, and record the paths that the dynamic linker knows them by."""
    plugin, mapped_as = targets[-1].file, targets[-1].mapped_as
    for target in targets:  # before its constructors run, which may log or crash
        show_as(target.mapped_as, target.file.path)
        bound_files.own_paths.add(target.mapped_as)
    load_runtime()
    stub = _map_stub(targets, absent, by_name)
    since = mapped_since(stub)
    note_code(plugin.path, [new.address for new in since if new.path in bound_files.own_paths])
    for new in since if by_name.shown else ():
        show_as(new.path, bound_files.mirrors.shown_file(new.path) or new.path)
    wanted = tuple(name for target in targets for name in target.names.linked)
    library = Library.find(mapped_as)
    if library is None:
        message = f"{plugin.path}: mapped, but not found again"
        raise Violation(MAPPABLE, message).error(PluginError)
    library = Library(plugin.path, library.handle)
    return Bound(library, mapped_as, plugin.known_sha256, stub, wanted, by_name)


def _targets(
    files: Sequence[tuple[OpenedFile, LinkNames]],
    by_name: OpenedByName,
    opened: ExitStack,
    *,
    sealed: bool,
) -> list[Target]:
    """Return what to map for each file: the file itself or a private copy; the plugin is last."""
    # A plugin that other code has mapped is not bound to the host runtime.
    is_elsewhere = Library.find(files[-1][0].mapped_as) is not None
    levels: dict[str, int] = {}
    for file, names in files:
        if names.levels is not None:
            folder = os.path.dirname(file.path)
            levels[folder] = max(names.levels, levels.get(folder, 0))
    targets = []
    for file, names in files:
        source: OpenDescriptor = file
        must_differ = names.must_differ or (is_elsewhere and file is files[-1][0])
        if sealed or must_differ or file.must_be_copied:
            source = copy_for_host(file)
            opened.callback(source.close)
        if sanitizer_of_process() is not None:
            source.keep()  # it reads the file again by that path, to name functions in its report
        mapped_as = source.mapped_as
        if (searched := levels.get(os.path.dirname(file.path))) is not None:  # by a library there
            mapped_as = by_name.mirrored_path(file.path, source, searched) or mapped_as
        targets.append(Target(file, mapped_as, source is not file, names))
    return targets


def _map_stub(targets: Sequence[Target], absent: Sequence[str], by_name: OpenedByName) -> str:
    """Map a stub that needs the host runtime and these targets, and defines absent functions.

    Returns the path of the stub. Companions are named in it, since an open file has no folder to
    find them from, and aliases are mapped for all names that others need them by.
    """
    plugin = targets[-1].file
    flags = RTLD_NOW_LOCAL
    # As if the plugin were opened by itself: it comes before what it needs in the order in which
    # symbols are looked up, and after it in the order in which constructors run.
    needed = [load_runtime().path, *(target.mapped_as for target in reversed(targets))]
    if tensorflow_is_loaded():
        flags |= RTLD_DEEPBIND
        # Their allocator must stay in front of the C library's. A name without a path is found
        # again by itself; one that was never found is left out.
        preloaded = linker_variable("LD_PRELOAD", os.environ).replace(":", " ").split()
        needed = [*(name for name in preloaded if Library.find(name) is not None), *needed]
    with ElfFile(plugin.mapped_as) as elf:
        machine = elf.image.machine_number
    with ExitStack() as made:

        def make(soname: str, needed: Sequence[str], functions: Mapping[str, int]) -> str:
            library = in_memory(stub_library(soname, needed, machine, functions), _STUB)
            made.callback(library.close)
            bound_files.own_paths.add(library.mapped_as)
            return library.mapped_as

        needed += [make(name, [path], {}) for name, path in _unresolved_names(targets).items()]
        soname = f"{_STUB}.{next(_stub_numbers)}"
        functions = {name: absent_function(name, plugin.path) for name in absent}
        # A plugin that relies on how one store answers may end the process where a store answers
        # differently; the replacement of a C++ function that it calls prevents that
        # (`stream_guard.cc`).
        defects = {it for store in stores_of(plugin.path) for it in store.guarded_functions}
        first = bool(flags & RTLD_DEEPBIND)
        guards = {it: guarded_stream_function(it, own_scope_first=first) for it in defects}
        functions |= {name: function for name, function in guards.items() if function is not None}
        if guards and None not in guards.values():
            bound_files.guarded.add(plugin.path)
        if by_name.shown:  # which are no part of what is mapped with the stub
            needed.append(make(by_name.host_name, [load_runtime().path], functions))
        stub = make(soname, needed, functions)
        for target in targets:
            if not target.is_copy:
                target.file.require_unwritten()
        try:
            Library.open(stub, flags)
        except ModularTFError as error:
            reason = error.message
            for target in targets:  # the dynamic linker should speak of files
                reason = reason.replace(target.mapped_as, target.file.path)
            path = plugin.path
            if names_shortage(reason):
                message = f"{path}: cannot be mapped now: {reason}"
                raise ShortageError(message, path=path, rule=SHORTAGE) from error
            message = f"{path}: the dynamic linker refuses it: {reason}"
            raise Violation(MAPPABLE, message, path=path).error(PluginError, plugin=path) from error
    return stub


def _unresolved_names(targets: Sequence[Target]) -> dict[str, str]:
    """Return the needed names that the dynamic linker would not resolve to the mapped libraries.

    The dynamic linker knows a library by its SONAME and by the paths that it was opened by, and one
    that is mapped by descriptor was opened by a path that no other library uses. So a library that
    is needed by its file's name, or by a path, would be searched for and mapped a second time, from
    whatever file is there by then, or from the original file of a changed copy. A library without
    code that has such a name and needs the right library prevents that. Each target but the last
    was found by the name of its file, by which another library needs it. Each name is returned as
    the dynamic linker compares it, with the path by which its library is mapped.
    """
    by_file_name: dict[str, list[Target]] = {}
    for target in reversed(targets):
        by_file_name.setdefault(os.path.basename(target.file.path), []).append(target)
    found = {
        os.path.basename(target.file.path): target.mapped_as
        for target in targets[:-1]  # of two with one name, the one that was found first
        if target.names.soname != os.path.basename(target.file.path)
    }
    for target in targets:
        for name in target.names.linked:
            named = expand(name, os.path.dirname(target.file.path))
            ends = tuple(f"/{os.path.normpath(path)}" for path in named)
            for other in by_file_name.get(os.path.basename(name), ()):
                resolved = f"/{os.path.normpath(other.file.path)}".endswith(ends)
                if other.names.soname != name and resolved:
                    for compared in expand(name, target.mapped_as.rpartition("/")[0]):
                        found.setdefault(compared, other.mapped_as)
    return found
