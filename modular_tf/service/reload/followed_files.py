"""The files of plugins: which are followed, and what happened to them since the last look."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.file_identity import FileIdentity
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources.installed import unpacked_folder
from modular_tf.service.report import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.search import FoundCandidates
    from modular_tf.discovery.sources.search_paths import SearchPaths
    from modular_tf.service.plugin_entry import PluginEntry
    from modular_tf.service.plugins import KnownPlugins
    from modular_tf.service.reload.watching import Snapshot

_NOT_WATCHED = frozenset((Source.BUNDLED, Source.DISTRIBUTION))


class Scope:
    """The files that a renewal is about.

    Args:
        paths: Their paths; None for all files.
        whole: Of those that were found whole, the identity that they had then. A file that has
            another one by now may be on its way again, and has its turn later.
    """

    def __init__(
        self,
        paths: Iterable[str] | None = None,
        whole: Mapping[str, FileIdentity | None] | None = None,
    ) -> None:
        self._paths = None if paths is None else frozenset(paths)
        self._whole = whole or {}
        self.has_wheels = self._paths is None or any(map(unpacked_folder, self._paths))

    def __contains__(self, path: str) -> bool:
        return self._paths is None or path in self._paths

    @property
    def waits(self) -> bool:
        """Whether a file that is not whole is told of once more when it is."""
        return bool(self._whole)

    def has(self, path: str, identity: FileIdentity | None) -> bool:
        """Return whether a file counts that is as it is now."""
        return path in self and self._whole.get(path, identity) == identity


class Replaced(NamedTuple):
    """A plugin, and what its path leads to now."""

    entry: PluginEntry
    candidate: Candidate


class FollowedFiles:
    """Compares the files that are there with the plugins of one service.

    Used under the service's lock, but for `search`.

    Args:
        known: The plugins.
    """

    def __init__(self, known: KnownPlugins) -> None:
        self._known = known
        # The entry that was made last to take the place of a plugin.
        self._replacements: weakref.WeakKeyDictionary[PluginEntry, PluginEntry] = (
            weakref.WeakKeyDictionary()
        )

    def search(self, places: SearchPaths, scope: Scope) -> FoundCandidates:
        """Search what may have files of the scope: installed packages cost most of the time.

        A library of an unpacked wheel may be the twin of an installed one.
        """
        installed = [e for e in self._known if e.plugin.candidate.source is Source.DISTRIBUTION]
        if scope.has_wheels or any(entry.plugin.path in scope for entry in installed):
            self._known.found = discover(places, recall=self._known.cache.installed_plugins)
            return self._known.found
        return discover(places._replace(sources=places.sources - {Source.DISTRIBUTION}))

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
        plugins = [entry.plugin for entry in self._known]
        paths = [plugin.path for plugin in plugins if not plugin.is_bundled]
        return [*known, *(path for path in paths if os.path.dirname(path) not in known)]

    def known_files(self) -> Snapshot:
        """Return the files of plugins as they were when they were last looked at."""
        plugins = [entry.plugin for entry in self._known]
        return {p.path: p.identity for p in plugins if p.identity is not None and not p.is_bundled}

    def gone(self, found: FoundCandidates, scope: Scope) -> Iterator[PluginEntry]:
        """Yield plugins whose file is gone, or leads to the file of another one now."""
        twins = {twin.path for candidate in found.candidates for twin in candidate.twins}
        paths = {candidate.path for candidate in found.candidates}
        for entry in self._known:
            path = entry.plugin.path
            if entry.plugin.is_bundled or path not in scope:
                continue
            is_twin = path in twins and path not in paths and not entry.plugin.is_there
            if is_twin or not os.path.lexists(path):
                yield entry

    def compare(
        self, found: FoundCandidates, scope: Scope
    ) -> tuple[list[Replaced], list[Candidate]]:
        """Return the plugins whose file is another one, and the files that are nobody's yet."""
        by_path = self._by_path()
        plugins = [entry.plugin for entry in self._known]
        identities = {p.candidate.identity for p in plugins if p.is_there}
        replaced: list[Replaced] = []
        new: list[Candidate] = []
        for candidate in found.candidates:
            entry = by_path.get(candidate.path)
            identity = FileIdentity.at(candidate.path)
            if not scope.has(candidate.path, identity):
                continue
            if entry is None:
                if candidate.identity not in identities:
                    new.append(candidate)
            elif not (entry.plugin.is_bundled or self.is_dealt_with(entry, identity)):
                replaced.append(Replaced(entry, candidate))
        return replaced, new

    def orphaned(
        self, found: FoundCandidates, left: Iterable[PluginEntry], new: Sequence[Candidate]
    ) -> list[Candidate]:
        """Return the files of plugins whose own path leads to another file now."""
        identities = {entry.plugin.candidate.identity for entry in left}
        paths = {entry.plugin.path for entry in self._known} | {candidate.path for candidate in new}
        return [c for c in found.candidates if c.identity in identities and c.path not in paths]

    def _by_path(self) -> dict[str, PluginEntry]:
        """Return the entry of each path; a search may have met a replaced file as a new one."""
        found: dict[str, PluginEntry] = {}
        for entry in self._known:
            other = found.setdefault(entry.plugin.path, entry)
            if other is not entry and entry.plugin.state is State.FOUND:
                self._known.forget(entry)
        return found

    def expect(self, entry: PluginEntry, replacement: PluginEntry) -> None:
        """Note the entry that was made to take the place of a plugin."""
        self._replacements[entry] = replacement

    def is_dealt_with(self, entry: PluginEntry, identity: FileIdentity | None) -> bool:
        """Return whether a plugin has this file, or a replacement with it is being processed."""
        new = self._replacements.get(entry)
        is_coming = new is not None and new.is_under_way and new.plugin.identity == identity
        return is_coming or identity == entry.plugin.identity
