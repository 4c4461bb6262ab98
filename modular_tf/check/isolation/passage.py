"""One process of checks, as the process that watches over it sees it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.check.catalogue import all_checks
from modular_tf.check.isolation.call_log import CallLog
from modular_tf.check.isolation.child import run
from modular_tf.check.isolation.ending import LastWords, after_check, blocked, outcome_of
from modular_tf.check.isolation.progress import FRESH_STATUS
from modular_tf.check.outcome import Outcome
from modular_tf.native.crash_report import QUESTION
from modular_tf.processes.child_pipes import ChildPipes, EntryReader, has_ended
from modular_tf.processes.descendants import end_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modular_tf.check.isolation.job import Job
    from modular_tf.check.limits import Limits

_LOOK_EVERY_S = 0.01
_STAGE_S = 60.0  # for the subject to be there, and to be taken down
_TIME_TO_ANSWER_S = 2.0  # where it is, or where it crashed
_MOST_SAID = 16384  # a sanitizer says a lot

_WHILE_LOADED = "while the plugin was loaded"
_WHILE_CLOSED = "behind the check, while the plugin was taken down"


class Passage:
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
        self._last_words = LastWords()
        self._ending = self._last_words.ending
        self._said = b""
        self._log = CallLog()
        self._give_time(self._stage_seconds())
        streams = (self._take_words, self._take_words)
        self._pipes = ChildPipes(streams, EntryReader(self._take_entry), listener)
        self._pid = self._pipes.fork(self._live)

    def _live(self, ends: Sequence[int], parent: int) -> NoReturn:
        """Be the child."""
        output, complaint, report = ends
        run(self._job, self._log, streams=(output, complaint, report), parent=parent)

    def run(self) -> int:
        """Wait for the end, end what is left, and return of how many checks all has been told.

        Raises:
            AbandonedError: Nobody waits any more; all has been ended.
        """
        try:
            while not self._is_over():
                self._pipes.listen(_LOOK_EVERY_S)
        finally:
            self._ending.status = end_all(self._pid).status
            self._pipes.read_on()
            self._pipes.close()
        self._look_back()
        return self._conclude()

    # -- the watch ------------------------------------------------------------------------------

    def _give_time(self, seconds: float) -> None:
        self._since = time.monotonic()
        self._allowed = seconds
        self._deadline = self._since + self._allowed

    def _stage_seconds(self) -> float:
        return _STAGE_S * self._limits.patience

    def _is_over(self) -> bool:
        if self._done or has_ended(self._pid):
            return True
        if time.monotonic() < self._deadline:
            return self._ending.hung is not None and self._last_words.is_traced
        if self._ending.hung is not None or self._ending.signal is not None:
            return True
        self._ending.hung = self._allowed
        self._hurry()
        os.kill(self._pid, QUESTION)  # nobody has waited for it, so the number is still its own
        return False

    def _hurry(self) -> None:
        """Set the time for its last words."""
        self._deadline = time.monotonic() + _TIME_TO_ANSWER_S

    def _take_words(self, data: bytes) -> None:
        self._said = (self._said + data)[-_MOST_SAID:]

    def _take_entry(self, entry: dict[str, Any]) -> None:
        if self._ending.hung is None:
            self._take_step(entry)
        if self._last_words.take(entry):
            self._hurry()

    def _take_step(self, entry: dict[str, Any]) -> None:
        match entry:
            case {"begins": _}:
                self._begun = True
            case {"ready": _}:
                self._ready = True
            case {"blocked": str(why)}:
                self._blocked = why
            case {"enters": str(check_id)} if check_id == self._next():
                self._entered = True
                self._give_time(self._limits.seconds_of(all_checks()[check_id]))
                self._tell(entry)
            case {"outcome": dict(value)} if self._entered:
                self._take_outcome(Outcome.from_dict(value))
            case {"closes": _}:
                self._give_time(self._stage_seconds())
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

    def _look_back(self) -> None:
        target, ending = self._job.target, self._ending
        ending.calls = self._log.calls()
        self._log.close()
        ending.said = self._said.decode("utf-8", "replace")
        self._last_words.look_back((target.path, *target.companions))

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
        """Tell whether the child itself gave up its process, between two checks."""
        left = self._ending.status == FRESH_STATUS and self._ending.exits is None
        return left and not self._entered and (self._decided > 0 or self._held is not None)

    def _outcome(self, when: str = "") -> Outcome:
        seconds = time.monotonic() - self._since
        return outcome_of(self._ending, self._job, self._next() or "", seconds, when)

    def _block(self, why: str) -> None:
        while (check_id := self._next()) is not None:
            self._decide(blocked(self._job, check_id, why))
