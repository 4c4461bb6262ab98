"""A job: work on many files, with its threads, its counts, its interrupt and its failures."""

from __future__ import annotations

import threading
import time
from contextlib import closing, contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.concurrency.crew import Crew
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import DataLossError, ModularTFError
from modular_tf.filesystem.copying import CopyWatch
from modular_tf.filesystem.location import Location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_PACE_S = 0.1  # between two checks whether the work was given up


class Failure(NamedTuple):
    """What could not be done, or was left out, and why."""

    uri: str
    error: BaseException


class Unfinished(NamedTuple):
    """A file that is not whole: the target of a copy, or a new file beside it."""

    location: Location
    is_new: bool


class Totals:
    """Counts of files and bytes. [any thread]

    `known` counts the files that were found so far, done or not; `bytes` those that were accepted.
    """

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._started = time.monotonic()
        self._sized = self._sized_bytes = 0
        self._storing: dict[str, float] = {}
        self._unfinished: dict[str, Unfinished] = {}
        self.files = self.known = self.bytes = self.failed = 0

    def find(self, count: int) -> None:
        """Add files that are known now, or with a negative count take some back."""
        with self._lock:
            self.known += count

    def begin(self, length: int) -> None:
        with self._lock:
            self._sized += 1
            self._sized_bytes += length

    def add_bytes(self, count: int) -> None:
        """Add bytes that were accepted, or with a negative count take them back."""
        with self._lock:
            self.bytes += count

    def end(self) -> None:
        with self._lock:
            self.files += 1

    def store(self, uri: str) -> None:
        """Note that all bytes of a target were accepted, and it is being stored."""
        with self._lock:
            self._storing[uri] = time.monotonic()

    def leave(self, uri: str) -> None:
        """Note that nothing is under way any more for a target."""
        with self._lock:
            self._storing.pop(uri, None)

    def note_unfinished(self, target: str, file: Unfinished | None) -> None:
        """Note what remains that is not whole if the process ends now; None for nothing."""
        with self._lock:
            if file is None:
                self._unfinished.pop(target, None)
            else:
                self._unfinished[target] = file

    @property
    def storing(self) -> dict[str, float]:
        """The targets that are being stored, and since when (monotonic seconds)."""
        with self._lock:
            return dict(self._storing)

    def under_way(self) -> tuple[int, list[str], list[Unfinished]]:
        """Return at one moment how many files are done, what is being stored, what is not whole."""
        with self._lock:
            return self.files, list(self._storing), list(self._unfinished.values())

    @property
    def seconds(self) -> float:
        """Since the work began."""
        return max(time.monotonic() - self._started, 1e-6)

    def expected_bytes(self) -> int | None:
        """Return the bytes of all known files; those of unknown size count as the average."""
        with self._lock:
            if not self._sized:
                return None
            rest = max(self.known - self._sized, 0)
            return self._sized_bytes + rest * self._sized_bytes // self._sized


class Job:
    """The work of one command or call on many files. [creating thread, but where it says so]

    While it waits, the creating thread calls `while_waiting` about ten times a second. `failures`
    are what could not be done or was left out; the rest goes on.
    """

    def __init__(self, at_once: int = 1, while_waiting: Callable[[], object] | None = None) -> None:
        self.at_once = at_once
        self.totals = Totals()
        self.failures: list[Failure] = []
        if while_waiting is None and at_once > 1:  # else it waits for a second item to begin
            self._crew = Crew(at_once, while_waiting=lambda: None)
        else:
            self._crew = Crew(at_once, while_waiting=while_waiting)
        self._left_out: SimpleQueue[Failure] = SimpleQueue()
        self._feed: _Feed | None = None

    @property
    def is_working(self) -> bool:
        """Whether calls are still under way, also after an interrupt."""
        return self._crew.is_working

    def check(self) -> None:
        """Raise if the work was given up; called between two steps of a long one. [any thread]"""
        self._crew.check()

    def add(self, items: Iterable[Any]) -> None:
        """Add items, by the step of another one. [any thread]"""
        if self._feed is not None:
            self._feed.add(items)

    def leave_out(self, uri: str, reasons: Iterable[str]) -> None:
        """Note what of a directory the work leaves out: each is a failure. [any thread]"""
        for reason in reasons:
            self._left_out.put(Failure(uri, DataLossError(reason, path=uri)))

    def fail(self, uri: str, error: BaseException) -> None:
        """Add a failure; raise what is no error of a filesystem or of the system."""
        if not isinstance(error, (ModularTFError, OSError)):
            raise error
        self.failures.append(Failure(uri, error))
        self.totals.failed += 1

    def raise_first(self) -> None:
        if self.failures:
            raise self.failures[0].error

    def run(self, step: Callable[[Any], object], items: Iterable[Any]) -> None:
        """Take a step for each item, and for each that a step adds.

        Several threads take steps at once; what a step raises is a failure about the item's `uri`.
        """
        self._feed = feed = _Feed(items, self.check)

        def work(item: Any) -> None:
            try:
                step(item)
            finally:
                feed.end_one()

        with closing(self._crew.run(work, feed, in_order=False)) as outcomes:
            for outcome in outcomes:
                with suppress(Empty):
                    while True:
                        self.fail(*self._left_out.get_nowait())
                if outcome.error is not None:
                    self.fail(outcome.item.uri, outcome.error)

    @contextmanager
    def copying(self, target: Location) -> Iterator[FileWatch]:
        """Yield the watch of a copy, which is done if the body raises nothing. [any thread]"""
        watch = FileWatch(self, target)
        try:
            yield watch
            self.totals.end()
        except BaseException:
            self.totals.add_bytes(-watch.bytes)
            raise
        finally:
            self.totals.leave(target.uri)


class FileWatch(CopyWatch):
    """Counts the bytes of one file, and ends its copy when the job was given up."""

    def __init__(self, job: Job, target: Location) -> None:
        self._job = job
        self._target = target
        self._is_sized = False
        self.bytes = 0

    def begun(self, length: int | None) -> None:
        """Count the length, which a listing may have given before the file was opened."""
        if length is not None and not self._is_sized:
            self._is_sized = True
            self._job.totals.begin(length)

    def advance(self, n_bytes: int) -> None:
        """Count bytes; raise if the work was given up."""
        self.bytes += n_bytes
        self._job.totals.add_bytes(n_bytes)
        self._job.check()

    def storing(self) -> None:
        """Note since when the target is being stored; raise if the work was given up."""
        self._job.check()
        self._job.totals.store(self._target.uri)

    def unfinished(self, uri: str | None, *, is_new: bool = True) -> None:
        """Note what remains of the copy if the process ends."""
        left = None if uri is None else Unfinished(Location(self._target.filesystem, uri), is_new)
        self._job.totals.note_unfinished(self._target.uri, left)


class _Feed:
    """An iterator over items, to which the work on an item may add others. [any thread]

    What was added last comes first, so that few names of a tree are in memory.
    """

    def __init__(self, items: Iterable[Any], check: Callable[[], object]) -> None:
        self._stack = [iter(items)]
        self._check = check
        self._lock = ForkLock()
        self._changed = threading.Condition(self._lock)
        self._under_way = 0

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> Any:
        with self._lock:
            while True:
                while self._stack:
                    for item in self._stack[-1]:
                        self._under_way += 1
                        return item
                    self._stack.pop()
                if not self._under_way:
                    raise StopIteration
                self._changed.wait(_PACE_S)
                self._check()

    def add(self, items: Iterable[Any]) -> None:
        """Add items, by the work on another one."""
        with self._lock:
            self._stack.append(iter(items))
            self._changed.notify_all()

    def end_one(self) -> None:
        """Note that the work on an item has ended, and adds nothing more."""
        with self._lock:
            self._under_way -= 1
            self._changed.notify_all()
