"""Hot reload: the plugins of a service follow their files while it runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from modular_tf.configuration import Config
    from modular_tf.errors import ModularTFError
    from modular_tf.hooks import Hooks
    from modular_tf.plugin_change import PluginChange
    from modular_tf.plugin_pipeline import PluginPipeline
    from modular_tf.plugin_search import PluginSearch
    from modular_tf.plugin_watch import Watch
    from modular_tf.renewal import Renewal, Scope
    from modular_tf.service_lock import ServiceLock
    from modular_tf.watching.change import Change


class HotReload:
    """Follows changes of the plugin files of one service, when asked or in threads. [any thread]

    It takes the service's lock itself, and lets go of it while plugins are tried. What does the
    work is imported and made at the first of it: most processes follow nothing.

    Args:
        lock: The service's.
        config: What the user decided.
        search: Where the service searches for plugins, and those that it knows.
        pipeline: Loads those that are new or renewed.
        hooks: Who is told what became of a change.
        load_all: Loads all plugins, where nothing was searched before.
    """

    def __init__(
        self,
        lock: ServiceLock,
        config: Config,
        search: PluginSearch,
        pipeline: PluginPipeline,
        hooks: Hooks,
        *,
        load_all: Callable[[], object],
    ) -> None:
        self._lock = lock
        self._config = config
        self._search = search
        self._pipeline = pipeline
        self._hooks = hooks
        self._load_all = load_all
        self._started: Renewal | None = None
        self._watches: list[Watch] = []

    def refresh(self, paths: Iterable[str] | None) -> list[PluginChange]:
        """See `PluginService.refresh`."""
        from modular_tf.renewal import Scope  # noqa: PLC0415  (as in _renewal)

        return self._renew(Scope(None if paths is None else map(os.path.abspath, paths)))

    def follow(self, changes: Sequence[Change]) -> list[PluginChange]:
        """Take note of what a watch has seen.

        Raises:
            ClosedError: The service is closed, or was before all was done.
        """
        from modular_tf.renewal import Scope  # noqa: PLC0415  (likewise)

        whole = {change.path: change.identity for change in changes}
        return self._renew(Scope(whole, whole))

    @property
    def _renewal(self) -> Renewal:
        if self._started is None:
            from modular_tf.renewal import Renewal  # noqa: PLC0415  (as said of the class)

            self._started = Renewal(self._search.known, self._pipeline.run)
        return self._started

    def _renew(self, scope: Scope) -> list[PluginChange]:
        with self._lock:
            self._lock.check_open()
            if not self._search.was_run:
                self._load_all()
                return []
            renewed = self._renewal.prepare(self._search.paths(), scope)
            judged = self._pipeline.judge(renewed.entries)
        findings = self._pipeline.try_out(judged)  # without the lock: it may take its time
        with self._lock:
            self._lock.check_open()
            self._pipeline.register(judged, findings)
            changes = self._renewal.finish(renewed)
        for change in changes:
            self._hooks.changed(change)
        return changes

    def watch(self, on_change: Callable[[PluginChange], object] | None) -> Watch:
        """See `PluginService.watch`."""
        from modular_tf.plugin_watch import Watch  # noqa: PLC0415  (likewise)
        from modular_tf.watching.watcher import WatcherSettings  # noqa: PLC0415  (likewise)

        settings = WatcherSettings(self._config.watch_polling, self._config.watch_poll_interval_s)
        with self._lock:
            self._lock.check_open()
            self._pipeline.expect_changes()
            if not self._search.was_run:
                self._load_all()
            known = self._renewal.known_files()
            watch = Watch(self._watched_places, known, self.follow, settings, on_change)
            self._watches.append(watch)
        return watch

    def _watched_places(self) -> list[str]:
        with self._lock:
            self._renewal.finish_drained()
            return self._renewal.places()

    @property
    def draining(self) -> int:
        """How many old generations are kept by those who hold something of them."""
        return 0 if self._started is None else self._started.draining

    # -- the end ----------------------------------------------------------------------------------

    def stop_watching(self, timeout_s: float | None) -> None:
        """End the watches; not for the service's lock, which their last change may wait for.

        Args:
            timeout_s: How long to wait for each one's last change; None for as long as it takes.
        """
        for watch in self._watches:
            watch.close(timeout_s)

    def close(self, *, at_exit: bool) -> list[ModularTFError]:
        """Close old generations that still serve somebody; return what went wrong.

        The watches have been stopped.
        """
        self._watches.clear()
        return [] if self._started is None else self._started.close(at_exit=at_exit)

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        if self._started is not None:
            self._started.after_fork_in_child()
