"""A whole run: from the plugins that a user names to the report on them."""

from __future__ import annotations

import os
import time
from collections import deque
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from modular_tf.check.calls import listen
from modular_tf.check.catalogue import all_checks
from modular_tf.check.child import taken_down, tried
from modular_tf.check.expectation import Blocked
from modular_tf.check.job import Job, Limits, scratch_folder
from modular_tf.check.memory_watch import Breach
from modular_tf.check.native.checking_allocator import preload_environment
from modular_tf.check.outcome import Incident, Outcome, Verdict
from modular_tf.check.plan import plan_of, repeated_by, target_of, wanted_schemes
from modular_tf.check.report.native_frames import with_named_frames
from modular_tf.check.report.report import PluginReport, Report
from modular_tf.check.report.wording import with_all_references, with_references
from modular_tf.check.sequences import GROUP, performer_of, session_of_group
from modular_tf.codec import decode, encode
from modular_tf.discovery.linking.host_exports import host_exports
from modular_tf.discovery.probe import Prober
from modular_tf.errors import ConfigError, ModularTFError
from modular_tf.first_contact.finding import Offer
from modular_tf.native.preloading import preload
from modular_tf.native.sanitizers import sanitizer_environment
from modular_tf.processes.interpreter import command_like_here
from modular_tf.processes.zygote_process import Lanes, Zygotes

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from typing_extensions import Self

    from modular_tf.check.check import Check
    from modular_tf.check.plan import PluginPlan
    from modular_tf.check.sequences import Replay
    from modular_tf.check.settings import CheckSettings
    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.probe import Probe
    from modular_tf.processes.zygote_process import Lane

    OnOutcome = Callable[[Outcome], object]

_WATCHER = "modular_tf.check.watcher"
_MOST_HANGS = 2


@dataclass(frozen=True, slots=True)
class CheckRun:
    """The results of a plan.

    Attributes:
        outcomes: In the order of the plan.
        faults: How the kit itself failed, which left checks of a process without an outcome.
        absent_stores: A sentence on each store that nobody named and whose checks were stopped.
    """

    outcomes: tuple[Outcome, ...]
    faults: tuple[CheckFaultError, ...] = ()
    absent_stores: tuple[str, ...] = ()


class InterruptedRun(KeyboardInterrupt):
    """The user ended the run; no process of it is left.

    Attributes:
        run: What was known by then; the outcomes in the order in which they became known.
    """

    def __init__(self, run: CheckRun) -> None:
        super().__init__()
        self.run = run


class CheckFaultError(RuntimeError):
    """A check, or the kit, failed by itself, so nothing can be said of the plugin.

    Attributes:
        check_id: The check, None where it was none.
        subject: What it was tried on.
        text: What happened, mostly a traceback.
    """

    def __init__(self, check_id: str | None, subject: str, text: str) -> None:
        super().__init__(f"check {check_id or 'of none'} on {subject or 'the library'}: {text}")
        self.check_id = check_id
        self.subject = subject
        self.text = text


# -- plugins ---------------------------------------------------------------------------------------


def check_plugins(
    candidates: Sequence[Candidate],
    settings: CheckSettings,
    *,
    seed: int,
    limits: Limits,
    on_outcome: Callable[[PluginPlan, Outcome], None] | None = None,
    announce: Callable[[str], None] | None = None,
) -> Report:
    """Check libraries, one after the other, and return the results.

    Where the user interrupts the run, these are the ones that were known by then. `on_outcome` is
    called with each outcome as soon as it is known, as the settings see it. This process maps no
    library, unless `announce` is given: then all is tried in it, as for a debugger, and `announce`
    is called with each call before the call is made. Raises `ConfigError` if a name in the settings
    matches no check, and `OSError` if no process can be started.
    """
    begun = time.monotonic()
    reports: list[PluginReport] = []
    with Prober(host_exports()) as prober:
        for candidate in candidates:
            try:
                plan = plan_of(prober.probe(candidate), settings, seed=seed)
                reports.append(_checked(plan, settings, limits, on_outcome, announce))
            except InterruptedRun as interrupted:
                seconds = time.monotonic() - begun
                reports.append(_report(plan, settings, limits, interrupted.run, seconds))
                return Report(tuple(reports), seconds, interrupted=True)
            except KeyboardInterrupt:  # before the checks of this one
                return Report(tuple(reports), time.monotonic() - begun, interrupted=True)
    return Report(tuple(reports), time.monotonic() - begun)


def _checked(
    plan: PluginPlan,
    settings: CheckSettings,
    limits: Limits,
    on_outcome: Callable[[PluginPlan, Outcome], None] | None,
    announce: Callable[[str], None] | None,
) -> PluginReport:
    begun = time.monotonic()

    def heard(outcome: Outcome) -> None:
        if on_outcome is not None:
            on_outcome(plan, settings.excused(outcome))

    if announce is None:
        run = run_checks(plan.jobs, limits, heard)
    else:
        run = CheckRun(tuple(tried_here(plan.jobs, announce, heard)))
    try:
        return _report(plan, settings, limits, run, time.monotonic() - begun)
    except KeyboardInterrupt:  # while frames are named, which may take long
        raise InterruptedRun(run) from None


def _report(
    plan: PluginPlan, settings: CheckSettings, limits: Limits, run: CheckRun, seconds: float
) -> PluginReport:
    files = {plan.path, *(file for job in plan.jobs for file in job.target.companions)}
    seen = with_references(with_named_frames(run.outcomes, files))
    found = [settings.excused(outcome) for outcome in seen]
    patience = ("--patience", f"{limits.patience:g}")
    return PluginReport(
        path=plan.path,
        name=plan.name,
        kinds=plan.kinds,
        profile=settings.profile.name,
        level=settings.level,
        seed=plan.seed,
        outcomes=tuple(found),
        outdated=tuple(settings.outdated(found)),
        remarks=(*run.absent_stores, *_remarks(plan, found, settings)),
        seconds=seconds,
        root=settings.root,
        repeated_by=(
            *repeated_by(settings, plan.seed),
            *(() if limits.patience == Limits().patience else patience),
        ),
        faults=tuple(map(str, run.faults)),
        unanswered=plan.number_of_checks - len(found) + plan.unresolved,
        only=settings.only,
    )


def _remarks(
    plan: PluginPlan, outcomes: Sequence[Outcome], settings: CheckSettings
) -> Iterator[str]:
    """Yield why less could be checked than the plugin has."""
    if not plan.kinds:
        yield "exports no entry point of a plugin, so only the file itself was looked at"
    if plan.lacks is not None:
        yield plan.lacks
    for known in settings.known:
        subjects = {one.subject for one in outcomes if one.check_id == known.check_id}
        if subjects and known.subject is not None and known.subject not in subjects:
            tried_on = " and ".join(sorted(subjects))
            yield f"the known {known.check_id} is of {known.subject!r}, and was tried on {tried_on}"
    if plan.finding is None:
        return
    offer = plan.finding.offer or Offer()
    if plan.finding.incident is not None:
        yield f"what it registers is not known: {plan.finding.incident.violation.message}"
    elif not (offer.schemes or offer.kernels or offer.platform):
        yield "registers nothing that could be tried"
    elif plan.unresolved:
        served, wanted = (
            " and ".join(repr(scheme) for scheme in schemes) or "none"
            for schemes in (offer.schemes, wanted_schemes(settings) or ())
        )
        yield f"serves the schemes {served}, and of those that are asked for none: {wanted}"
    for subject in dict.fromkeys(one.subject for one in outcomes if one.subject):
        of_it = [one for one in outcomes if one.subject == subject]
        if all(one.verdict is Verdict.SKIPPED for one in of_it):
            yield f"nothing of {subject} could be tried: {of_it[0].message}"
    for note in plan.finding.notes:
        rule = "" if note.rule is None else f"{note.rule}: "
        yield f"as a host sees it: {rule}{note.message}"


# -- in this process -------------------------------------------------------------------------------


def tried_here(
    jobs: Iterable[Job],
    announce: Callable[[str], None],
    on_outcome: OnOutcome | None = None,
    checks: Mapping[str, Check] | None = None,
) -> list[Outcome]:
    """Try the checks of jobs in this very process, which a plugin may end.

    `announce` is called with each call before it is made. `checks` are those that the ids name,
    where it is not the catalogue. Raises `InterruptedRun` if the user ended the run.
    """
    outcomes: list[Outcome] = []
    checks = all_checks() if checks is None else checks

    def found(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if on_outcome is not None:
            on_outcome(outcome)

    listen(announce)
    try:
        for job in jobs:
            first = checks[job.checks[0]]
            with scratch_folder() as folder:
                try:
                    session = session_of_group(replace(job.target, scratch=folder), first.group)
                except (Blocked, ModularTFError) as error:
                    see = Blocked.by(error).see
                    for check_id in job.checks:
                        found(job.outcome(check_id, Verdict.BLOCKED, str(error), see=see))
                    continue
                try:
                    for check_id in job.checks:
                        reached = job.target.reached
                        found(
                            tried(checks[check_id], session, subject=job.subject, reached=reached)
                        )
                except BaseException:
                    with suppress(Breach):  # what ended the checks is told
                        session.close()
                    raise
                last, outcomes[-1] = outcomes[-1], taken_down(session, outcomes[-1])
                if outcomes[-1] is not last and on_outcome is not None:
                    on_outcome(outcomes[-1])
    except KeyboardInterrupt:
        raise InterruptedRun(CheckRun(tuple(outcomes))) from None
    finally:
        listen()
    return outcomes


def replayed(
    found: Replay, probe: Probe, settings: CheckSettings, announce: Callable[[str], None]
) -> Outcome:
    """Perform the program that a report has named once more, in this very process.

    Raises `ConfigError` where no check has found such a program.
    """
    check = all_checks().get(found.check_id)
    if check is None or check.group != GROUP or found.reached not in check.ways:
        raise ConfigError(f"--replay: no check {found.check_id} tries random sequences in that way")
    performer = performer_of(check.kind)
    target = target_of(
        probe, settings, check.kind, found.reached, scheme=found.scheme, ordinal=found.ordinal
    )
    of_program = replace(
        check, group="replay", run=lambda workspace: performer.perform(workspace, found.program)
    )
    job = Job(target, "", (check.id,))
    (outcome,) = tried_here([job], announce, checks={check.id: of_program})
    return with_all_references(outcome)


# -- in processes of their own ---------------------------------------------------------------------


def run_checks(
    jobs: Sequence[Job], limits: Limits, on_outcome: OnOutcome | None = None
) -> CheckRun:
    """Try the checks of jobs; this process maps nothing of the plugin.

    `on_outcome` is called with each outcome as soon as it is known. Raises `InterruptedRun` if the
    user ended the run, and `OSError` if no process can be started.
    """
    known: list[Outcome] = []

    def heard(outcome: Outcome) -> None:
        known.append(outcome)
        if on_outcome is not None:
            on_outcome(outcome)

    try:
        with CheckProcesses(limits) as processes:
            results = processes.run(jobs, heard)
    except KeyboardInterrupt:
        raise InterruptedRun(CheckRun(tuple(known))) from None
    return CheckRun(
        tuple(outcome for result in results for outcome in result.outcomes),
        tuple(fault for result in results for fault in result.faults),
        tuple(processes.absent_stores),
    )


@dataclass(eq=False, slots=True)
class JobResult:
    """A job, and what has become of it.

    Attributes:
        job: The job.
        left: The checks of which nothing is known yet.
        outcomes: Of the others, in their order.
        faults: How the kit failed at some of them, which have no outcome.
        was_lost: Whether a watcher was lost that had it.
        heard: Whether the watcher that has it has sent anything.
    """

    job: Job
    left: tuple[str, ...]
    outcomes: list[Outcome] = field(default_factory=list)
    faults: list[CheckFaultError] = field(default_factory=list)
    was_lost: bool = False
    heard: bool = False

    @property
    def fault(self) -> CheckFaultError | None:
        """The first of the faults, None where there is none."""
        return self.faults[0] if self.faults else None

    def take(self, entry: dict[str, Any]) -> Outcome | None:
        """Take what the watcher sends, and return the outcome that came, None for none."""
        self.heard = True
        match entry:
            case {"outcome": dict(value)}:
                return self.add(decode(Outcome, value))
            case {"fault": str(text)}:
                check_id = entry["check"]
                self.faults.append(CheckFaultError(check_id, self.job.subject, text))
                if check_id in self.left:
                    self.left = self.left[self.left.index(check_id) + 1 :]
            case {"finished": _}:
                if self.left and not self.faults:
                    text = "nothing became of it"
                    self.faults.append(CheckFaultError(self.left[0], self.job.subject, text))
                self.left = ()
        return None

    def add(self, outcome: Outcome) -> Outcome:
        """Add the outcome of the first check that is left."""
        self.outcomes.append(outcome)
        self.left = self.left[1:]
        return outcome


class CheckProcesses:
    """A zygote of checks and its watchers, which stay until `close`. Used by one thread.

    Raises `OSError` if no process can be started.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lanes: Lanes[JobResult] = Lanes()
        self._waiting: deque[JobResult] = deque()
        self._stores = AssumedStores()
        self._lost: dict[tuple[object, ...], dict[str, str]] = {}
        self._on_outcome: OnOutcome = lambda _: None
        with ExitStack() as made:
            self._scratch = made.enter_context(scratch_folder())
            self._zygotes = Zygotes(self._command, self._environment)
            self._zygotes.warm()
            made.callback(self._zygotes.end)
            self._exit = made.pop_all()

    def _command(self, python: str, own: dict[str, Any]) -> list[str]:
        job = {**own, "limits": encode(self._limits), "scratch": self._scratch}
        return command_like_here(python, _WATCHER, job)

    def _environment(self) -> Mapping[str, str]:
        environment = preload(sanitizer_environment(os.environ))
        return preload_environment(environment) if self._limits.preload else environment

    def run(self, jobs: Sequence[Job], on_outcome: OnOutcome | None = None) -> list[JobResult]:
        """Try jobs side by side, and return what became of each when all are done.

        `on_outcome` is called with each outcome as soon as it is known. Raises `OSError` if no
        process can be started any more.
        """
        results = [JobResult(job, job.checks) for job in jobs]
        self._waiting = deque(result for result in results if result.left)
        self._stores = AssumedStores()
        self._lost.clear()
        self._on_outcome = on_outcome or (lambda _: None)
        try:
            while self._waiting or self._lanes.under_way():
                self._hand_out()
                self._listen()
        except BaseException:
            self.close()
            raise
        return results

    @property
    def absent_stores(self) -> list[str]:
        """Of the last run, the stores whose checks were stopped: a sentence on each."""
        return self._stores.absent

    def close(self) -> None:
        """End all processes. Safe to call twice."""
        self._lanes.close()
        self._exit.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _hand_out(self) -> None:
        for result in list(self._waiting):
            alone = result.job.alone
            if alone and any(alone == other.job.alone for other in self._lanes.under_way()):
                continue
            lane = self._lanes.free(self._limits.processes, self._new_watcher)
            if lane is None:
                return
            self._waiting.remove(result)
            result.heard = False
            target = replace(result.job.target, lost_calls=self._lost_calls(result.job))
            with suppress(OSError):  # the watcher is gone: its end is heard of
                lane.give(result, encode(replace(result.job, target=target, checks=result.left)))

    def _lost_calls(self, job: Job) -> dict[str, str]:
        """Return the calls in which processes of the same subject were lost."""
        target = job.target
        key = (target.path, job.subject, target.reached, *sorted(job.environment.items()))
        return self._lost.setdefault(key, {})

    def _new_watcher(self) -> socket.socket:
        try:
            return self._zygotes.warm().new_watcher()
        except OSError:  # a plugin has ended the zygote too
            self._zygotes.end()
            return self._zygotes.warm().new_watcher()

    def _listen(self) -> None:
        for lane in self._lanes.ready():
            result = lane.work
            try:
                for entry in lane.receive():
                    if result is not None:
                        self._found(result.job, result.take(entry))
                        if "finished" in entry:
                            lane.work = None
            except (EOFError, ValueError):
                self._lose(lane)
        for store in self._stores.to_stop():
            self._stop_checks_of(store)

    def _found(self, job: Job, outcome: Outcome | None) -> None:
        if outcome is not None:
            self._stores.count(job.target.assumed_store, outcome)
            if outcome.lost_call is not None:
                self._lost_calls(job).setdefault(outcome.lost_call, outcome.check_id)
            self._on_outcome(outcome)

    def _add(self, result: JobResult, verdict: Verdict, message: str, **more: Any) -> None:
        """Add an outcome of the next check that no process reports."""
        outcome = result.job.outcome(result.left[0], verdict, message, **more)
        self._found(result.job, result.add(outcome))

    def _lose(self, lane: Lane[JobResult]) -> None:
        """Go on without a watcher that a plugin has ended."""
        self._lanes.remove(lane)
        if (result := lane.work) is None:
            return
        if result.left and (result.heard or result.was_lost):
            message = (
                "the process that watched over the check ended, which only the plugin can have done"
            )
            self._add(result, Verdict.EXITED, message, incident=Incident())
        result.was_lost = True
        if result.left:
            self._waiting.appendleft(result)

    def _stop_checks_of(self, store: str) -> None:
        stopped = [result for result in self._waiting if result.job.target.assumed_store == store]
        for lane in self._lanes:
            if lane.work is not None and lane.work.job.target.assumed_store == store:
                self._lanes.remove(lane)
                stopped.insert(0, lane.work)
        self._waiting = deque(result for result in self._waiting if result not in stopped)
        why = self._stores.stop(store, sum(len(result.left) for result in stopped))
        for result in stopped:
            while result.left:
                self._add(result, Verdict.BLOCKED, why)


class AssumedStores:
    """Decides when to stop the checks of a store that nobody has named. Used by one thread.

    Without a root, checks of a remote scheme ask a host of the kit's choice. Where no server
    listens, most of them hang, and each takes as long as a check may.

    Attributes:
        absent: A sentence on each store whose checks were stopped.
    """

    def __init__(self) -> None:
        self.absent: list[str] = []
        self._hung: dict[str, list[str]] = {}
        self._settled: set[str] = set()  # they are there, or their checks were stopped

    def count(self, store: str | None, outcome: Outcome) -> None:
        """Count an outcome; the store is None for one that the user has named.

        A check that passes with a file of its own shows that the store is there: what hangs on it
        is the plugin's.
        """
        if store is None:
            return
        if outcome.verdict is Verdict.HUNG:
            self._hung.setdefault(store, []).append(outcome.check_id)
            return
        traits = all_checks()[outcome.check_id].traits
        if outcome.verdict is Verdict.PASSED and "writes" in traits:
            self._settled.add(store)

    def to_stop(self) -> list[str]:
        """Return the stores whose checks should be stopped now."""
        return [
            store
            for store, hung in self._hung.items()
            if len(hung) >= _MOST_HANGS and store not in self._settled
        ]

    def stop(self, store: str, number: int) -> str:
        """Note that so many checks of a store are not tried, and return why."""
        self._settled.add(store)
        hung = " and ".join(dict.fromkeys(self._hung[store]))
        why = f"{hung} hung on {store}://, and nothing could be written there"
        self.absent.append(
            f"{number} checks of {store}:// were not tried: {why}, so its store is probably not "
            "there; name one that is with --root, and its kind with --profile"
        )
        return f"not tried: {why}, so its store is probably not there; name one with --root"
