"""Watching plugin files by polling: each change is the difference between two snapshots.

None of the files' code runs here. A file is reported when it has settled and is whole.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, repeat
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.concurrency.threads import start_thread
from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.file_identity import ELF_MAGIC, FileIdentity
from modular_tf.discovery.sources.installed import UNPACKED_SUFFIX
from modular_tf.discovery.sources.search_log import is_plugin_file_name
from modular_tf.errors import ClosedError, ElfError, ResourceExhaustedError
from modular_tf.events import EventLog
from modular_tf.rules import loading as rules
from modular_tf.rules.shortage import raise_shortage
from modular_tf.service.report import ChangeKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from typing_extensions import Self

    from modular_tf.service.report import PluginChange

__all__ = [
    "Change",
    "Delays",
    "Poller",
    "Reconciler",
    "Snapshot",
    "Watch",
    "take_snapshot",
    "why_incomplete",
]

_log = EventLog("watch")
_hook_log = EventLog("hooks")

_SECOND_NS = 1_000_000_000
# Where times are kept to one or two seconds (FAT, ext3), later changes may bear the same time.
_COARSE_CLOCK_S = 2.1

# Most changes take a fraction of it; longer are those whose plugin hangs while it is tried.
_SOON_S = 0.5
_MOST_AT_ONCE = 4
_PAUSES_S = (0.5, 2.0)  # between attempts to follow a change
_MOST_TRIES = 3  # beside those that meet a shortage, which may last

Snapshot = dict[str, FileIdentity]
"""Identity by path of every file that counts as a candidate."""


class Change(NamedTuple):
    """One change of one file, which is whole if it is there."""

    path: str  # absolute, links kept, as a search of the directory spells it
    kind: ChangeKind  # what happened since the last change of this path
    identity: FileIdentity | None = None  # of the file that was found whole; None for a removed one


class Delays(NamedTuple):
    """How long to wait before a change is reported."""

    settled_s: float = 0.4  # a file that did not change for so long may be whole
    # a file that is not whole is reported if it did not change for so long: it is probably not
    # being written any more
    unfinished_s: float = 10.0


def take_snapshot(places: Iterable[str]) -> Snapshot:
    """Return the files in places; what is missing or unreadable is left out. [any thread]

    Places are absolute paths. A file counts whatever it is called, in a directory those with a
    plugin's name. Raises ShortageError if a directory cannot be read now.
    """
    found = ((path, FileIdentity.at(path)) for place in places for path in _files(place))
    return {path: identity for path, identity in found if identity is not None}


def _files(place: str) -> Iterator[str]:
    """Yield a directory's candidates, with those of unpacked wheels, or the place itself."""
    try:
        names = os.listdir(place)
    except NotADirectoryError:
        yield place
    except (OSError, ValueError) as error:
        raise_shortage(error)
        return
    else:
        for name in names:
            if is_plugin_file_name(name):
                yield os.path.join(place, name)
            elif name.endswith(UNPACKED_SUFFIX):
                for parent, _, files in os.walk(os.path.join(place, name), onerror=raise_shortage):
                    yield from (os.path.join(parent, it) for it in files if is_plugin_file_name(it))


def why_incomplete(path: str) -> str | None:
    """Return why a file seems incomplete; None if it does not. [any thread]

    Cut off libraries, files that begin like one or with nothing, and those with room for what is
    not there yet. What is no library at all is not waited for.
    """
    try:
        with ElfFile(path) as elf:
            return None if elf.image.has_whole_section_table() else "its section table is empty"
    except ElfError as error:
        if error.rule == rules.WHOLE_ELF:
            return error.message
        if error.rule != rules.IS_ELF:
            return None
    try:
        with open(path, "rb") as stream:
            first = stream.read(len(ELF_MAGIC))
    except OSError:
        return None
    if ELF_MAGIC.startswith(first) or not any(first):
        return "nothing of its first bytes is there"
    return None


@dataclass(slots=True)
class _Unreported:
    """A path whose identity differs from the reported one; None for a file that is gone."""

    identity: FileIdentity | None
    since: float
    unfinished: str | None = None  # why it does not seem whole


class Reconciler:
    """Finds the changes between what was reported and what is there. One thread at a time.

    Each step compares the present snapshot with what was reported last, so no change is lost or
    reported twice. At the start, `reported` is what the receiver of the changes knows. Times are
    those of a steady clock, in seconds.
    """

    def __init__(self, reported: Snapshot, delays: Delays) -> None:
        self._reported = dict(reported)
        self._delays = delays
        self._unreported: dict[str, _Unreported] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether a change is not reported yet."""
        return bool(self._unreported)

    @property
    def unfinished(self) -> dict[str, str]:
        """The files that have settled but are not whole, each with the reason."""
        waiting = self._unreported.items()
        return {path: change.unfinished for path, change in waiting if change.unfinished}

    def step(self, seen: Snapshot, now: float) -> list[Change]:
        """Return the changes that are due, removals first: again until they are confirmed.

        `seen` is the snapshot that was taken at the time `now`.
        """
        for path in {**self._reported, **seen, **self._unreported}:
            identity = seen.get(path)
            if identity == self._reported.get(path):
                self._unreported.pop(path, None)
                continue
            waiting = self._unreported.get(path)
            if waiting is None or waiting.identity != identity:
                self._unreported[path] = _Unreported(identity, now)
        changes = [
            self._change(path, waiting.identity)
            for path, waiting in self._unreported.items()
            if self._is_due(path, waiting, now)
        ]
        return sorted(changes, key=lambda change: change.kind is not ChangeKind.REMOVED)

    def confirm(self, changes: Iterable[Change]) -> None:
        """Count changes of the last step as reported."""
        for path, _, identity in changes:
            del self._unreported[path]
            if identity is None:
                del self._reported[path]
            else:
                self._reported[path] = identity

    def _is_due(self, path: str, waiting: _Unreported, now: float) -> bool:
        age, identity = now - waiting.since, waiting.identity
        is_coarse = identity is not None and identity.ctime_ns % _SECOND_NS == 0
        if age < max(self._delays.settled_s, _COARSE_CLOCK_S if is_coarse else 0.0):
            return False
        if identity is None or age >= self._delays.unfinished_s:
            return True
        waiting.unfinished = why_incomplete(path)
        return waiting.unfinished is None

    def _change(self, path: str, identity: FileIdentity | None) -> Change:
        if identity is None:
            return Change(path, ChangeKind.REMOVED)
        is_known = path in self._reported
        return Change(path, ChangeKind.REPLACED if is_known else ChangeKind.APPEARED, identity)


class Poller:
    """A thread that reports each change of whole plugin files. [any thread]

    `places` returns the files and directories to watch, absolute, which may change; `reported` is
    what the receiver knows already. `deliver` is called with changes, removals first, from the
    thread; what it raises is logged, and the changes come again. `when_ended` is called last.
    """

    def __init__(
        self,
        places: Callable[[], Iterable[str]],
        reported: Snapshot,
        deliver: Callable[[list[Change]], None],
        interval_s: float,
        delays: Delays = Delays(),  # noqa: B008  (immutable)
        when_ended: Callable[[], object] = lambda: None,
    ) -> None:
        self._places = places
        self._deliver = deliver
        self._interval_s = interval_s
        self._settled_s = delays.settled_s
        self._when_ended = when_ended
        self._reconciler = Reconciler(reported, delays)
        # No `threading.Event`: an interrupt within its methods leaves its lock taken.
        self._end: SimpleQueue[None] = SimpleQueue()
        self.unfinished: dict[str, str] = {}
        self.closed = False
        self._thread = threading.Thread(target=self._run, name="modular_tf-watch", daemon=True)

    def start(self) -> None:
        """Start the thread; ResourceExhaustedError if there is none for it."""
        try:
            start_thread(self._thread)
        except BaseException:
            self.closed = True  # also where it runs, and nobody would close it
            raise

    def close(self, timeout_s: float | None = None) -> None:
        """Stop, after the changes that are being delivered; safe to call twice.

        It waits for that for `timeout_s`, None for as long as it takes. Called by `deliver` itself,
        it returns at once.
        """
        self.closed = True
        self._end.put(None)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            while not self.closed:
                try:
                    self._step()
                except Exception as error:  # noqa: BLE001  (the receiver may raise anything)
                    _log.warning("watch.failed", error=repr(error))
                pause_s = self._interval_s
                if self._reconciler.is_waiting:
                    pause_s = min(pause_s, self._settled_s)
                with suppress(Empty):
                    self._end.get(timeout=pause_s)
        finally:
            self._when_ended()

    def _step(self) -> None:
        seen = take_snapshot(self._places())
        changes = self._reconciler.step(seen, time.monotonic())
        before, self.unfinished = self.unfinished, self._reconciler.unfinished
        for path in self.unfinished.keys() - before.keys():
            _log.info("watch.waiting", path=path, reason=self.unfinished[path])
        if changes and not self.closed:
            self._deliver(changes)
            self._reconciler.confirm(changes)


class Watch:
    """Follows plugin files in threads of its own until it is closed. [any thread]

    A context manager. It ends with its service; in a forked child it is closed.

    Args:
        places: Returns the files and directories that plugins come from.
        known: The files of plugins as they were when they were last read.
        follow: Follows changes.
        interval_s: How long to wait between two polls.
        on_change: Called after each change, from a thread of the watch's; what it raises is logged.
        when_ended: Called with this, when nothing more is noticed.
    """

    def __init__(
        self,
        places: Callable[[], Iterable[str]],
        known: Snapshot,
        follow: Callable[[Sequence[Change]], list[PluginChange]],
        interval_s: float,
        *,
        on_change: Callable[[PluginChange], object] | None,
        when_ended: Callable[[Watch], object],
    ) -> None:
        self._follow = follow
        self._on_change = on_change
        self._process = os.getpid()
        self._workers: list[threading.Thread] = []
        self._poller = Poller(
            places, known, self._take, interval_s, when_ended=lambda: when_ended(self)
        )

    def start(self) -> None:
        """Begin to follow."""
        self._poller.start()

    @property
    def unfinished(self) -> dict[str, str]:
        """The files that are waited for until they are whole, by path, each with the reason.

        They become plugins as soon as they are whole, or when nobody has written to them for ten
        seconds.
        """
        return dict(self._poller.unfinished)

    @property
    def closed(self) -> bool:
        """Whether it has ended, or belongs to a parent process."""
        return self._poller.closed or os.getpid() != self._process

    def close(self, timeout_s: float | None = None) -> None:
        """End it, after the change that is being followed; safe to call twice.

        A plugin that is still being tried after a moment is not waited for, and not loaded. Called
        from `on_change`, this returns at once.

        Args:
            timeout_s: How long to wait for that change; None for as long as it takes.
        """
        if os.getpid() != self._process:
            return
        if threading.current_thread() in self._workers:
            timeout_s = 0.0
        self._poller.close(timeout_s)

    def _take(self, changes: list[Change]) -> None:
        """Follow changes in a thread of their own: what takes long must not stop the next."""
        worker = threading.Thread(
            target=self._deal_with, args=(changes,), name="modular_tf-change", daemon=True
        )
        self._workers = [*(other for other in self._workers if other.is_alive()), worker]
        start_thread(worker)  # where that fails, the poller brings the changes again
        worker.join(_SOON_S)
        while sum(other.is_alive() for other in self._workers) >= _MOST_AT_ONCE:
            worker.join(_SOON_S)
            if self.closed:
                return

    def _deal_with(self, changes: list[Change]) -> None:
        tries_left = _MOST_TRIES
        for pause_s in chain(_PAUSES_S, repeat(_PAUSES_S[-1])):
            try:
                followed = self._follow(changes)
            except ClosedError:  # the service is, and ends this watch as well
                return
            except Exception as error:  # noqa: BLE001  (the next try may do)
                _log.warning("watch.failed", error=repr(error))
                tries_left -= not isinstance(error, ResourceExhaustedError)
                if not tries_left or self.closed:
                    return
                time.sleep(pause_s)
            else:
                break
        if self._on_change is None:
            return
        for change in followed:
            try:
                self._on_change(change)
            except Exception as error:  # noqa: BLE001  (the application's own function)
                _hook_log.warning("hook.failed", what="on_change of a watch", error=repr(error))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
