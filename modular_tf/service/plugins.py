"""The plugins that a service knows: found, probed once, and named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.search import Discovery, discover
from modular_tf.discovery.sources.search_paths import SearchPaths
from modular_tf.errors import NotFoundError
from modular_tf.events.delivery import delivers_at_end
from modular_tf.service.kept.scan_cache import ScanCache
from modular_tf.service.outcome import lost_schemes, without
from modular_tf.service.plugin_entry import PluginEntry, log_decisions
from modular_tf.service.plugin_scan import scan

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.filesystem.registry import Registered
    from modular_tf.service.configuration import Config
    from modular_tf.service.hooks import Hooks
    from modular_tf.service.lifetime import ServiceLock
    from modular_tf.service.plugin import Plugin
    from modular_tf.service.plugin_entry import Attempt
    from modular_tf.service.report import PluginRecord


class KnownPlugins:
    """The entries of all plugins, in order of precedence. Used under the service's lock.

    A signal handler may use it in the middle of its methods. What they change is therefore computed
    first and put in place by one store.

    Args:
        config: What the user decided.
        taken: Gives the names that plugins must not have, besides each other's.

    Attributes:
        cache: What is known of libraries from earlier scans.
        found: What the last search found, None before the first.
        all_wanted: Whether all plugins were to be loaded, and not some of them by name.
    """

    def __init__(self, config: Config, taken: Callable[[], Collection[str]]) -> None:
        accepted = " ".join(sorted(config.first_contact_accept))
        self.cache = ScanCache.of_process(settings={"accepted": accepted} if accepted else None)
        self._config = config
        self._taken = taken
        self._entries: dict[str, PluginEntry] = {}
        self.found: Discovery | None = None
        self.all_wanted = False

    def __iter__(self) -> Iterator[PluginEntry]:
        return iter(list(self._entries.values()))

    def records(self, serving: Mapping[str, Registered]) -> list[PluginRecord]:
        """Return one record per plugin, as it serves now.

        Args:
            serving: What serves now, by scheme.
        """
        return [_record_of(entry, serving) for entry in self]

    def search(self, paths: SearchPaths) -> None:
        """Find candidates and probe those that are new; what is known already goes on."""
        self.retry_postponed()
        found = discover(paths)
        self._meet(found)
        self.found = found

    def named(self, name_or_path: str) -> list[PluginEntry]:
        """Return the entry of a name or of a file, which is looked at if it is new.

        A directory has an entry for each library in it.

        Raises:
            NotFoundError: There is no such plugin or file, or no library in the directory.
        """
        self.retry_postponed()
        if name_or_path in self._entries:
            return [self._entries[name_or_path]]
        if os.sep not in name_or_path and not os.path.lexists(name_or_path):
            raise NotFoundError(
                f"no plugin {name_or_path!r}; found: {sorted(self._entries)}",
                plugin=name_or_path,
                operation="load",
            )
        only_it = SearchPaths(arguments=(name_or_path,), sources=frozenset((Source.ARGUMENT,)))
        found = discover(only_it)
        self._meet(found)
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
        return self._unused_name(name, self._entries)

    def _unused_name(self, name: str, entries: Collection[str]) -> str:
        taken = self._taken()
        number, unused = 2, name
        while unused in entries or unused in taken:
            unused = f"{name}#{number}"
            number += 1
        return unused

    def _meet(self, discovery: Discovery) -> None:
        """Make entries of the candidates that are new."""
        known = self._by_identity()
        self.meet([found for found in discovery.candidates if found.identity not in known])

    def meet(
        self, candidates: Sequence[Candidate], attempt: Attempt | None = None
    ) -> list[PluginEntry]:
        """Make entries of candidates, which are new, and name and keep them.

        Args:
            candidates: The files.
            attempt: The run that processes them, None for none yet.
        """
        entries = [PluginEntry(plugin, attempt=attempt) for plugin in self.scanned(candidates)]
        self._change(lambda before: self._with(entries, before))
        return [entry for entry in entries if self.has(entry)]

    def _with(
        self, entries: Iterable[PluginEntry], before: Mapping[str, PluginEntry]
    ) -> dict[str, PluginEntry]:
        """Return the entries with others, but those that a signal handler has met meanwhile."""
        after = dict(before)
        met = {_file_of(entry) for entry in before.values()}
        for entry in entries:
            if _file_of(entry) not in met:
                name = self._unused_name(entry.plugin.candidate.name, after)
                if name != entry.plugin.name:
                    entry.change(lambda plugin, name: plugin._replace(name=name), name)
                after[name] = entry
        return after

    def has(self, entry: PluginEntry) -> bool:
        """Tell whether an entry stands for its plugin: it was neither replaced nor given up."""
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
            if self._entries is before:  # else a signal handler changed it in the middle
                self._entries = after
                return

    def retry_postponed(self) -> None:
        """Look again at plugins that a shortage kept from being looked at.

        They go on from where they were: what was to be loaded is to be loaded.
        """
        postponed = [entry for entry in self if _may_retry(entry)]
        scanned = self.scanned([entry.plugin.candidate for entry in postponed])
        for old, plugin in zip(postponed, scanned, strict=True):
            if not plugin.is_postponed:
                self.replace(old, old.anew(plugin, attempt=old.attempt))

    def scanned(self, candidates: Sequence[Candidate]) -> list[Plugin]:
        """Judge and probe candidates, and return plugins that are not kept here."""
        plugins = scan(candidates, self._config, self.cache)
        for plugin in plugins:
            log_decisions(plugin)
        return plugins

    def _by_identity(self) -> dict[tuple[int, int], PluginEntry]:
        """Return the entries by device and inode, without those whose file is gone.

        A system may give the inode of a deleted file to the next one that is made.
        """
        entries = self._entries.values()
        return {e.plugin.candidate.identity: e for e in entries if e.plugin.is_there}


class PluginSearch:
    """Finds the plugins of one service. [any thread]

    It takes the service's lock itself, after it has asked the hooks.

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
        self._search(self.paths(), again=True)

    def run_once(self) -> None:
        """Do that, unless it was done before."""
        if not self.was_run:
            self._search(self.paths(), again=False)

    @delivers_at_end
    def _search(self, paths: SearchPaths, *, again: bool) -> None:
        with self._lock:
            if again or paths != self._searched:  # else another thread has done it meanwhile
                self.known.search(paths)
                self._searched = paths

    @property
    def was_run(self) -> bool:
        """Whether all sources were searched before."""
        return self.known.found is not None


def _record_of(entry: PluginEntry, serving: Mapping[str, Registered]) -> PluginRecord:
    record = entry.plugin.record()
    return without(record, lost_schemes(record.name, entry.filesystems, serving))


def _file_of(entry: PluginEntry) -> tuple[str, tuple[int, int]]:
    candidate = entry.plugin.candidate
    return candidate.path, candidate.identity


def _may_retry(entry: PluginEntry) -> bool:
    plugin = entry.plugin
    return plugin.is_postponed and plugin.is_there and not entry.is_under_way
