"""Searching for the plugins of a service, where the user, its configuration and hooks say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.discovery.sources.search_paths import SearchPaths
from modular_tf.events.delivery import delivers_at_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.service.configuration import Config
    from modular_tf.service.hooks import Hooks
    from modular_tf.service.plugins import KnownPlugins
    from modular_tf.service.service_lock import ServiceLock


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
