"""The thread that waits for changes and reports them."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from modular_tf.concurrency.threads import start_thread
from modular_tf.events import EventLog
from modular_tf.service.reload.watching.mounts import must_be_polled, read_mounts
from modular_tf.service.reload.watching.reconciler import Delays, Reconciler
from modular_tf.service.reload.watching.snapshot import take_snapshot
from modular_tf.service.reload.watching.watch_points import WatchPoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from modular_tf.service.reload.watching.change import Change
    from modular_tf.service.reload.watching.inotify_hints import InotifyHints
    from modular_tf.service.reload.watching.snapshot import Snapshot

__all__ = ["Watcher", "WatcherSettings"]

_log = EventLog("watch")

# Also with the kernel's hints: of some things, as a renamed directory further up, none tells.
_SAFETY_S = 2.0
_FIRST_LOOK_S = 5.0
# Events come in bursts; one look does for many.
_BURST_S = 0.02


@dataclass(frozen=True, slots=True)
class WatcherSettings:
    """Settings of a watcher.

    Attributes:
        polling: Look again and again instead of waiting for the kernel's hints; "auto" does so
            where those do not tell all (network file systems) or cannot be had.
        poll_interval_s: How long to wait between two looks then.
        delays: How long to wait for files to be whole.
    """

    polling: bool | str = "auto"
    poll_interval_s: float = 0.3
    delays: Delays = field(default_factory=Delays)


class Watcher:
    """Reports each change of whole plugin files. [any thread]

    Args:
        places: Returns the files and directories to watch, absolute, which may change.
        reported: What the receiver knows already.
        deliver: Called with the changes, removals first, from the watcher's own thread.
        settings: How to watch.
        when_ended: Called last, from that thread.
    """

    def __init__(
        self,
        places: Callable[[], Iterable[str]],
        reported: Snapshot,
        deliver: Callable[[list[Change]], None],
        settings: WatcherSettings,
        when_ended: Callable[[], object] = lambda: None,
    ) -> None:
        self._places = places
        self._deliver = deliver
        self._settings: Final = settings
        self._when_ended = when_ended
        self._reconciler = Reconciler(reported, settings.delays)
        # No `threading.Event`: an interrupt within its methods leaves its lock taken.
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._unfinished: dict[str, str] = {}
        self._has_looked = False
        self._ends = False
        self._hints: InotifyHints | None = None
        self._wants_hints = settings.polling is not True
        self._polls = not self._wants_hints
        self._thread = threading.Thread(target=self._run, name="modular_tf-watch", daemon=True)

    def start(self) -> None:
        """Start the thread that watches.

        Raises:
            ResourceExhaustedError: There is no thread for it.
        """
        try:
            start_thread(self._thread)
        except BaseException:
            self._ends = True  # also where it runs, and nobody would close it
            raise

    @property
    def is_polling(self) -> bool:
        """Whether it looks again and again, since the kernel would not tell all.

        Its first look decides; asked earlier, this waits for a moment.
        """
        latest = time.monotonic() + _FIRST_LOOK_S
        is_own = threading.current_thread() is self._thread
        while not (self._has_looked or is_own) and time.monotonic() < latest:
            time.sleep(_BURST_S)
        return self._polls

    @property
    def unfinished(self) -> dict[str, str]:
        """The files that are waited for until they are whole, each with the reason."""
        return dict(self._unfinished)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._ends

    def close(self, timeout_s: float | None = None) -> None:
        """Stop, after the changes that are being delivered; safe to call twice.

        Called by `deliver` itself, it returns at once.

        Args:
            timeout_s: How long to wait for that; None for as long as it takes.
        """
        self._ends = True
        self._calls.put(None)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            while not self._ends:
                wait = self._guarded_step()
                self._has_looked = True
                self._sleep(wait)
        finally:
            if self._hints is not None:
                self._hints.close()
            self._when_ended()

    def _sleep(self, seconds: float) -> None:
        """Wait for a time or a wake-up; a burst of wake-ups counts as one."""
        with suppress(Empty):
            self._calls.get(timeout=seconds)
            if not self._ends:
                time.sleep(_BURST_S)
            while True:
                self._calls.get_nowait()

    def _guarded_step(self) -> float:
        """Look once, and return how long to wait; an error does not end the watch."""
        try:
            return self._step()
        except Exception as error:  # noqa: BLE001  (the receiver may raise anything)
            _log.warning("watch.failed", error=repr(error))
            return self._settings.poll_interval_s

    def _step(self) -> float:
        places = list(self._places())
        self._choose(places)
        missed = self._follow(places)
        closed = self._hints.take_closed() if self._hints is not None else set()
        seen, now = take_snapshot(places), time.monotonic()
        # Other machines' files have the times of other clocks.
        clock_ns = None if self._polls else time.time_ns()
        changes = self._reconciler.step(seen, now, _spelled(seen, closed), clock_ns=clock_ns)
        self._tell_unfinished()
        if changes and not self._ends:
            try:
                self._deliver(changes)
            except BaseException:
                self._reconciler.take_back()
                raise
        look = self._reconciler.next_look
        # A directory that was not watched may have got a file since the snapshot.
        longest = self._settings.poll_interval_s if self._polls or missed else _SAFETY_S
        return longest if look is None else max(0.0, min(longest, look - time.monotonic()))

    def _tell_unfinished(self) -> None:
        """Log each file that is waited for, once."""
        before, self._unfinished = self._unfinished, self._reconciler.unfinished
        for path in self._unfinished.keys() - before.keys():
            _log.info("watch.waiting", path=path, reason=self._unfinished[path])

    def _choose(self, places: list[str]) -> None:
        """Decide between hints and polling."""
        if not self._wants_hints:
            return
        if self._hints is None:
            self._hints = self._start_hints()
        if self._wants_hints and self._settings.polling == "auto":
            mounts = read_mounts()
            self._polls = any(must_be_polled(place, mounts) for place in places)

    def _start_hints(self) -> InotifyHints | None:
        try:
            # An extra, and costly; only who watches needs it.
            from modular_tf.service.reload.watching.inotify_hints import InotifyHints  # noqa: PLC0415

            return InotifyHints(partial(self._calls.put, None))
        except ImportError as error:
            self._give_up_hints(f"{error}; the extra `watch` brings it")
        except (OSError, RuntimeError) as error:  # no watches or threads left
            self._give_up_hints(str(error))
        return None

    def _give_up_hints(self, reason: str) -> None:
        self._wants_hints, self._polls = False, True
        hints, self._hints = self._hints, None
        if hints is not None:
            hints.close()
        _log.warning("watch.polling", reason=reason, interval_s=self._settings.poll_interval_s)

    def _follow(self, places: list[str]) -> bool:
        """Watch the directories of these places; return whether one of them is new."""
        if self._hints is None:
            return False
        try:
            return self._hints.follow(WatchPoints(places))
        except (OSError, RuntimeError) as error:  # likewise
            self._give_up_hints(str(error))
            return False


def _spelled(seen: Snapshot, closed: set[str]) -> set[str]:
    """Return which files of a snapshot are among these, which have their real paths."""
    names = {os.path.basename(path) for path in closed}
    return {
        path
        for path in seen
        if os.path.basename(path) in names and os.path.realpath(path) in closed
    }
