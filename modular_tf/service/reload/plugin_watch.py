"""`Watch`: a service that follows what happens to plugin files while it runs."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import ClosedError
from modular_tf.events import EventLog
from modular_tf.service.reload.watching.watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from modular_tf.service.reload.watching.change import Change
    from modular_tf.service.reload.watching.snapshot import Snapshot
    from modular_tf.service.reload.watching.watcher import WatcherSettings
    from modular_tf.service.report import PluginChange

_log = EventLog("watch")
_hook_log = EventLog("hooks")

# Most changes take a fraction of it; longer are those whose plugin hangs while it is tried.
_SOON_S = 0.5
_MOST_AT_ONCE = 4
_PAUSES_S = (0.5, 2.0)  # between tries to take note of a change


class Watch:
    """Follows plugin files in threads of its own until it is closed. [any thread]

    A context manager. It ends with its service; in a forked child it is closed.

    Args:
        places: Returns the files and directories that plugins come from.
        known: The files of plugins as they were when they were last looked at.
        follow: Takes note of changes.
        settings: How to watch.
        on_change: Called after each change, from a thread of the watch's; what it raises is logged.
        when_ended: Called with this, when nothing more is noticed.
    """

    def __init__(
        self,
        places: Callable[[], Iterable[str]],
        known: Snapshot,
        follow: Callable[[Sequence[Change]], list[PluginChange]],
        settings: WatcherSettings,
        *,
        on_change: Callable[[PluginChange], object] | None,
        when_ended: Callable[[Watch], object],
    ) -> None:
        self._follow = follow
        self._on_change = on_change
        self._process = os.getpid()
        self._workers: list[threading.Thread] = []
        self._watcher = Watcher(
            places, known, self._take, settings, when_ended=lambda: when_ended(self)
        )

    def start(self) -> None:
        """Begin to follow."""
        self._watcher.start()

    @property
    def is_polling(self) -> bool:
        """Whether places are looked at again and again, since the system does not tell all."""
        return self._watcher.is_polling

    @property
    def unfinished(self) -> dict[str, str]:
        """The files that are waited for until they are whole, by path, each with the reason.

        They become plugins as soon as they are whole and nobody has them open for writing, or when
        nobody has written to them for ten seconds.
        """
        return self._watcher.unfinished

    @property
    def closed(self) -> bool:
        """Whether it has ended, or belongs to a parent process."""
        return self._watcher.closed or os.getpid() != self._process

    def close(self, timeout_s: float | None = None) -> None:
        """End it, after the change that is being dealt with; safe to call twice.

        A plugin that is still being tried after a moment is not waited for, and not loaded. Called
        from `on_change`, this returns at once.

        Args:
            timeout_s: How long to wait for that change; None for as long as it takes.
        """
        if os.getpid() != self._process:
            return
        if threading.current_thread() in self._workers:
            timeout_s = 0.0
        self._watcher.close(timeout_s)

    def _take(self, changes: list[Change]) -> None:
        """Deal with changes in a thread of their own: what takes long must not stop the next."""
        worker = threading.Thread(
            target=self._deal_with, args=(changes,), name="modular_tf-change", daemon=True
        )
        self._workers = [*(other for other in self._workers if other.is_alive()), worker]
        start_thread(worker)  # where that fails, the watcher brings the changes again
        worker.join(_SOON_S)
        while sum(other.is_alive() for other in self._workers) >= _MOST_AT_ONCE:
            worker.join(_SOON_S)
            if self.closed:
                return

    def _deal_with(self, changes: list[Change]) -> None:
        for pause_s in (*_PAUSES_S, None):
            try:
                followed = self._follow(changes)
            except ClosedError:  # the service is, and ends this watch as well
                return
            except Exception as error:  # noqa: BLE001  (the next try may do: no descriptor left, ...)
                _log.warning("watch.failed", error=repr(error))
                if pause_s is None or self.closed:
                    return
                time.sleep(pause_s)
            else:
                for change in followed:
                    if self._on_change is not None:
                        self._tell(self._on_change, change)
                return

    def _tell(self, on_change: Callable[[PluginChange], object], change: PluginChange) -> None:
        try:
            on_change(change)
        except Exception as error:  # noqa: BLE001  (the application's own function)
            _hook_log.warning("hook.failed", what="on_change of a watch", error=repr(error))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
