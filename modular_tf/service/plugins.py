"""The plugins that a service knows: searched, recalled or probed once, judged, and named."""

from __future__ import annotations

import os
import sys
from time import time_ns
from typing import TYPE_CHECKING

from modular_tf.discovery.file_identity import FileIdentity, SeenFile, see_library
from modular_tf.discovery.search import (
    FoundCandidates,
    discover,
    discover_named,
    installed_among,
    unused_name,
)
from modular_tf.discovery.sources.installed import Installation
from modular_tf.discovery.sources.search_log import is_plugin_file_name
from modular_tf.discovery.sources.search_paths import SearchPaths, python_path
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.errors import NotFoundError
from modular_tf.service.configuration import trust_of
from modular_tf.service.lifetime import entry_point
from modular_tf.service.plugin import Plugin, PluginEntry, log_step
from modular_tf.service.report import lost_schemes, without
from modular_tf.service.storage.scan_cache import ScanCache

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from modular_tf.discovery.candidate import Candidate, LoadFacts
    from modular_tf.discovery.probe import Prober
    from modular_tf.discovery.trust.policy import TrustVerdict
    from modular_tf.filesystem.registry import FilesystemRegistry
    from modular_tf.service.configuration import Config
    from modular_tf.service.hooks import Hooks
    from modular_tf.service.lifetime import ServiceLock
    from modular_tf.service.plugin import Attempt
    from modular_tf.service.report import PluginRecord
    from modular_tf.service.storage.scan_cache import CacheEntry


_TIMEOUT_S = 10.0  # of another process that reads one library


class PluginScan:
    """Candidates that become plugins: those of which nothing is known have to be probed.

    Nothing of theirs is run. Call it without the service's lock, as reading libraries takes time.
    """

    def __init__(self, candidates: Sequence[Candidate], config: Config, cache: ScanCache) -> None:
        self.candidates = candidates
        self._config = config
        self._cache = cache
        self._plugins: dict[str, Plugin] = {}
        self._seen: dict[str, SeenFile] = {}

    @property
    def plugins(self) -> list[Plugin]:
        """One plugin for each candidate, in the same order; all have been recalled or probed."""
        return [self._plugins[candidate.path] for candidate in self.candidates]

    def recall(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Judge candidates by what is known of them; return those of which nothing is."""
        if not candidates:
            return []
        self._cache.refresh()
        judge = self._judge()
        # Step by step for all of them, which takes two thirds of the time of one after the other:
        # a processor's caches hold the code of one step.
        recalled = [(found, self._cache.recall(found.path)) for found in candidates]
        self._seen.update({found.path: known.seen for found, known in recalled if known})
        judged = [
            (found, known, self._trust(judge, found, known.facts, known))
            for found, known in recalled
            if known is not None
        ]
        for found, known, trust in judged:
            plugin = Plugin.of(found, known.facts, trust, known=known, file=known.seen)
            self._plugins[found.path] = plugin
        self._cache.save()
        return [found for found in candidates if found.path not in self._plugins]

    def probe(self, candidates: Sequence[Candidate], report_progress: Callable[[], None]) -> None:
        """Probe and judge candidates of which nothing is known, and keep what becomes known."""
        if not candidates:
            return
        # What reads libraries is imported where one is read; known plugins are not.
        from modular_tf.discovery.linking.host_exports import host_exports  # noqa: PLC0415
        from modular_tf.discovery.probe import Prober  # noqa: PLC0415

        judge, began_ns = self._judge(), time_ns()
        with Prober(host_exports()) as prober:  # reads each file once
            for candidate in candidates:
                self._plugins[candidate.path] = self._probed(candidate, judge, prober, began_ns)
                report_progress()
        self._cache.save()

    def _probed(
        self, candidate: Candidate, judge: TrustJudge, prober: Prober, began_ns: int
    ) -> Plugin:
        from modular_tf.discovery.candidate import LoadFacts  # noqa: PLC0415  (as in `probe`)

        # Before anything is read: a change after that is noticed.
        file = SeenFile(candidate.path, FileIdentity.at(candidate.path), None, time_ns())
        refusal = judge.refusal_by_rights(candidate)
        if refusal is not None:  # whoever wrote the file decides how long its reading takes
            probe = prober.probe(candidate, link=False)
            facts = LoadFacts.of(probe)
            return Plugin.of(candidate, facts, refusal, probe=probe, file=file)
        seen = see_library(candidate.path)
        probe = prober.probe(candidate)
        facts = LoadFacts.of(probe)
        known = None
        if seen is not None:
            self._seen[candidate.path] = seen
            file = seen if seen.identity == file.identity else file
            known = self._cache.describe(probe, seen, began_ns)
            self._cache.remember(known)
        trust = self._trust(judge, candidate, facts, known)
        return Plugin.of(candidate, facts, trust, known=known, probe=probe, file=file)

    def _judge(self) -> TrustJudge:
        return TrustJudge(
            trust_of(self._config), python_path=sys.path, known_sha256=self._sha256_of
        )

    def _sha256_of(self, path: str, identity: FileIdentity) -> str | None:
        """Return the hash of a candidate, which was read for the cache."""
        seen = self._seen.get(path)
        return seen.sha256 if seen is not None and seen.identity == identity else None

    def _trust(
        self, judge: TrustJudge, candidate: Candidate, facts: LoadFacts, known: CacheEntry | None
    ) -> TrustVerdict:
        seen = self._seen.get(candidate.path)
        if seen is not None and seen.sha256 is None and not facts.loadable:
            return judge.judge_unread(candidate)
        verdict = judge.judge(candidate, seen)
        if verdict.accepted and facts.loadable:
            if facts.companions:
                verdict = judge.judge_companions(candidate, verdict, facts.companions)
            if facts.executable_stacks:
                verdict = judge.judge_stacks(verdict, facts.executable_stacks)
            verdict = judge.judge_environment_libraries(candidate, verdict)
        if known is None or not verdict.accepted:
            return verdict
        if known.finding is not None and known.finding.opened:
            verdict = judge.judge_opened(candidate, verdict, known.finding.opened)
        if known.opened_before and verdict.accepted:
            verdict = judge.judge_opened_before(candidate, verdict, known.opened_before)
        return verdict


def scan(
    candidates: Sequence[Candidate],
    config: Config,
    cache: ScanCache,
    check: Callable[[], None] = lambda: None,
) -> list[Plugin]:
    """Recall or probe candidates, judge them, and return plugins, in the same order.

    Of processes that meet the same new files one reads them, and the others wait for what it finds.
    They call `check` meanwhile; what it raises ends the wait.
    """
    made = PluginScan(candidates, config, cache)
    if unknown := made.recall(candidates):
        cache.turn.find_out(
            unknown, unknown=made.recall, find_out=made.probe, timeout_s=_TIMEOUT_S, check=check
        )
    return made.plugins


class KnownPlugins:
    """Finds the plugins of one service, and has their entries in order of precedence. [any thread]

    Libraries are searched and read without the service's lock, which is taken where entries are
    named. Of two threads that search at once, both search; each library is probed by one of them,
    and the other waits for that.
    """

    def __init__(
        self,
        lock: ServiceLock,
        config: Config,
        hooks: Hooks,
        arguments: Sequence[str],
        taken: Callable[[], Collection[str]],
        *,
        bundled: bool,
    ) -> None:
        accepted = " ".join(sorted(config.first_contact_accept))
        self.cache = ScanCache.of_process(settings={"accepted": accepted} if accepted else None)
        self.found: FoundCandidates | None = None  # by the last search; None before the first
        self.all_wanted = False  # all plugins were to be loaded, and not some of them by name
        self._lock = lock
        self._config = config
        self._hooks = hooks
        self._arguments = tuple(arguments)
        self._taken = taken
        self._bundled = bundled
        self._searched: SearchPaths | None = None
        self._entries: dict[str, PluginEntry] = {}  # replaced as a whole, under the lock

    def __iter__(self) -> Iterator[PluginEntry]:
        return iter(self._entries.values())

    def records(self, schemes: FilesystemRegistry) -> list[PluginRecord]:
        """Return one record per plugin, as it serves now. [without the service's lock]"""
        registered = [(entry.plugin.record(), entry.filesystems) for entry in self]
        serving = schemes.serving  # after the rest: what was registered by then is in it
        return [
            without(record, lost_schemes(record.name, filesystems, serving))
            for record, filesystems in registered
        ]

    # -- searching --------------------------------------------------------------------------------

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

    def search(self, *, again: bool = True) -> None:
        """Find candidates in all sources and probe those that are new; once, unless `again`."""
        if self.found is None or again:
            installation = Installation(python_path())
            self._hooks.find(installation)  # from the same files as the entry points of plugins
            paths = self.paths()
            if again or paths != self._searched:  # else another thread has done it meanwhile
                self._search(paths, installation)

    def search_for(self, names_or_paths: Sequence[str]) -> None:
        """Search all sources once, if they decide what is named; no name means all plugins."""
        if not names_or_paths or not all(map(self._is_clear, names_or_paths)):
            self.search(again=False)

    def _is_clear(self, name_or_path: str) -> bool:
        """Return whether something names a known plugin, or files that need no source.

        A path that the caller names comes before all sources. Only what a distribution brings has
        to be known for that, since its RECORD decides whether the file is trusted.
        """
        if name_or_path in self._entries:
            return True
        is_file = is_plugin_file_name(name_or_path) and os.path.lexists(name_or_path)
        if os.sep not in name_or_path and not is_file:
            return False
        return not installed_among(discover_named(name_or_path).candidates)

    @entry_point
    def _search(self, paths: SearchPaths, installation: Installation) -> None:
        found = discover(paths, installation, self.cache.installed_plugins)
        self.add_new(self.scanned(self._new_among(found)))
        self.found, self._searched = found, paths

    def scanned(self, candidates: Sequence[Candidate]) -> list[Plugin]:
        """Return plugins of candidates, which are not stored here."""
        return scan(candidates, self._config, self.cache, self._lock.check_open)

    # -- entries ----------------------------------------------------------------------------------

    @entry_point
    def named(self, name_or_path: str) -> list[PluginEntry]:
        """Return the entry of a name or of a file, which is probed if it is new.

        A directory has an entry for each library in it. Raises NotFoundError if there is no such
        plugin or file, or no library in the directory.
        """
        if (entry := self._entries.get(name_or_path)) is not None:
            return [entry]
        if os.sep not in name_or_path and not os.path.lexists(name_or_path):
            raise NotFoundError(
                f"no plugin {name_or_path!r}; found: {sorted(self._entries)}",
                plugin=name_or_path,
                operation="load",
            )
        found = discover_named(name_or_path)
        self.add_new(self.scanned(self._new_among(found)))
        known = self._by_identity()
        entries = [known[c.identity] for c in found.candidates if c.identity in known]
        if not entries:
            why = found.problems[0].message if found.problems else "there is no library in it"
            raise NotFoundError(f"{name_or_path}: {why}", path=name_or_path, operation="load")
        return entries

    def one_named(self, name_or_path: str) -> PluginEntry:
        """Return the only entry of a name, a file or a directory."""
        entry, *others = self.named(name_or_path)
        if others:
            names = [entry.plugin.name, *(other.plugin.name for other in others)]
            raise NotFoundError(f"{name_or_path}: name one of {names}", path=name_or_path)
        return entry

    def unused_name(self, name: str) -> str:
        """Return a name that nobody has: this one, or one with a number behind it."""
        return unused_name(name, self._entries, self._taken())

    def _new_among(self, discovery: FoundCandidates) -> list[Candidate]:
        known = self._by_identity()
        return [found for found in discovery.candidates if found.identity not in known]

    def add_new(
        self, plugins: Sequence[Plugin], attempt: Attempt | None = None
    ) -> list[PluginEntry]:
        """Name and store new plugins, except those of a file that has an entry already."""
        met = []
        with self._lock:
            before, after = self._entries, dict(self._entries)
            files = {_file_of(entry.plugin) for entry in before.values()}
            identities = {plugin.candidate.identity for plugin in plugins}
            others = [e.plugin for e in before.values()]
            there = {  # it may have been met by another path
                plugin.candidate.identity
                for plugin in others
                if plugin.candidate.identity in identities and plugin.is_there
            }
            taken = self._taken()
            for plugin in plugins:
                if _file_of(plugin) not in files and plugin.candidate.identity not in there:
                    name = unused_name(plugin.candidate.name, after, taken)
                    named = plugin if name == plugin.name else plugin._replace(name=name)
                    after[name] = entry = PluginEntry(named, attempt=attempt)
                    met.append(entry)
            self._entries = after
        for entry in met:
            log_step(None, entry.plugin)
        return met

    def has(self, entry: PluginEntry) -> bool:
        """Return whether an entry stands for its plugin: it was neither replaced nor given up."""
        return self._entries.get(entry.plugin.name) is entry

    def replace(self, old: PluginEntry, new: PluginEntry) -> None:
        """Let an entry stand for the plugin of another, whose name it has."""
        with self._lock:
            self._entries = {name: new if e is old else e for name, e in self._entries.items()}

    def forget(self, entry: PluginEntry) -> None:
        """Remove an entry, whose file is gone."""
        with self._lock:
            self._entries = {name: e for name, e in self._entries.items() if e is not entry}

    def _by_identity(self) -> dict[tuple[int, int], PluginEntry]:
        """Return the entries by device and inode, without those whose file is gone.

        A system may give the inode of a deleted file to the next one that is made.
        """
        return {e.plugin.candidate.identity: e for e in self if e.plugin.is_there}


def _file_of(plugin: Plugin) -> tuple[str, tuple[int, int]]:
    return plugin.candidate.path, plugin.candidate.identity
