"""Searching for the plugins of a service, where the user, its configuration and hooks say."""

from __future__ import annotations

import os
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from modular_tf.discovery.search import discover_named, installed_among
from modular_tf.discovery.sources.installed import Installation
from modular_tf.discovery.sources.search_log import is_plugin_file_name
from modular_tf.discovery.sources.search_paths import SearchPaths, python_path
from modular_tf.events.delivery import delivers_at_end
from modular_tf.service.kept.claims import find_out_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.service.configuration import Config
    from modular_tf.service.hooks import Hooks
    from modular_tf.service.plugins import KnownPlugins, Search
    from modular_tf.service.service_lock import ServiceLock

_PATIENCE_S = 10.0  # with another process that reads one library


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
        self._run(again=True)

    def run_once(self) -> None:
        """Search all sources, unless that was done before."""
        if not self.was_run:
            self._run(again=False)

    def run_for(self, names_or_paths: Sequence[str]) -> None:
        """Search all sources once, if they decide what is named; no name means all plugins."""
        if not names_or_paths or not all(map(self._is_clear, names_or_paths)):
            self.run_once()

    def _is_clear(self, name_or_path: str) -> bool:
        """Tell whether something names a known plugin, or files that need no source.

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
        search = self._begin(paths, installation, again=again)
        if search is None:
            return
        if search.unknown:  # without the lock: this may wait for another process
            find_out_once(
                self.known.cache.claims("probe"),
                search.unknown,
                attrgetter("path"),
                unknown=partial(self._recall_anew, search),
                find_out=partial(self._probe, search),
                patience_s=_PATIENCE_S,
                check=self._lock.check_open,
            )
        self._finish(search, paths)

    @delivers_at_end
    def _begin(
        self, paths: SearchPaths, installation: Installation, *, again: bool
    ) -> Search | None:
        with self._lock:
            if not again and paths == self._searched:  # another thread has done it meanwhile
                return None
            return self.known.begin_search(paths, installation)

    @delivers_at_end
    def _recall_anew(self, search: Search, candidates: Sequence[Candidate]) -> list[Candidate]:
        with self._lock:
            return search.scan.recall(candidates)

    @delivers_at_end
    def _probe(
        self, search: Search, candidates: Sequence[Candidate], tell_progress: Callable[[], None]
    ) -> None:
        with self._lock:
            search.scan.probe(candidates, tell_progress)

    @delivers_at_end
    def _finish(self, search: Search, paths: SearchPaths) -> None:
        with self._lock:
            self.known.finish_search(search)
            self._searched = paths

    @property
    def was_run(self) -> bool:
        """Whether all sources were searched before."""
        return self.known.found is not None
