"""Following what happened to plugin files: new ones, others in their place, and none any more.

A replaced library becomes a new generation of its plugin. That is opened beside the old one, takes
over what it serves in one step, and leaves it to those who hold something of it; when nobody does,
the old one is closed. It stays mapped, as every library.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, Protocol

from modular_tf.discovery.candidate import Source
from modular_tf.events import EventLog
from modular_tf.plugin_change import PluginChange
from modular_tf.report import Reason, State
from modular_tf.watching.change import ChangeKind
from modular_tf.watching.snapshot import file_identity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.search import Discovery
    from modular_tf.errors import ModularTFError
    from modular_tf.known_plugins import KnownPlugins
    from modular_tf.plugin_entry import PluginEntry
    from modular_tf.plugin_generation import Generation
    from modular_tf.retired_generation import RetiredGeneration
    from modular_tf.watching.snapshot import Snapshot

_log = EventLog("plugin")
_NOT_WATCHED = frozenset((Source.BUNDLED, Source.DISTRIBUTION))


class LoadEntries(Protocol):
    """Runs the way of plugins."""

    def __call__(self, entries: Sequence[PluginEntry], *, eager: bool | None = None) -> None:
        """Do it."""


class _Replaced(NamedTuple):
    """A plugin, and what its path leads to now."""

    entry: PluginEntry
    candidate: Candidate


class Renewal:
    """Brings the plugins of one service up to date. Used under the service's lock.

    Args:
        known: The plugins.
        load: Runs the way of entries, up to their registration; `eager` as `PluginEntry.register`
            has it, None for what the configuration says.
    """

    def __init__(self, known: KnownPlugins, load: LoadEntries) -> None:
        self._known = known
        self._load = load
        self._draining: list[RetiredGeneration] = []

    def apply(self, found: Discovery, paths: Collection[str] | None) -> list[PluginChange]:
        """Follow all changes, or those of some paths.

        Args:
            found: What lies in the places of plugins now.
            paths: The files to look at; None for all. Others are left as they are.
        """
        self.finish_drained()
        self._known.found = found
        scope = _Scope(paths)
        changes = [self._remove(entry) for entry in self._gone(found, scope)]
        if changes:
            self._revive_shadowed()
        replaced, new = self._compare(found, scope)
        changes += [change for pair in replaced if (change := self._replace(*pair)) is not None]
        return changes + self._add(new)

    def places(self) -> list[str]:
        """Return the files and directories that plugins come from, but for installed packages.

        Of those only the libraries that are known; and nothing of what comes with this package.
        """
        searched = self._known.found.searched if self._known.found is not None else ()
        places = [
            place.path
            for place in searched
            if place.source not in _NOT_WATCHED and place.ignored is None
        ]
        known = dict.fromkeys(places)
        paths = [entry.path for entry in self._known if not entry.bundled]
        return [*known, *(path for path in paths if os.path.dirname(path) not in known)]

    def known_files(self) -> Snapshot:
        """Return the files of plugins as they were when they were last looked at."""
        return {e.path: e.identity for e in self._known if not e.bundled and e.identity is not None}

    # -- what changed -----------------------------------------------------------------------------

    def _gone(self, found: Discovery, scope: _Scope) -> Iterator[PluginEntry]:
        """Yield plugins whose file is gone, or leads to the file of another one now."""
        twins = {twin.path for candidate in found.candidates for twin in candidate.twins}
        paths = {candidate.path for candidate in found.candidates}
        for entry in self._known:
            if entry.bundled or entry.path not in scope:
                continue
            is_twin = entry.path in twins and entry.path not in paths and not entry.is_there
            if is_twin or not os.path.lexists(entry.path):
                yield entry

    def _compare(self, found: Discovery, scope: _Scope) -> tuple[list[_Replaced], list[Candidate]]:
        """Return the plugins whose file is another one, and the files that are nobody's yet."""
        by_path = {entry.path: entry for entry in self._known}
        identities = {entry.candidate.identity for entry in self._known if entry.is_there}
        replaced: list[_Replaced] = []
        new: list[Candidate] = []
        for candidate in found.candidates:
            entry = by_path.get(candidate.path)
            if candidate.path not in scope:
                continue
            if entry is None:
                if candidate.identity not in identities:
                    new.append(candidate)
            elif not entry.bundled and file_identity(entry.path) != entry.identity:
                replaced.append(_Replaced(entry, candidate))
        return replaced, new

    # -- following --------------------------------------------------------------------------------

    def _add(self, candidates: list[Candidate]) -> list[PluginChange]:
        entries = self._known.meet(candidates)
        for entry in entries:
            entry.sealed = True
        self._load(entries)
        changes = [_change(ChangeKind.APPEARED, entry) for entry in entries]
        for change in changes:
            _log.info("plugin.appeared", plugin=change.plugin, path=change.path)
        return changes

    def _remove(self, entry: PluginEntry) -> PluginChange:
        change = _change(ChangeKind.REMOVED, entry)
        self._known.forget(entry)
        if entry.generation is not None:
            self._retire(entry.generation)
        _log.info("plugin.removed", plugin=entry.name, path=entry.path)
        return change

    def _replace(self, old: PluginEntry, candidate: Candidate) -> PluginChange | None:
        """Have the file that is there now succeed the one that was; None if it is the same."""
        (new,) = self._known.entries_of([candidate])
        if old.sha256 is not None and new.sha256 == old.sha256 and old.generation is not None:
            old.candidate, old.identity, old.known = candidate, new.identity, new.known
            return None
        new.name, new.sealed = old.name, True
        serving = old.generation if old.state is State.LOADED else None
        new.predecessor = serving
        # What is in use is only left for what has shown that it works.
        self._load([new], eager=True if serving is not None and serving.library else None)
        if serving is not None and new.state is not State.LOADED:
            return self._keep(old, new)
        self._known.replace(old, new)
        if new.generation is not None:
            new.generation.take_over()
        if old.generation is not None:
            self._retire(old.generation)
        _log.info("plugin.replaced", plugin=new.name, path=new.path)
        return _change(ChangeKind.REPLACED, new)

    def _keep(self, old: PluginEntry, new: PluginEntry) -> PluginChange:
        """Let the old generation go on, since the new one cannot."""
        if new.generation is not None:
            new.generation.close(at_exit=False)
        first = new.record().reason
        why = f"the new file is {new.state}: {first.message if first else 'it offers nothing'}"
        kept = Reason.of_rule("register", "LD-085", f"{old.path}: {why}")
        old.identity = new.identity
        old.note_kept(kept)
        _log.warning("plugin.kept", plugin=old.name, path=old.path, reason=why)
        return _change(ChangeKind.REPLACED, old, kept)

    def _revive_shadowed(self) -> None:
        """Let plugins have what somebody else had who is gone."""
        shadowed = [entry for entry in self._known if entry.state is State.SHADOWED]
        revived = []
        for old in shadowed:
            if old.generation is not None:
                self._retire(old.generation)
            (new,) = self._known.entries_of([old.candidate])
            new.name, new.sealed = old.name, old.sealed
            self._known.replace(old, new)
            revived.append(new)
        if revived:
            self._load(revived)

    # -- the end of generations -------------------------------------------------------------------

    def _retire(self, generation: Generation) -> None:
        self._draining.append(generation.retire())
        self.finish_drained()

    @property
    def draining(self) -> int:
        """How many generations serve nobody new and are not closed yet."""
        return len(self._draining)

    def finish_drained(self) -> None:
        """Close the generations of which nobody holds anything any more."""
        for drained in [retired for retired in self._draining if retired.is_drained]:
            self._draining.remove(drained)
            errors = [error.message for error in drained.close(at_exit=False)]
            _log.info("generation.closed", plugin=drained.plugin, path=drained.path, errors=errors)

    def close(self, *, at_exit: bool) -> list[ModularTFError]:
        """Close all that still serves to the end; return what went wrong."""
        draining, self._draining = self._draining, []
        return [error for old in draining for error in old.close(at_exit=at_exit)]

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        for retired in self._draining:
            retired.after_fork_in_child()


class _Scope:
    """The paths that a renewal is about."""

    def __init__(self, paths: Iterable[str] | None) -> None:
        self._paths = None if paths is None else frozenset(paths)

    def __contains__(self, path: str) -> bool:
        return self._paths is None or path in self._paths


def _change(kind: ChangeKind, entry: PluginEntry, kept: Reason | None = None) -> PluginChange:
    return PluginChange(kind, entry.path, entry.name, entry.record(), kept)
