"""Watchers, which are forked by a zygote and let a child try each group of checks.

What a plugin does to its process becomes a verdict, and the checks that are left go on in another
child. As at first contact there are three generations: a zygote that has imported everything and
runs no plugin's code; watchers, each the reaper of what its children start; and a child at a time.
The zygote's interpreter has the user's whole environment: a plugin is checked as the user runs it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.check.call_log import CallLog
from modular_tf.check.calls import once_each
from modular_tf.check.catalogue import all_checks
from modular_tf.check.child import FRESH_STATUS, MOST_CALLS, run
from modular_tf.check.job import Job, Limits, scratch_folder
from modular_tf.check.outcome import Incident, Outcome, Verdict
from modular_tf.check.session import import_sessions
from modular_tf.codec import decode, encode
from modular_tf.processes.ending import MUTE_STATUS, ChildEnding, sanitizer_report, signal_in_full
from modular_tf.processes.watched_child import WatchedChild, watch_over
from modular_tf.processes.zygote import serve_zygote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.processes.watched_child import Send

_STAGE_S = 60.0  # for the plugin to be loaded, and to be taken down
_MOST_SAID = 16384  # a sanitizer says a lot


def serve(*, limits: dict[str, Any], scratch: str, **own: Any) -> NoReturn:
    """Fork watchers over groups of checks, then end the process.

    In the directory `scratch` processes get one of their own; `own` is what `Zygotes` adds.
    """
    may = decode(Limits, limits)

    def watch(descriptor: int) -> None:
        watch_over(
            descriptor,
            lambda job, send, listener: try_job(decode(Job, job), may, scratch, send, listener),
        )

    serve_zygote(**own, warm_up=_warm_up, watch=watch)


def _warm_up() -> None:
    all_checks()
    import_sessions()


def try_job(job: Job, limits: Limits, scratch: str, send: Send, listener: int) -> None:
    """Try all checks of a job, in as many processes as that takes.

    `send` is given `{"outcome": OUTCOME}`, `{"fault": TEXT, "check": ID or None}` and
    `{"enters": ID}` as they come, and `{"finished": 1}` as the last. `listener` becomes readable
    when nobody waits any more.
    """
    left = job.checks
    while left:
        with scratch_folder(scratch) as folder:
            target = replace(job.target, scratch=folder)
            try:
                group = _WatchedGroup(
                    replace(job, target=target, checks=left), limits, send, listener
                )
            except OSError as error:
                send({"fault": f"no process can be started: {error}", "check": None})
                break
            settled = group.run()
        if group.is_faulty and (len(left), settled) == (len(job.checks), 1):
            break  # nothing came of the job before: the fault may be that of all
        left = left[settled:]
    send({"finished": 1})


class _WatchedGroup:
    """A child that tries checks one after the other, until it is done or one ends it.

    Raises `OSError` where no process can be started.
    """

    def __init__(self, job: Job, limits: Limits, send: Send, listener: int) -> None:
        self.is_faulty = False  # the kit itself failed
        self._job = job
        self._limits = limits
        self._send = send
        self._settled = 0  # of how many checks the outcome is known
        self._held: Outcome | None = None  # of the last check, until the plugin is taken down
        self._begun = self._ready = self._done = self._entered = False
        self._blocked: tuple[str, Sequence[str]] | None = None
        self._ending = ChildEnding()
        self._log = CallLog()
        self._since, self._allowed = time.monotonic(), _STAGE_S * limits.patience
        self._child = WatchedChild(
            partial(run, job, self._log),
            listener,
            self._ending,
            seconds=self._allowed,
            take=self._take,
            most_said=_MOST_SAID,
        )

    def run(self) -> int:
        """Wait for the end, end what is left, and return how many checks are settled.

        Raises `AbandonedError` where nobody waits any more.
        """
        target = self._job.target
        try:
            while not self._done and not self._child.is_over():
                self._child.listen()
        finally:
            self._child.end((target.path, *target.companions))
        self._conclude(self._log.calls(self._ending.thread))
        self._log.close()
        return self._settled

    def _begin_step(self, seconds: float) -> None:
        self._since, self._allowed = time.monotonic(), seconds
        self._child.give_time(seconds)

    def _take(self, entry: dict[str, Any]) -> None:
        if self._child.was_asked:
            return
        match entry:
            case {"begins": _}:
                self._begun = True
            case {"ready": _}:
                self._ready = True
            case {"blocked": str(why), "see": list(see)}:
                self._blocked = why, see
            case {"enters": str(check_id)} if [check_id] == self._left()[:1]:
                self._entered = True
                self._begin_step(self._limits.seconds_of(all_checks()[check_id]))
                self._send(entry)
            case {"outcome": dict(value)} if self._entered:
                outcome = decode(Outcome, value)
                if outcome.check_id != self._left()[0]:
                    raise ValueError(f"expected an outcome of {self._left()[0]}, found {value!r}")
                self._entered = False
                if len(self._left()) == 1:
                    self._held = outcome
                else:
                    self._settle(outcome)
            case {"closes": _}:
                self._begin_step(_STAGE_S * self._limits.patience)
            case {"harm": dict(value)} if self._held is not None:
                harmed = decode(Outcome, value)
                if harmed.check_id != self._held.check_id:
                    raise ValueError(f"expected harm by {self._held.check_id}, found {value!r}")
                self._held = harmed
            case {"done": _}:
                self._done = True
            case {"fault": str(text)}:
                self._fail(text)

    def _left(self) -> list[str]:
        return [*self._job.checks[self._settled :]]

    def _settle(self, outcome: Outcome) -> None:
        self._settled += 1
        if outcome.lost_call is not None:
            self._job.target.lost_calls.setdefault(outcome.lost_call, outcome.check_id)
        self._send({"outcome": encode(outcome)})

    def _fail(self, text: str) -> None:
        self.is_faulty = True
        self._send({"fault": text, "check": next(iter(self._left()), None)})

    def _conclude(self, calls: tuple[str, ...]) -> None:
        """Settle what the end of the process decides."""
        # It gave up its process by itself, between two checks.
        is_left = self._ending.status == FRESH_STATUS and self._ending.exits is None
        is_left = is_left and not self._entered and (self._settled > 0 or self._held is not None)
        if not self._begun and not self.is_faulty:
            self._fail("the process ended before it began")
        if self.is_faulty:
            self._settled += 1
        elif self._blocked is not None:
            self._block(*self._blocked)
        elif not self._ready:
            first = self._ended(calls, "while the plugin was loaded")
            self._settle(first)
            self._block(first.message, (first.check_id,))
        elif self._held is not None:
            held, outcome = self._held, self._held
            if not (self._done or is_left):
                outcome = self._ended(calls, "behind the check, while the plugin was taken down")
                if held.verdict is not Verdict.PASSED:
                    message = f"{outcome.message}; before that: {held.message}"
                    outcome = replace(
                        outcome, message=message, expected=held.expected, found=held.found,
                        see=held.see, wants_root=held.wants_root,
                    )  # fmt: skip
            self._settle(outcome)
        elif not is_left:
            self._settle(self._ended(calls))

    def _block(self, why: str, see: Sequence[str]) -> None:
        for check_id in self._left():
            self._settle(self._job.outcome(check_id, Verdict.BLOCKED, why, see=tuple(see)))

    def _ended(self, calls: tuple[str, ...], when: str = "") -> Outcome:
        """Return the outcome of the check that was under way; `when` is what else was."""
        ending, hung = self._ending, self._allowed if self._child.is_late else None
        verdict, message = _verdict_of(ending, hung)
        return self._job.outcome(
            self._left()[0],
            verdict,
            f"{message} {when}".rstrip(),
            calls=tuple(once_each(calls)[-MOST_CALLS:]),
            seconds=time.monotonic() - self._since,
            incident=Incident(
                signal=ending.fatal_signal if verdict is Verdict.CRASHED else None,
                exit_status=ending.exit_status if verdict is Verdict.EXITED else None,
                last_call=calls[-1] if calls else None,
                backtrace=ending.backtrace,
                last_output=ending.last_output,
            ),
        )


def _verdict_of(ending: ChildEnding, hung: float | None) -> tuple[Verdict, str]:
    """Return what the end of a process says of a plugin, which had `hung` seconds if it hung."""
    if ending.stopped_by is not None:
        return Verdict.HUNG, f"the plugin was stopped by {signal_in_full(ending.stopped_by)}"
    if hung is not None:
        return Verdict.HUNG, f"the plugin did not come back within {hung:g} s"
    if ending.status == MUTE_STATUS and ending.exits is None:
        return Verdict.FAILED, "the plugin closed a descriptor that it had not opened"
    report = sanitizer_report(ending.last_output)
    reported = "" if report is None else f": {report}"
    if ending.exits is None and ending.fatal_signal is not None:
        return Verdict.CRASHED, f"the process {ending.in_words()}{reported}"
    return Verdict.EXITED, f"the plugin {ending.in_words()}{reported}"
