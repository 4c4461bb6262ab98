"""The plugins that a service knows: found, probed once, and named."""

from __future__ import annotations

import os
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.search import FoundCandidates, discover, discover_named, installed_among
from modular_tf.discovery.sources.installed import Installation
from modular_tf.discovery.sources.search_log import is_plugin_file_name
from modular_tf.discovery.sources.search_paths import SearchPaths, python_path
from modular_tf.errors import NotFoundError
from modular_tf.events.delivery import delivers_at_end
from modular_tf.rules.shortage import SHORTAGE
from modular_tf.service.kept.claims import find_out_once
from modular_tf.service.kept.scan_cache import ScanCache
from modular_tf.service.outcome import lost_schemes, without
from modular_tf.service.plugin_entry import PluginEntry, log_step
from modular_tf.service.plugin_scan import PluginScan, scan

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.filesystem.registry import FilesystemRegistry
    from modular_tf.service.configuration import Config
    from modular_tf.service.hooks import Hooks
    from modular_tf.service.lifetime import ServiceLock
    from modular_tf.service.plugin import Plugin
    from modular_tf.service.plugin_entry import Attempt
    from modular_tf.service.report import PluginRecord


_PATIENCE_S = 10.0  # with another process that reads one library


class SearchUnderWay(NamedTuple):
    """What a search has found, before what is unknown of it was probed.

    Attributes:
        found: What there is.
        scan: Makes plugins of the candidates that are new.
        unknown: Those of them that have to be probed.
    """

    found: FoundCandidates
    scan: PluginScan
    unknown: list[Candidate]


class KnownPlugins:
    """The entries of all plugins, in order of precedence. [any thread]

    What searches and reads libraries is not for the service's lock, which is taken here where
    entries are named. A signal handler may use this in the middle of its methods. What they change
    is therefore computed first and put in place by one store.

    Args:
        config: What the user decided.
        taken: Gives the names that plugins must not have, besides each other's.
        lock: The service's.

    Attributes:
        cache: What is known of libraries from earlier scans.
        found: What the last search found, None before the first.
        all_wanted: Whether all plugins were to be loaded, and not some of them by name.
    """

    def __init__(
        self, config: Config, taken: Callable[[], Collection[str]], lock: ServiceLock
    ) -> None:
        accepted = " ".join(sorted(config.first_contact_accept))
        self.cache = ScanCache.of_process(settings={"accepted": accepted} if accepted else None)
        self._config = config
        self._taken = taken
        self._lock = lock
        self._entries: dict[str, PluginEntry] = {}
        self.found: FoundCandidates | None = None
        self.all_wanted = False

    def __iter__(self) -> Iterator[PluginEntry]:
        return iter(list(self._entries.values()))

    def records(self, schemes: FilesystemRegistry) -> list[PluginRecord]:
        """Return one record per plugin, as it serves now. [any thread, without the service's lock]

        Args:
            schemes: Where plugins register their filesystems.
        """
        registered = [(entry.plugin.record(), entry.filesystems) for entry in self]
        serving = schemes.serving  # after the rest: what was registered by then is in it
        return [
            without(record, lost_schemes(record.name, filesystems, serving))
            for record, filesystems in registered
        ]

    @property
    def was_cut_short(self) -> bool:
        """Whether a shortage kept the last search from one of its sources."""
        return self.found is not None and any(p.rule == SHORTAGE for p in self.found.problems)

    def begin_search(self, paths: SearchPaths, installation: Installation) -> SearchUnderWay:
        """Find candidates; what is known already goes on."""
        self.retry_postponed()
        found = discover(paths, installation, self.cache.installed_plugins)
        made = PluginScan(self._new_among(found), self._config, self.cache)
        return SearchUnderWay(found, made, made.recall(made.candidates))

    def finish_search(self, search: SearchUnderWay) -> None:
        """Name and keep the plugins that are new, when the unknown ones have been probed."""
        self.meet(search.scan.plugins)
        self.found = search.found

    def named(self, name_or_path: str) -> list[PluginEntry]:
        """Return the entry of a name or of a file, which is looked at if it is new.

        A directory has an entry for each library in it.

        Raises:
            NotFoundError: There is no such plugin or file, or no library in the directory.
        """
        self.retry_postponed()
        if (entry := self._entries.get(name_or_path)) is not None:
            return [entry]
        if os.sep not in name_or_path and not os.path.lexists(name_or_path):
            raise NotFoundError(
                f"no plugin {name_or_path!r}; found: {sorted(self._entries)}",
                plugin=name_or_path,
                operation="load",
            )
        found = discover_named(name_or_path)
        self.meet(self.scanned(self._new_among(found)))
        known = self._by_identity()
        entries = [known[c.identity] for c in found.candidates if c.identity in known]
        if not entries:
            why = found.problems[0].message if found.problems else "there is no library in it"
            raise NotFoundError(f"{name_or_path}: {why}", path=name_or_path, operation="load")
        return entries

    def one_named(self, name_or_path: str) -> PluginEntry:
        """Return the only entry of a name, a file or a directory.

        Raises:
            NotFoundError: There is none, or there are several.
        """
        entry, *others = self.named(name_or_path)
        if others:
            names = [entry.plugin.name, *(other.plugin.name for other in others)]
            raise NotFoundError(f"{name_or_path}: name one of {names}", path=name_or_path)
        return entry

    def unused_name(self, name: str) -> str:
        """Return a name that nobody has: this one, or one with a number behind it."""
        return _unused_name(name, self._entries, self._taken())

    def _new_among(self, discovery: FoundCandidates) -> list[Candidate]:
        known = self._by_identity()
        return [found for found in discovery.candidates if found.identity not in known]

    @delivers_at_end
    def meet(self, plugins: Sequence[Plugin], attempt: Attempt | None = None) -> list[PluginEntry]:
        """Name and store plugins, but for those of a file that has an entry by now.

        Args:
            plugins: As they were scanned.
            attempt: The run that processes them, None for none yet.

        Returns:
            Their entries.
        """
        entries = [PluginEntry(plugin, attempt=attempt) for plugin in plugins]
        with self._lock:
            self._change(lambda before: self._with(entries, before))
            met = [entry for entry in entries if self.has(entry)]
        for entry in met:
            log_step(None, entry.plugin)
        return met

    def _with(
        self, entries: Sequence[PluginEntry], before: Mapping[str, PluginEntry]
    ) -> dict[str, PluginEntry]:
        """Return the entries with others, but for those that somebody has met meanwhile.

        They may have met a file by another path.
        """
        after = dict(before)
        met = {_file_of(entry) for entry in before.values()}
        identities = {entry.plugin.candidate.identity for entry in entries}
        others = [e.plugin for e in before.values() if e.plugin.candidate.identity in identities]
        there = {plugin.candidate.identity for plugin in others if plugin.is_there}
        taken = self._taken()
        for entry in entries:
            if _file_of(entry) not in met and entry.plugin.candidate.identity not in there:
                name = _unused_name(entry.plugin.candidate.name, after, taken)
                if name != entry.plugin.name:
                    entry.change(lambda plugin, name: plugin._replace(name=name), name)
                after[name] = entry
        return after

    def has_name(self, name: str) -> bool:
        """Return whether a plugin has this name."""
        return name in self._entries

    def has(self, entry: PluginEntry) -> bool:
        """Return whether an entry stands for its plugin: it was neither replaced nor given up."""
        return self._entries.get(entry.plugin.name) is entry

    def replace(self, old: PluginEntry, new: PluginEntry) -> None:
        """Let an entry stand for the plugin of another, whose name it has."""
        self._change(lambda before: {name: new if e is old else e for name, e in before.items()})

    def forget(self, entry: PluginEntry) -> None:
        """Give up an entry, whose file is gone."""
        self._change(lambda before: {name: e for name, e in before.items() if e is not entry})

    def _change(self, change: Callable[[dict[str, PluginEntry]], dict[str, PluginEntry]]) -> None:
        while True:
            before = self._entries
            after = change(before)
            if self._entries is before:  # else it was changed in the middle
                self._entries = after
                return

    def retry_postponed(self) -> None:
        """Look again at plugins that a shortage kept from being looked at.

        They go on from where they were: what was to be loaded is to be loaded.
        """
        postponed = [entry for entry in self if _may_retry(entry)]
        scanned = self.scanned([entry.plugin.candidate for entry in postponed])
        for old, plugin in zip(postponed, scanned, strict=True):
            if not plugin.is_postponed and _may_retry(old):
                log_step(None, plugin)
                self.replace(old, old.anew(plugin, attempt=old.attempt))

    def scanned(self, candidates: Sequence[Candidate]) -> list[Plugin]:
        """Judge and probe candidates, and return plugins that are not stored here."""
        return scan(candidates, self._config, self.cache)

    def _by_identity(self) -> dict[tuple[int, int], PluginEntry]:
        """Return the entries by device and inode, without those whose file is gone.

        A system may give the inode of a deleted file to the next one that is made.
        """
        entries = self._entries.values()
        return {e.plugin.candidate.identity: e for e in entries if e.plugin.is_there}


class PluginSearch:
    """Finds the plugins of one service. [any thread]

    Libraries are read without the service's lock. Of two threads that search at once, both search;
    what one of them probes, the other waits for.

    Attributes:
        known: The plugins that were found so far.

    Args:
        lock: The service's.
        known: As above.
        config: What the user decided.
        hooks: Who may add places.
        arguments: Files and directories that come before all others.
        bundled: Whether the plugins that come with the package count.
    """

    def __init__(
        self,
        lock: ServiceLock,
        known: KnownPlugins,
        config: Config,
        hooks: Hooks,
        arguments: Sequence[str],
        *,
        bundled: bool,
    ) -> None:
        self.known = known
        self._lock = lock
        self._config = config
        self._hooks = hooks
        self._arguments = tuple(arguments)
        self._bundled = bundled
        self._searched: SearchPaths | None = None

    def paths(self) -> SearchPaths:
        """Return where to search, as process, configuration and hooks have it now."""
        return SearchPaths.of_process(
            arguments=self._arguments,
            config_directories=(
                *self._config.plugin_dirs,
                *self._hooks.plugin_paths(self._config),
            ),
            config_origin=self._config.origin,
            bundled=self._bundled,
        )

    def run(self) -> None:
        """Find candidates in all sources and probe those that are new."""
        self._run(again=True)

    def run_once(self) -> None:
        """Search all sources, unless that was done before and no shortage cut it short."""
        if not self.was_run or self.known.was_cut_short:
            self._run(again=self.was_run)

    def all(self) -> list[PluginEntry]:
        """Return all entries; plugins that a shortage postponed are looked at again."""
        self.known.retry_postponed()
        return list(self.known)

    def run_for(self, names_or_paths: Sequence[str]) -> None:
        """Search all sources once, if they decide what is named; no name means all plugins."""
        if not names_or_paths or not all(map(self._is_clear, names_or_paths)):
            self.run_once()

    def _is_clear(self, name_or_path: str) -> bool:
        """Return whether something names a known plugin, or files that need no source.

        A path that the caller names comes before all sources. Only what a distribution brings has
        to be known for that, since its RECORD decides whether the file is trusted.
        """
        if self.known.has_name(name_or_path):
            return True
        is_file = is_plugin_file_name(name_or_path) and os.path.lexists(name_or_path)
        if os.sep not in name_or_path and not is_file:
            return False
        return not installed_among(discover_named(name_or_path).candidates)

    def _run(self, *, again: bool) -> None:
        installation = Installation(python_path())
        self._hooks.find(installation)  # from the same files as the entry points of plugins
        paths = self.paths()
        if not again and paths == self._searched:  # another thread has done it meanwhile
            return
        search = self.known.begin_search(paths, installation)
        if search.unknown:
            find_out_once(
                self.known.cache.claims("probe"),
                search.unknown,
                attrgetter("path"),
                unknown=search.scan.recall,
                find_out=search.scan.probe,
                patience_s=_PATIENCE_S,
                check=self._lock.check_open,
            )
        self.known.finish_search(search)
        self._searched = paths

    @property
    def was_run(self) -> bool:
        """Whether all sources were searched before."""
        return self.known.found is not None


def _unused_name(name: str, entries: Collection[str], taken: Collection[str]) -> str:
    """Return a name that is in neither: this one, or one with a number behind it."""
    number, unused = 2, name
    while unused in entries or unused in taken:
        unused = f"{name}#{number}"
        number += 1
    return unused


def _file_of(entry: PluginEntry) -> tuple[str, tuple[int, int]]:
    candidate = entry.plugin.candidate
    return candidate.path, candidate.identity


def _may_retry(entry: PluginEntry) -> bool:
    plugin = entry.plugin
    return plugin.is_postponed and plugin.is_there and not entry.is_under_way
