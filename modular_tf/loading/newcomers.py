"""Whether what came into the process with a plugin may stay.

What the probe found was judged, and is what is mapped. Yet the dynamic linker may find another
library than the probe did, and a constructor or an init function may open any. Their code has run
when they are seen here, but nothing of what the plugin offers is used before that.

Who opened a library cannot be told, so what another thread opens at the same time counts as the
plugin's too, but for what Python imports. Such a plugin may be refused; its next load may succeed.
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
from modular_tf.loading.bound_files import by_init, own_paths, refused
from modular_tf.loading.opened_file import OpenDescriptor
from modular_tf.loading.origin_folder import file_behind
from modular_tf.native.library import Library, mapped_objects, mapped_since
from modular_tf.rules import Violation
from modular_tf.rules import trust as rules
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.loading.bound_files import Newcomers
    from modular_tf.native.library import MappedObject

_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
# What speaks against a library only if it is known to be the plugin's doing. That it is not locked
# is no such rule: any plugin could start a thread, and nothing would be refused any more.
_OF_PLUGINS = frozenset({rules.UNCHANGED, rules.EXECUTABLE_STACK})


class _Suspect(NamedTuple):
    """A newcomer that is not the system's, or that trust refuses.

    Attributes:
        mapped: The library.
        path: Its file.
        verdict: What trust says of the file.
        needed_by: The file that needs it, None where code opened it: the plugin's or another's.
    """

    mapped: MappedObject
    path: str
    verdict: TrustVerdict
    needed_by: str | None

    @property
    def message(self) -> str:
        """What came, why, and what speaks against it."""
        how = "opened by its code, or by another thread"
        if self.needed_by is not None:
            how = f"which {self.needed_by} needs"
        against = "the probe found another, or none"
        if not self.verdict.accepted:
            against = f"it is none of the libraries that were judged: {self.verdict.message}"
        return f"{self.path}, {how}, was mapped with it; {against}"


def judge_newcomers(
    plugin: str, came: Newcomers, checked: Sequence[SeenFile], policy: TrustPolicy
) -> list[Violation]:
    """Judge what came into the process with a plugin, and is none of its companions.

    Args:
        plugin: The plugin's file.
        came: What came.
        checked: The files that were judged, the plugin's first.
        policy: What the user decided about trust.

    Returns:
        What is not refused and should be known (LD-099).

    Raises:
        PluginError: Something came that must not (LD-098).
    """
    known = {seen.path for seen in checked}
    remarks = []
    for suspect in _suspects(came, policy, of=checked[0].sha256 or ""):
        if _must_go(suspect, known, alone=came.alone):
            refused.add(suspect.mapped)
            message = f"{plugin}: {suspect.message}"
            refusal = Violation(rules.MAPPED_AS_JUDGED, message, path=suspect.path)
            raise refusal.error(PluginError, plugin=plugin)
        if suspect.needed_by is not None or not suspect.verdict.accepted:
            remarks.append(Violation(rules.MAPPED_UNEXPECTED, suspect.message))
    return remarks


def judge_opened_by_init(
    plugin: str,
    came: Newcomers,
    before: Collection[MappedObject],
    checked: Sequence[SeenFile],
    policy: TrustPolicy,
) -> list[Violation]:
    """Judge what came into the process while init functions of a plugin ran, now or before.

    Args:
        plugin: The plugin's file.
        came: What came with the plugin; `alone` tells whether there was no other thread right
            before its init functions ran.
        before: What was mapped right before.
        checked: The files that were judged, the plugin's first.
        policy: What the user decided about trust.

    Returns:
        What is not refused and should be known (LD-099).

    Raises:
        PluginError: Something came that must not (LD-098).
    """
    since = [new for new in mapped_since(came.stub) if new.path not in own_paths]
    times = by_init.setdefault(came.stub, [])
    if objects := tuple(new for new in since if new not in before):
        times.append(came._replace(objects=objects))
    return [it for time in times for it in judge_newcomers(plugin, time, checked, policy)]


def opened_since(came: Newcomers) -> tuple[SeenFile, ...] | None:
    """Return what code has opened since a plugin was mapped, beside what the probe found.

    Args:
        came: What came with the plugin. What it needs of the system is left out, and what root
            keeps there: it changes with the system, and would be read again at each start where
            all files have one date.

    Returns:
        None where that is not known: something is not what lies by its path now.
    """
    since = [new for new in mapped_since(came.stub) if new.path not in own_paths]
    if not since:
        return ()
    imported = _imported(since)
    needed = _needed(came.wanted, since)
    opened = []
    for mapped in since:
        path = file_behind(mapped.path)
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
    """Return the modules that Python imported, and what they need."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    modules = {mapped: mapped.path for mapped in objects if mapped.path in files}
    return modules | _needed({path: _names_of(path)[1] for path in modules.values()}, objects)


def _must_go(suspect: _Suspect, known: Collection[str], *, alone: bool) -> bool:
    """Tell whether a library is refused, also where another thread may have opened it."""
    if suspect.verdict.accepted:
        return False
    is_plugins = suspect.needed_by is not None or suspect.path in known or alone
    return is_plugins or suspect.verdict.rule not in _OF_PLUGINS


def _suspects(came: Newcomers, policy: TrustPolicy, *, of: str) -> Iterator[_Suspect]:
    """Yield the suspects among what came, and among what was refused before and is needed now."""
    judge = TrustJudge(policy)
    objects = sorted(refused.union(came.objects).intersection(mapped_objects()))
    needed_by: Mapping[MappedObject, str] | None = None
    imported: Collection[MappedObject] = ()
    for mapped in objects:
        path = file_behind(mapped.path)
        verdict = judge.judge_mapped(path, of=of)
        if verdict.accepted and is_of_system(path):
            continue
        if verdict.accepted and not _is_mapped_from(path, mapped):
            message = f"{path} is not the file that was mapped"
            verdict = TrustVerdict.of_problem(Violation(rules.UNCHANGED, message, path=path))
        if needed_by is None:
            needed_by, imported = _needed(came.wanted, objects), _imported(objects)
        if mapped in imported and mapped not in needed_by:
            continue
        if mapped in came.objects or mapped in needed_by:
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
    """Return by which file each library is needed; those that code opened are left out.

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
    """Return the names that a library answers to, and those that it needs."""
    try:
        with ElfFile(path) as elf:
            own = {os.path.basename(name) for name in (path, elf.dynamic.soname) if name}
            return own, tuple(linked.name for linked in elf.dynamic.linked)
    except ElfError:
        return {os.path.basename(path)}, ()
