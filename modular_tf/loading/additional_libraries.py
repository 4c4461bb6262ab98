"""Trust checks of libraries that were mapped together with a plugin, beside its companions.

The libraries that the probe found were checked before. But the dynamic linker may find others than
the probe, and a constructor or an init function may open any library. Their code has already run
when they are checked here, but nothing that the plugin offers has been used yet.

It is unknown which thread opened a library, so a library that another thread opens at the same time
is attributed to the plugin, unless Python imported it. A plugin that is rejected for that reason
may load at the next attempt.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.concurrency.owned_file import open_owned
from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.file_identity import see
from modular_tf.discovery.linking.system_libraries import is_of_system
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.discovery.trust.verdict import TrustVerdict
from modular_tf.errors import ElfError, PluginError
from modular_tf.loading.bound_files import arrived_since, by_init, rejected_libraries
from modular_tf.loading.opened_file import OpenDescriptor
from modular_tf.loading.origin_folder import unmirrored_path
from modular_tf.native.library import Library, mapped_objects
from modular_tf.rules import Violation
from modular_tf.rules import trust as rules
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.loading.bound_files import AdditionalLibraries
    from modular_tf.native.library import MappedObject

_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
# Rules that count only if the plugin is known to have opened the library. LD-080 (not locked) is
# none of them: a plugin could start a thread, and no library would be rejected any more.
_OF_PLUGINS = frozenset({rules.UNCHANGED, rules.EXECUTABLE_STACK})


class _Suspect(NamedTuple):
    """An additional library that is not the system's, or that is not trusted.

    Attributes:
        mapped: The library.
        path: Its file.
        verdict: Whether the file is trusted.
        needed_by: The file that needs it, None if code opened it: the plugin's or another's.
    """

    mapped: MappedObject
    path: str
    verdict: TrustVerdict
    needed_by: str | None

    @property
    def message(self) -> str:
        """Which library was mapped, why, and what is wrong with it."""
        how = "opened by its code, or by another thread"
        if self.needed_by is not None:
            how = f"which {self.needed_by} needs"
        against = "the probe found another, or none"
        if not self.verdict.accepted:
            against = f"it is none of the libraries that were judged: {self.verdict.message}"
        return f"{self.path}, {how}, was mapped with it; {against}"


def judge_additional_libraries(
    plugin: str, additional: AdditionalLibraries, checked: Sequence[SeenFile], policy: TrustPolicy
) -> list[Violation]:
    """Return warnings about the libraries that were mapped with a plugin and are no companions.

    Args:
        plugin: The plugin's file.
        additional: These libraries.
        checked: The files that were checked before loading, the plugin's first.
        policy: The user's settings of trust.

    Returns:
        Warnings about libraries that are not rejected (LD-099).

    Raises:
        PluginError: One of the libraries is not trusted (LD-098).
    """
    known = {seen.path for seen in checked}
    remarks = []
    for suspect in _suspects(additional, policy, of=checked[0].sha256 or ""):
        if _is_rejected(suspect, known, single_threaded=additional.single_threaded):
            rejected_libraries.add(suspect.mapped)
            message = f"{plugin}: {suspect.message}"
            refusal = Violation(rules.MAPPED_AS_JUDGED, message, path=suspect.path)
            raise refusal.error(PluginError, plugin=plugin)
        if suspect.needed_by is not None or not suspect.verdict.accepted:
            remarks.append(Violation(rules.MAPPED_UNEXPECTED, suspect.message))
    return remarks


def judge_opened_by_init(
    plugin: str,
    additional: AdditionalLibraries,
    before: Collection[MappedObject],
    checked: Sequence[SeenFile],
    policy: TrustPolicy,
) -> list[Violation]:
    """Return warnings about the libraries that were mapped while a plugin's init functions ran.

    Args:
        plugin: The plugin's file.
        additional: What was mapped with the plugin; `single_threaded` is the state right before its
            init functions ran.
        before: What was mapped right before.
        checked: The files that were checked before loading, the plugin's first.
        policy: The user's settings of trust.

    Returns:
        Warnings about libraries that are not rejected (LD-099), of this run of the init functions
        and of earlier ones.

    Raises:
        PluginError: One of the libraries is not trusted (LD-098).
    """
    since = arrived_since(additional.stub)
    times = by_init.setdefault(additional.stub, [])
    if objects := tuple(new for new in since if new not in before):
        times.append(additional._replace(objects=objects))
    return [
        it for time in times for it in judge_additional_libraries(plugin, time, checked, policy)
    ]


def opened_since(additional: AdditionalLibraries) -> tuple[SeenFile, ...] | None:
    """Return the files that code has opened since a plugin was mapped, beside its companions.

    System libraries are left out if the plugin needs them or root owns them: they change with the
    system, and would be read again at each start where all files have the same date.

    Args:
        additional: What was mapped with the plugin.

    Returns:
        None if a mapped library is not the file that is at its path now.
    """
    since = arrived_since(additional.stub)
    if not since:
        return ()
    imported = _imported(since)
    needed = _needed(additional.wanted, since)
    opened = []
    for mapped in since:
        path = unmirrored_path(mapped.path)
        if mapped in imported or (mapped in needed and is_of_system(path)):
            continue
        if is_of_system(path) and _is_of_root(path):
            continue
        seen = see(path, read=False)
        if seen is None or not os.path.isabs(path) or not _is_mapped_from(path, mapped):
            return None
        opened.append(seen)
    return tuple(opened)


def _imported(objects: Collection[MappedObject]) -> Collection[MappedObject]:
    """Return the modules that Python imported, and the libraries that they need."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    modules = {mapped: mapped.path for mapped in objects if mapped.path in files}
    return modules | _needed({path: _names_of(path)[1] for path in modules.values()}, objects)


def _is_rejected(suspect: _Suspect, known: Collection[str], *, single_threaded: bool) -> bool:
    """Return whether a library is rejected, also if another thread may have opened it."""
    if suspect.verdict.accepted:
        return False
    is_plugins = suspect.needed_by is not None or suspect.path in known or single_threaded
    return is_plugins or suspect.verdict.rule not in _OF_PLUGINS


def _suspects(
    additional: AdditionalLibraries, policy: TrustPolicy, *, of: str
) -> Iterator[_Suspect]:
    """Yield suspects: additional libraries, and those rejected before that are needed now."""
    judge = TrustJudge(policy)
    objects = sorted(rejected_libraries.union(additional.objects).intersection(mapped_objects()))
    needed_by: Mapping[MappedObject, str] | None = None
    imported: Collection[MappedObject] = ()
    for mapped in objects:
        path = unmirrored_path(mapped.path)
        verdict = judge.judge_mapped(path, of=of)
        if verdict.accepted and is_of_system(path):
            continue
        if verdict.accepted and not _is_mapped_from(path, mapped):
            message = f"{path} is not the file that was mapped"
            verdict = TrustVerdict.of_problem(Violation(rules.UNCHANGED, message, path=path))
        if needed_by is None:
            needed_by, imported = _needed(additional.wanted, objects), _imported(objects)
        if mapped in imported and mapped not in needed_by:
            continue
        if mapped in additional.objects or mapped in needed_by:
            yield _Suspect(mapped, path, verdict, needed_by.get(mapped))


def _is_of_root(path: str) -> bool:
    try:
        return os.stat(path).st_uid == 0
    except OSError as error:
        raise_shortage(error)
        return False


def _is_mapped_from(path: str, mapped: MappedObject) -> bool:
    try:
        with closing(OpenDescriptor(open_owned(path, _OPEN_FLAGS))) as file:
            return Library.address_of(file.mapped_as) == mapped.address
    except OSError as error:
        raise_shortage(error)
        return False


def _needed(
    wanted: Mapping[str, Collection[str]], objects: Collection[MappedObject]
) -> dict[MappedObject, str]:
    """Return which file needs each library; libraries that code opened are left out.

    Args:
        wanted: The names that plugin and companions need, by their files.
        objects: The libraries.
    """
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
