"""A group of checks in a child process, as its watcher sees it."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from modular_tf.check.catalogue import all_checks
from modular_tf.check.isolation.call_log import CallLog
from modular_tf.check.isolation.child import run
from modular_tf.check.isolation.ending import Ending, after_check, blocked, outcome_of
from modular_tf.check.isolation.progress import FRESH_STATUS
from modular_tf.check.outcome import Outcome
from modular_tf.processes.watched_child import WatchedChild

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.isolation.job import Job
    from modular_tf.check.limits import Limits

_STAGE_S = 60.0  # for the subject to be there, and to be taken down
_MOST_SAID = 16384  # a sanitizer says a lot

_WHILE_LOADED = "while the plugin was loaded"
_WHILE_CLOSED = "behind the check, while the plugin was taken down"


class WatchedGroup:
    """A child process that tries checks one after the other, until it is done or one ends it.

    Args:
        job: The checks.
        limits: How long each may take.
        tell: Is given `{"enters": ID}`, `{"outcome": OUTCOME}` and `{"fault": TEXT}` as they come.
        listener: A descriptor that becomes readable when nobody waits any more.

    Raises:
        OSError: No process can be started.
    """

    def __init__(
        self, job: Job, limits: Limits, tell: Callable[[dict[str, Any]], None], listener: int
    ) -> None:
        self._job = job
        self._limits = limits
        self._tell = tell
        self._decided = 0
        self._held: Outcome | None = None  # of the last check, until the subject is taken down
        self._begun = self._ready = self._done = self._faulty = False
        self._blocked: str | None = None
        self._entered = False
        self._ending = Ending()
        self._log = CallLog()
        self._since, self._allowed = time.monotonic(), self._stage_seconds()
        self._child = WatchedChild(
            partial(run, job, self._log),
            listener,
            self._ending,
            seconds=self._allowed,
            take=self._take_step,
            most_said=_MOST_SAID,
        )

    def run(self) -> int:
        """Wait for the end, end what is left, and return of how many checks all has been told.

        Raises:
            AbandonedError: Nobody waits any more; all has been ended.
        """
        target = self._job.target
        try:
            while not self._done and not self._child.is_over():
                self._child.listen()
        finally:
            self._child.end((target.path, *target.companions))
        if self._child.is_late:
            self._ending.hung = self._allowed
        self._ending.calls = self._log.calls(self._ending.thread)
        self._log.close()
        return self._conclude()

    # -- the watch ------------------------------------------------------------------------------

    def _begin_step(self, seconds: float) -> None:
        self._since, self._allowed = time.monotonic(), seconds
        self._child.give_time(seconds)

    def _stage_seconds(self) -> float:
        return _STAGE_S * self._limits.patience

    def _take_step(self, entry: dict[str, Any]) -> None:
        if self._child.was_asked:
            return
        match entry:
            case {"begins": _}:
                self._begun = True
            case {"ready": _}:
                self._ready = True
            case {"blocked": str(why)}:
                self._blocked = why
            case {"enters": str(check_id)} if check_id == self._next():
                self._entered = True
                self._begin_step(self._limits.seconds_of(all_checks()[check_id]))
                self._tell(entry)
            case {"outcome": dict(value)} if self._entered:
                self._take_outcome(Outcome.from_dict(value))
            case {"closes": _}:
                self._begin_step(self._stage_seconds())
            case {"done": _}:
                self._done = True
            case {"fault": str(text)}:
                self._faulty = True
                self._tell({"fault": text, "check": self._next()})

    def _take_outcome(self, outcome: Outcome) -> None:
        if outcome.check_id != self._next():
            raise ValueError(f"expected an outcome of {self._next()}, found {outcome.check_id}")
        self._entered = False
        if self._decided == len(self._job.checks) - 1:
            self._held = outcome
        else:
            self._decide(outcome)

    def _next(self) -> str | None:
        checks = self._job.checks
        return checks[self._decided] if self._decided < len(checks) else None

    def _decide(self, outcome: Outcome) -> None:
        self._decided += 1
        self._tell({"outcome": outcome.as_dict()})

    # -- the end --------------------------------------------------------------------------------

    def _conclude(self) -> int:
        if self._faulty:
            return len(self._job.checks)
        if not self._begun:
            self._tell({"fault": "the process ended before it began", "check": self._next()})
            return len(self._job.checks)
        if self._blocked is not None:
            self._block(self._blocked)
        elif not self._ready:
            first = self._outcome(_WHILE_LOADED)
            self._decide(first)
            self._block(f"{first.message}: see {first.check_id}")
        elif self._held is not None:
            ended_well = self._done or self._left_for_another()
            ended = (
                self._held if ended_well else after_check(self._outcome(_WHILE_CLOSED), self._held)
            )
            self._decide(ended)
        elif not self._left_for_another():
            self._decide(self._outcome())
        return self._decided

    def _left_for_another(self) -> bool:
        """Return whether the child itself gave up its process, between two checks."""
        left = self._ending.status == FRESH_STATUS and self._ending.exits is None
        return left and not self._entered and (self._decided > 0 or self._held is not None)

    def _outcome(self, when: str = "") -> Outcome:
        seconds = time.monotonic() - self._since
        return outcome_of(self._ending, self._job, self._next() or "", seconds, when)

    def _block(self, why: str) -> None:
        while (check_id := self._next()) is not None:
            self._decide(blocked(self._job, check_id, why))
