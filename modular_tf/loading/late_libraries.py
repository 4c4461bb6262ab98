"""Libraries that came into the process with a plugin, beside those that were judged before it.

The dynamic linker may find others than the probe, and a constructor or an init function may open
any library. A trial lists them, and they are judged before the plugin runs in an application. Where
plugins are frozen, the application also compares with the lock file what came with the plugin here.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import closing, suppress
from time import time_ns
from typing import TYPE_CHECKING

from modular_tf.concurrency.owned_file import open_owned
from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.file_identity import FileIdentity, SeenFile, see
from modular_tf.discovery.linking.system_libraries import is_of_system
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.errors import ElfError
from modular_tf.loading.bound_files import bound_files
from modular_tf.loading.opened_file import OpenDescriptor
from modular_tf.native.library import Library, mapped_objects
from modular_tf.rules import Violation
from modular_tf.rules import trust as rules
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.native.library import MappedObject

_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def opened_since(library: Library) -> tuple[list[SeenFile], bool]:
    """Return the files that code has opened since a plugin was mapped, beside its companions.

    System libraries are left out if the plugin needs them or root owns them: they change with the
    system, and would be read again at each start where all files have the same date.

    Returned with the files is whether they are complete: a library may not be the file that is at
    its path now.
    """
    bound = bound_files.of(library)
    since = bound_files.arrived_since(bound.stub)
    if not since:  # as mostly
        return [], True
    imported, needed = _imported(since), _needed(bound.wanted, since)
    opened, is_complete = [], True
    for mapped in since:
        path = bound_files.mirrors.unmirrored_path(mapped.path)
        if mapped in imported or (is_of_system(path) and mapped in needed):
            continue
        with suppress(OSError):
            if is_of_system(path) and os.stat(path).st_uid == 0:
                continue
        seen = see(path, read=False) or SeenFile(path, FileIdentity.at(path), None, time_ns())
        is_complete = is_complete and os.path.isabs(path) and _is_mapped_from(path, mapped)
        opened.append(seen)
    return opened, is_complete


def unlocked_library(
    library: Library,
    checked: Sequence[SeenFile],
    policy: TrustPolicy,
    before_init: Collection[MappedObject] | None = None,
) -> Violation | None:
    """Return what refuses a frozen plugin for a library that was mapped with it (LD-098), or None.

    Its code has run already, but nothing that it offers was used. What another thread opens
    meanwhile counts as the plugin's, unless Python imports it.

    `library` comes from `binding`; `checked` are the files that were checked before loading, the
    plugin's first; `before_init` is what was mapped right before its init functions ran, None where
    they did not run yet.
    """
    bound = bound_files.of(library)
    if before_init is None:
        late = bound_files.late.setdefault(bound.stub, set(bound_files.arrived_since(bound.stub)))
    else:
        late = bound_files.late[bound.stub]
        late |= set(bound_files.arrived_since(bound.stub)).difference(before_init)
    judge, of = TrustJudge(policy), checked[0].sha256 or ""
    for mapped in sorted(late.difference(_imported(late)).intersection(mapped_objects())):
        path = bound_files.mirrors.unmirrored_path(mapped.path)
        problem = judge.judge_mapped(path, of=of).refused
        if problem is None and not is_of_system(path) and not _is_mapped_from(path, mapped):
            problem = Violation(rules.UNCHANGED, f"{path} is not the file that was mapped")
        if problem is not None:
            message = (
                f"{library.path}: {path}, opened by its code, or by another thread, was mapped with"
                f" it; it is none of the libraries that were judged: {problem.message}"
            )
            return Violation(rules.MAPPED_AS_JUDGED, message, path=path)
    return None


def _is_mapped_from(path: str, mapped: MappedObject) -> bool:
    try:
        with closing(OpenDescriptor(open_owned(path, _OPEN_FLAGS))) as file:
            return Library.address_of(file.mapped_as) == mapped.address
    except OSError as error:
        raise_shortage(error)
        return False


def _imported(objects: Collection[MappedObject]) -> Collection[MappedObject]:
    """Return the modules that Python imported, and the libraries that they need."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    modules = {mapped: mapped.path for mapped in objects if mapped.path in files}
    return modules | _needed({path: _names_of(path)[1] for path in modules.values()}, objects)


def _needed(
    wanted: Mapping[str, Collection[str]], objects: Collection[MappedObject]
) -> dict[MappedObject, str]:
    """Return which file needs each library, by the names that files want; others code opened."""
    read = {mapped: _names_of(mapped.path) for mapped in objects}
    found: dict[MappedObject, str] = {}
    waiting = deque(wanted.items())
    while waiting:
        file, names = waiting.popleft()
        for mapped, (own_names, needs) in read.items():
            if mapped not in found and not own_names.isdisjoint(map(os.path.basename, names)):
                found[mapped] = file
                waiting.append((mapped.path, needs))
    return found


def _names_of(path: str) -> tuple[set[str], tuple[str, ...]]:
    """Return the names that a library is known by, and the names that it needs."""
    try:
        with ElfFile(path) as elf:
            own = {os.path.basename(name) for name in (path, elf.dynamic.soname) if name}
            return own, tuple(linked.name for linked in elf.dynamic.linked)
    except ElfError:
        return {os.path.basename(path)}, ()
