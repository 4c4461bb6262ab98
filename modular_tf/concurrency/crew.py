"""Calls that a few threads make at once, while the calling thread waits and can be interrupted."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import CancelledError, FailedPreconditionError, ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_GRACE_S = 0.5  # for calls that are under way when the rest is given up
_AHEAD = 4  # calls per thread whose outcomes were not taken, so that few are in memory
_PACE_S = 0.1  # between two calls of what the waiting thread does
_CHECK_EVERY_S = 1.0  # between two checks whether any thread is left to wait for


@dataclass(frozen=True, slots=True)
class Outcome(Generic[_Item, _Result]):
    """What came of the call for one item: a result, or an error."""

    item: _Item
    result: _Result | None
    error: BaseException | None = None

    def get(self) -> _Result:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]


class Crew:
    """A few threads that call a function for many items. [creating thread]

    The threads exist while `run` is iterated. An interrupt, or an iteration that is left, stops the
    crew: no further item is begun, calls under way are waited for half a second and then left to
    end by themselves. A function that works for long asks `check` between its steps.

    Interrupt: the iterating thread shares no lock with the others; what it waits for comes by
    queues, whose methods are calls of C. A `threading.Condition` has lines in Python, between which
    an interrupt would leave its lock taken, and every thread of the crew waiting for it.

    Fork: the threads stay in the parent. The child may not go on with the iteration.

    `at_once` is the most calls under way; with 1, the caller's own thread makes them. The iterating
    thread calls `while_waiting` about ten times a second; the calls are then made by other threads
    even with one at a time, so that an interrupt need not wait for them. `ahead` is how many calls
    per thread may be under way or have outcomes that were not taken yet.
    """

    def __init__(
        self,
        at_once: int,
        while_waiting: Callable[[], object] | None = None,
        ahead: int = _AHEAD,
    ) -> None:
        self._at_once = at_once
        self._most_waiting = at_once * ahead
        self._while_waiting = while_waiting
        # Not empty once the crew was stopped. Its work refers to these lists, not to the crew: they
        # would keep each other, and the memory that the calls fill, until the collector comes.
        self._stops: list[bool] = []
        self._began: list[threading.Thread] = []

    @property
    def is_working(self) -> bool:
        """Whether calls are still under way, also after the crew was stopped."""
        return any(thread.is_alive() for thread in self._began)

    def wait(self) -> None:
        """Wait until no call is under way, however long that takes, when `run` was left.

        For calls that use memory of others. What is raised meanwhile is raised at the end.
        """
        raised: BaseException | None = None
        for thread in list(self._began):
            while thread.is_alive():
                try:
                    thread.join()
                except BaseException as error:  # noqa: BLE001  (raised below)
                    raised = error
        if raised is not None:
            raise raised

    def check(self) -> None:
        """Raise CancelledError if the crew was stopped. [any thread]"""
        if self._stops:
            raise CancelledError("the rest was given up")

    def run(
        self,
        function: Callable[[_Item], _Result],
        items: Iterable[_Item],
        *,
        in_order: bool = True,
        meanwhile: Callable[[], object] | None = None,
    ) -> Generator[Outcome[_Item, _Result]]:
        """Yield the outcome of each item, in the order of the items.

        Items are taken as threads become free, so they may come from a listing that goes on, and
        `items` is iterated by one thread at a time; what their iterator raises is raised here,
        after the outcomes of the items before. Where no thread can be had, the caller's makes the
        calls. With `in_order` false the outcomes come as the calls end: one that takes long holds
        up nobody else. `meanwhile` is called once by the iterating thread, when other threads have
        begun.

        Raises CancelledError if the crew was stopped, whose calls may be under way still;
        FailedPreconditionError in a child that was forked meanwhile; ResourceExhaustedError where
        there was no memory for what a call returned.
        """
        self.check()
        feed = iter(items)
        is_aside = self._while_waiting is not None
        first = list(islice(feed, 2)) if self._at_once > 1 and not is_aside else []
        self._began = []
        work = _Work(function, chain(first, feed), self._stops, self._began, in_order=in_order)
        try:
            if len(first) > 1 or is_aside:
                work.start(self._at_once, self._most_waiting)
                if meanwhile is not None:
                    meanwhile()
            yield from work.outcomes(self._while_waiting)
        finally:
            self._stops.append(True)  # before any other call, in which an interrupt may come
            work.leave()
        self._stops.clear()


class _Work(Generic[_Item, _Result]):
    """The items of one run and their outcomes."""

    def __init__(
        self,
        function: Callable[[_Item], _Result],
        items: Iterator[_Item],
        stops: list[bool],
        began: list[threading.Thread],
        *,
        in_order: bool,
    ) -> None:
        self._function = function
        self._items = items
        self._stops = stops
        # Each thread lists itself: an interrupt of its start does not lose it.
        self._began = began
        self._has_threads = False
        self._in_order = in_order
        self._process = os.getpid()
        self._taking = ForkLock()
        # One entry for each call that may be begun, and for each outcome; None says to read again.
        self._turns: SimpleQueue[None] = SimpleQueue()
        self._ended: SimpleQueue[tuple[int, Outcome[_Item, _Result]] | None] = SimpleQueue()
        self._begun = 0
        self._end: int | None = None
        self._failure: BaseException | None = None
        self._shortage: BaseException | None = None

    def start(self, count: int, turns: int) -> None:
        """Start threads, as many as can be had, for so many calls before an outcome is taken."""
        for _ in range(turns):
            self._turns.put(None)
        for number in range(count):
            thread = threading.Thread(
                target=self._make_calls, name=f"modular_tf-call-{number}", daemon=True
            )
            try:
                start_thread(thread)
            except ResourceExhaustedError:
                return
            self._has_threads = True

    def leave(self) -> None:
        """Wait for the calls under way, but not for long."""
        began = list(self._began)  # a thread that begins later sees that the crew was stopped
        for _ in began:
            self._turns.put(None)
        end = time.monotonic() + _GRACE_S
        for thread in began:
            thread.join(max(0.0, end - time.monotonic()))

    def outcomes(
        self, while_waiting: Callable[[], object] | None
    ) -> Iterator[Outcome[_Item, _Result]]:
        """Yield the outcomes."""
        arrived: dict[int, Outcome[_Item, _Result]] = {}
        yielded = 0
        while yielded != self._end:
            if not self._has_threads:
                self._make_one_call()
            if (ended := self._next(while_waiting)) is not None:
                number, outcome = ended
                arrived[number if self._in_order else yielded] = outcome
            while yielded in arrived:
                yield arrived.pop(yielded)
                yielded += 1
                self._turns.put(None)
        if self._failure is not None:
            raise self._failure

    def _next(
        self, while_waiting: Callable[[], object] | None
    ) -> tuple[int, Outcome[_Item, _Result]] | None:
        """Wait for the next outcome; None where the end may have come."""
        while True:
            try:
                return self._ended.get(timeout=_CHECK_EVERY_S if while_waiting is None else _PACE_S)
            except Empty:
                if while_waiting is not None:
                    while_waiting()
            if self._process != os.getpid():
                raise FailedPreconditionError(
                    "the process was forked while it made calls at once, whose threads stayed in"
                    " the parent; leave the loop over their results in the child, and begin it"
                    " anew there"
                )
            if self._shortage is not None:
                raise ResourceExhaustedError(
                    f"a thread that made calls ended early: {self._shortage!r}; make fewer at once"
                ) from self._shortage

    def _make_calls(self) -> None:
        """Make calls, each when there is a turn for it. [threads of the crew]"""
        self._began.append(threading.current_thread())
        try:
            while not self._stops:
                # What stops the crew may be interrupted before it wakes its threads.
                with suppress(Empty):
                    self._turns.get(timeout=_CHECK_EVERY_S)
                    if self._stops or not self._make_one_call():
                        return
        except BaseException as error:  # noqa: BLE001  (raised by the thread that waits for it)
            self._shortage = error

    def _make_one_call(self) -> bool:
        """Take an item and call the function; return whether there was one."""
        taken = self._take()
        if taken is None:
            self._ended.put(None)
            return False
        number, item = taken
        try:
            outcome = Outcome(item, self._function(item))
        except BaseException as error:  # noqa: BLE001  (raised again by what takes the outcome)
            outcome = Outcome(item, None, error)
        self._ended.put((number, outcome))
        return True

    def _take(self) -> tuple[int, _Item] | None:
        with self._taking:
            if self._end is not None:
                return None
            try:
                item = next(self._items)
            except BaseException as error:  # noqa: BLE001  (raised again by `outcomes`)
                self._failure = None if isinstance(error, StopIteration) else error
                self._end = self._begun
                return None
            self._begun += 1
            return self._begun - 1, item


def results_at_once(
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    at_once: int,
) -> list[_Result]:
    """Return the results of a function for each item, computed by a crew; raise the first error."""
    return [outcome.get() for outcome in Crew(at_once).run(function, items)]
