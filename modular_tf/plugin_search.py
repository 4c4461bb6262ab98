"""Searching for the plugins of a service, where the user, its configuration and hooks say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.discovery.search_paths import SearchPaths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.configuration import Config
    from modular_tf.hooks import Hooks
    from modular_tf.known_plugins import KnownPlugins


class PluginSearch:
    """Finds the plugins of one service. Used under the service's lock, but for `paths`.

    Attributes:
        known: The plugins that were found so far.

    Args:
        known: As above.
        config: What the user decided.
        hooks: Who may add places.
        arguments: Files and directories that come before all others.
        bundled: Whether the plugins that come with the package count.
    """

    def __init__(
        self,
        known: KnownPlugins,
        config: Config,
        hooks: Hooks,
        arguments: Sequence[str],
        *,
        bundled: bool,
    ) -> None:
        self.known = known
        self._config = config
        self._hooks = hooks
        self._arguments = tuple(arguments)
        self._bundled = bundled

    def paths(self) -> SearchPaths:
        """Return where to search, as process and configuration have it now. [any thread]"""
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
        self.known.search(self.paths())

    def run_once(self) -> None:
        """Do that, unless it was done before."""
        if not self.was_run:
            self.run()

    @property
    def was_run(self) -> bool:
        """Whether all sources were searched before."""
        return self.known.found is not None
