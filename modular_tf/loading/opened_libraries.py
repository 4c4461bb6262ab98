"""Libraries that a plugin's code opens by itself, beside those that are mapped with it.

Those that it may open by name, and that need a library of TensorFlow, are led to the host runtime:
mirrors of folders show a copy instead of the file, which needs a library of the host by another
name. Any other library that needs one of TensorFlow's cannot be opened, such as one that needs more
than TensorFlow's C API; a plugin that goes on without it offers less than it could, and a trial
warns.

A constructor or an init function may open any library. A trial lists what was opened, and that is
judged before the plugin runs in an application. Where plugins are frozen, the application also
compares with the lock file what came with the plugin here.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections import deque
from contextlib import closing, suppress
from time import time_ns
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from modular_tf.concurrency.owned_file import open_owned
from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.file_identity import OPEN_FLAGS, FileIdentity, SeenFile, see
from modular_tf.discovery.linking.host_exports import HOST_RUNTIME, REPLACED_SONAMES
from modular_tf.discovery.linking.link_scope import file_mentions, neighbours_that_need
from modular_tf.discovery.linking.system_libraries import is_of_system
from modular_tf.errors import ElfError
from modular_tf.loading.bound_files import bound_files
from modular_tf.loading.origin_folder import ShownLibrary
from modular_tf.loading.private_copy import OpenDescriptor, copy_for_host
from modular_tf.native.library import Library, mapped_objects
from modular_tf.native.sanitizers import sanitizer_of_process
from modular_tf.rules import Violation
from modular_tf.rules import trust as rules
from modular_tf.rules.first_contact import NEIGHBOURS_LINKABLE
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import ExitStack

    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.loading.binding import LinkNames
    from modular_tf.loading.private_copy import OpenedFile
    from modular_tf.native.library import MappedObject

_OF_TENSORFLOW = REPLACED_SONAMES - {HOST_RUNTIME}
# Short, so that it fits in the place of every name of a library of TensorFlow.
_HOST_NAME = "libmtf.so"
_numbers = itertools.count(1)
_Key = TypeVar("_Key")


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
        for shown, searched in self.levels.items():
            # how many parents of the folder are needed for a file that searches so many of its own
            way = os.path.relpath(os.path.realpath(os.path.dirname(shown)), folder).split("/")
            ups = way.count("..")
            levels = max(levels, ups - (len(way) - ups - way.count(".")) + searched)
        return bound_files.mirrors.path_in(
            file, source, levels, self.shown, shown_for=self.host_name
        )

    def close_unopened(self) -> None:
        """Close the copies that nobody has opened; a second call does nothing."""
        for library in self.shown:
            is_unopened = library.source.is_open and Library.find(library.source.mapped_as) is None
            if is_unopened and bound_files.mirrors.show_no_longer(library):
                library.source.close()


def opened_by_name(
    files: Sequence[tuple[OpenedFile, LinkNames]], copies: ExitStack
) -> OpenedByName:
    """Return copies of libraries, led to one that does not exist yet; `copies` closes them."""
    host_name = f"{_HOST_NAME}.{next(_numbers)}" if files else ""
    shown = []
    for file, _ in files:
        source = copy_for_host(file, host_name)
        copies.callback(source.close)
        if sanitizer_of_process() is not None:
            source.keep()  # see `binding`
        shown.append(ShownLibrary(file.path, source))
    levels = {file.path: names.levels or 0 for file, names in files}
    return OpenedByName(host_name, tuple(shown), levels)


def only_opened_by_name(
    files: Sequence[tuple[OpenedFile, LinkNames]],
) -> list[tuple[OpenedFile, LinkNames]]:
    """Return the libraries that are not mapped at once, as only code opens them, by their names.

    Those need one of TensorFlow's, no other library here needs them, and their file name is in the
    bytes of one. One that is not named at all is mapped at once: a library of the system may need
    it. The plugin is the last of the files.
    """
    waiting = [it for it in files[:-1] if not REPLACED_SONAMES.isdisjoint(it[1].needed)]
    mapped = [it for it in files if it not in waiting]
    known = {
        at: ({os.path.basename(file.path), names.soname}, names.linked)
        for at, (file, names) in enumerate(waiting)
    }
    reached = _reached([name for _, names in mapped for name in names.linked], known)
    mapped += [waiting[at] for at in reached]
    return [
        found
        for at, found in enumerate(waiting)
        if at not in reached
        and any(file_mentions(it.mapped_as, os.path.basename(found[0].path)) for it, _ in mapped)
    ]


def _reached(
    wanted: Iterable[str], known: Mapping[_Key, tuple[set[str | None], Iterable[str]]]
) -> set[_Key]:
    """Return the libraries that names lead to, directly or by the names that those need.

    `known` has the names by which each is needed, and those that it needs.
    """
    reached: set[_Key] = set()
    waiting = deque(wanted)
    while waiting:
        name = os.path.basename(waiting.popleft())
        for key, (own, needs) in known.items():
            if key not in reached and name in own:
                reached.add(key)
                waiting.extend(needs)
    return reached


def unlinkable_neighbours(path: str, companions: Sequence[str]) -> Iterator[Violation]:
    """Yield a warning for each library beside a plugin that it names and that needs TensorFlow."""
    files = [os.path.realpath(file) for file in (path, *companions)]
    mapped = {*files, *(os.path.realpath(found.path) for found in mapped_objects())}
    folders = dict.fromkeys(map(os.path.dirname, files))
    for elf in neighbours_that_need(_OF_TENSORFLOW, folders):
        name, missing = os.path.basename(elf.path), _OF_TENSORFLOW.intersection(elf.dynamic.needed)
        if elf.path not in mapped and any(file_mentions(file, name) for file in files):
            yield Violation(
                NEIGHBOURS_LINKABLE,
                f"{elf.path}, which the plugin may open by itself, needs "
                f"{' and '.join(sorted(missing))} of TensorFlow, so it cannot be opened here",
            )


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
    imported = _imported(since)
    needed = _reached(bound.wanted, _names_of(since))
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
    from modular_tf.discovery.trust.judge import TrustJudge  # noqa: PLC0415  (few are frozen)

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
        with closing(OpenDescriptor(open_owned(path, OPEN_FLAGS))) as file:
            return Library.address_of(file.mapped_as) == mapped.address
    except OSError as error:
        raise_shortage(error)
        return False


def _imported(objects: Collection[MappedObject]) -> set[MappedObject]:
    """Return the modules that Python imported, and the libraries that they need."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    names = _names_of(objects)
    modules = {mapped for mapped in objects if mapped.path in files}
    return modules | _reached([name for mapped in modules for name in names[mapped][1]], names)


def _names_of(
    objects: Collection[MappedObject],
) -> dict[MappedObject, tuple[set[str | None], tuple[str, ...]]]:
    """Return the names that each library is known by, and the names that it needs."""
    found: dict[MappedObject, tuple[set[str | None], tuple[str, ...]]] = {}
    for mapped in objects:
        found[mapped] = {os.path.basename(mapped.path)}, ()
        with suppress(ElfError), ElfFile(mapped.path) as elf:
            own = {os.path.basename(name) for name in (mapped.path, elf.dynamic.soname) if name}
            found[mapped] = {*own}, tuple(linked.name for linked in elf.dynamic.linked)
    return found
