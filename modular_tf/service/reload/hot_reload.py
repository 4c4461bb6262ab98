"""Hot reload: the plugins of a service follow their files while it runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.service.lifetime import entry_point
from modular_tf.service.plugin_entry import Attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from modular_tf.discovery.sources.search_paths import SearchPaths
    from modular_tf.errors import ModularTFError
    from modular_tf.service.configuration import Config
    from modular_tf.service.hooks import Hooks
    from modular_tf.service.lifetime import ServiceLock
    from modular_tf.service.pipeline import PluginPipeline
    from modular_tf.service.plugin_entry import PluginEntry
    from modular_tf.service.plugins import KnownPlugins
    from modular_tf.service.reload.renewal import Prepared, Renewal, Scope
    from modular_tf.service.reload.watching import Change, Watch
    from modular_tf.service.report import PluginChange

_MOST_LOOKS = 4  # at files that are replaced again and again while they are tried


class HotReload:
    """Follows changes of the plugin files of one service, when asked or in threads. [any thread]

    It takes the service's lock itself, and releases it while hooks are asked and plugins are tried.
    What does the work is imported and made at first use: most processes follow nothing.
    """

    def __init__(
        self,
        lock: ServiceLock,
        config: Config,
        known: KnownPlugins,
        pipeline: PluginPipeline,
        hooks: Hooks,
        *,
        load_all: Callable[[], object],
    ) -> None:
        self._lock = lock
        self._config = config
        self._known = known
        self._pipeline = pipeline
        self._hooks = hooks
        self._load_all = load_all
        self._started: Renewal | None = None
        self._watches: set[Watch] = set()  # those that have not ended

    def refresh(self, paths: Iterable[str] | None) -> list[PluginChange]:
        """See `PluginService.refresh`."""
        from modular_tf.service.reload.renewal import Scope  # noqa: PLC0415  (as in _renewal)

        return self._renew(Scope(None if paths is None else map(os.path.abspath, paths)))

    def follow(self, changes: Sequence[Change]) -> list[PluginChange]:
        """Follow what a watch has reported."""
        from modular_tf.service.reload.renewal import Scope  # noqa: PLC0415  (likewise)

        whole = {change.path: change.identity for change in changes}
        return self._renew(Scope(whole, whole))

    @property
    def _renewal(self) -> Renewal:
        if self._started is None:
            from modular_tf.service.reload.renewal import Renewal  # noqa: PLC0415  (as said of the class)

            self._started = Renewal(self._known, self._lock)
        return self._started

    def _is_unused(self) -> bool:
        """Return whether nothing was searched or loaded yet, so that all plugins are meant."""
        return self._known.found is None and not any(self._known)

    def _renew(self, scope: Scope) -> list[PluginChange]:
        self._lock.check_open()
        if self._is_unused():
            self._load_all()
            return []
        self._known.search(again=False)
        places = self._known.paths()
        changes: list[PluginChange] = []
        again: list[str] | None = None
        for _ in range(_MOST_LOOKS):
            found, again = self._look(places, scope)
            changes += found
            if not again:
                break
            scope = type(scope)(again)
        return changes

    def _look(self, places: SearchPaths, scope: Scope) -> tuple[list[PluginChange], list[str]]:
        """Follow changes once; return them, and the files that have to be read again."""
        attempt = Attempt()
        try:
            prepared = self._prepare(places, scope, attempt)
            return self._finish(prepared, self._pipeline.vetoes(prepared.entries), attempt)
        finally:
            attempt.is_over = True

    @entry_point
    def _prepare(self, places: SearchPaths, scope: Scope, attempt: Attempt) -> Prepared:
        with self._lock:  # of several threads, one makes it
            renewal = self._renewal
        return renewal.prepare(places, scope, attempt)

    @entry_point
    def _finish(
        self, prepared: Prepared, vetoes: dict[PluginEntry, str | None], attempt: Attempt
    ) -> tuple[list[PluginChange], list[str]]:
        self._pipeline.try_out(self._pipeline.judge(vetoes, attempt))
        with self._lock:
            changes, again = self._renewal.finish(prepared.only(vetoes), self._pipeline.register)
        for change in changes:
            self._hooks.changed(change)
        return changes, again

    def watch(self, on_change: Callable[[PluginChange], object] | None) -> Watch:
        """See `PluginService.watch`."""
        from modular_tf.service.reload.watching import Watch  # noqa: PLC0415  (likewise)

        self._lock.check_open()
        self._pipeline.expect_changes()
        if self._is_unused():
            self._load_all()
        self._known.search(again=False)
        with self._lock:
            self._lock.check_open()
            known = self._renewal.known_files()
            watch = Watch(
                self._watched_places,
                known,
                self.follow,
                self._config.watch_poll_interval_s,
                on_change=on_change,
                when_ended=self._watches.discard,
            )
            self._watches.add(watch)
        try:
            watch.start()
        except BaseException:
            watch.close()
            self._watches.discard(watch)  # no thread of it does
            raise
        return watch

    @entry_point
    def _watched_places(self) -> list[str]:
        with self._lock:
            self._renewal.finish_drained()
            return self._renewal.places()

    @property
    def draining(self) -> int:
        """How many old libraries stay because something of them is still held."""
        return 0 if self._started is None else self._started.draining

    # -- the end ----------------------------------------------------------------------------------

    def stop_watching(self, timeout_s: float | None) -> None:
        """End the watches; call it without the service's lock, which their last change may need."""
        for watch in list(self._watches):
            watch.close(timeout_s)

    def close(self, failures: list[ModularTFError], *, at_exit: bool) -> None:
        """Close old libraries that still serve somebody; add what went wrong to `failures`.

        The watches have been stopped.
        """
        self._watches.clear()
        if self._started is not None:
            self._started.close(failures, at_exit=at_exit)

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        self._watches.clear()
        if self._started is not None:
            self._started.after_fork_in_child()
