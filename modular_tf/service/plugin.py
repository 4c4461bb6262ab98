"""What is known of one plugin: a value that each stage of its way replaces by the next.

A step either goes on or ends the processing with a state and a reason; nothing is raised to the
service, so that one plugin never stops the next.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.kinds import Kind
from modular_tf.discovery.load_facts import LoadFacts
from modular_tf.discovery.trust.verdict import TrustVerdict
from modular_tf.events import EventLog
from modular_tf.loading.bound_files import is_bound
from modular_tf.loading.task import Task
from modular_tf.rules import Violation
from modular_tf.rules.first_contact import CHILD_STARTABLE
from modular_tf.rules.mapping import NOT_VETOED, PLUGIN_ENABLED
from modular_tf.rules.shortage import SHORTAGE, ShortageError
from modular_tf.service.outcome import state_of
from modular_tf.service.report import Decision, PluginRecord, State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.file_identity import FileIdentity, SeenFile
    from modular_tf.discovery.probe import Probe
    from modular_tf.first_contact.finding import Finding, Incident
    from modular_tf.service.configuration import Config
    from modular_tf.service.kept.scan_cache import CacheEntry
    from modular_tf.service.outcome import Outcome

    _Decisions = tuple[Decision, ...]

_log = EventLog("plugin")
_POSTPONING = frozenset((SHORTAGE, CHILD_STARTABLE))  # no process could be started to try it in


class Plugin(NamedTuple):
    """What is known of one plugin, as far as it has come. Immutable: each step returns the next.

    A step that comes too late, since the plugin is registered or was refused, returns the plugin
    as it is.

    Attributes:
        candidate: The file.
        facts: What loading needs of its probe.
        trust: Whether its files may be opened.
        name: Its name for users, unique in the service.
        known: What is kept of it between runs, None where that cannot be kept.
        probe: All that its bytes say, None where they were not read.
        identity: What the system said of its file before that was read; None for nothing.
        sealed: Whether its library is mapped from copies, and at once, so that its file may be
            overwritten.
        finding: What was found when it was tried, None where it was not.
        outcome: What its registration came to, None before.
        ended: The state in which it ended before it registered anything, None where it did not end.
        incident: What it did to another process, None where it did nothing.
        quarantined_since: When it did that, in seconds since 1970.
        refusals: Why it ended so.
        remarks: Rules that it broke before it was loaded, without being refused.
        decisions: What was decided about it, in order, for and against.
    """

    candidate: Candidate
    facts: LoadFacts
    trust: TrustVerdict
    name: str
    known: CacheEntry | None = None
    probe: Probe | None = None
    identity: FileIdentity | None = None
    sealed: bool = False
    finding: Finding | None = None
    outcome: Outcome | None = None
    ended: State | None = None
    incident: Incident | None = None
    quarantined_since: float | None = None
    refusals: tuple[Violation, ...] = ()
    remarks: tuple[Violation, ...] = ()
    decisions: tuple[Decision, ...] = ()

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        facts: LoadFacts,
        trust: TrustVerdict,
        *,
        known: CacheEntry | None = None,
        probe: Probe | None = None,
        identity: FileIdentity | None = None,
    ) -> Plugin:
        """Make it of a candidate that was probed and judged; see the attributes."""
        refusals, remarks = _sorted_out(facts.problems) if facts.problems else ([], ())
        if refusals:
            probed = Decision("probe", False, refusals[0].rule, refusals[0].message)  # noqa: FBT003
        else:
            probed = _probed(facts.kinds, is_new=probe is not None)
        if trust.refused is not None and trust.refused not in facts.problems:
            refusals.insert(0, trust.refused.at("trust"))
        return cls(
            candidate,
            facts,
            trust,
            candidate.name,
            known,
            probe,
            identity,
            ended=_state_of_refused(refusals),
            refusals=tuple(refusals),
            remarks=remarks,
            decisions=(Decision("trust", trust.accepted, trust.rule, trust.message), probed),
        )

    @classmethod
    def unread(
        cls, candidate: Candidate, shortage: ShortageError, identity: FileIdentity | None
    ) -> Plugin:
        """Make it of a file that cannot be looked at now, and will be later."""
        problem = Violation(SHORTAGE, shortage.message, path=candidate.path)
        facts, trust = LoadFacts(frozenset(), (problem,)), TrustVerdict.of_problem(problem)
        return cls.of(candidate, facts, trust, identity=identity)

    # -- what it is -----------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The file, as it was found."""
        return self.candidate.path

    @property
    def log(self) -> EventLog:
        """The log of its events, each of which has its name and path."""
        return _log.bind(plugin=self.name, path=self.path)

    @property
    def checked(self) -> tuple[SeenFile, ...]:
        """Its files as they were when they were found to be trustworthy, its library first."""
        return self.trust.checked

    @property
    def sha256(self) -> str | None:
        """Of its bytes, in hexadecimal digits; None where they could not be read."""
        return self.known.sha256 if self.known is not None else None

    @property
    def task(self) -> Task:
        """What a process needs to open it."""
        kinds = tuple(kind.value for kind in self.facts.kinds)
        companions, absent = self.facts.companions, self.facts.absent
        return Task(self.name, self.path, companions, absent, kinds, self.checked)

    @property
    def is_bundled(self) -> bool:
        """Whether it comes with this package."""
        return self.candidate.source is Source.BUNDLED

    @property
    def is_there(self) -> bool:
        """Whether the path still leads to the file that was probed."""
        for look in (os.stat, os.lstat):  # a link that leads nowhere is a candidate by itself
            with suppress(OSError, ValueError):
                found = look(self.path)
                return (found.st_dev, found.st_ino) == self.candidate.identity
        return False

    # -- what became of it ----------------------------------------------------------------------

    @property
    def state(self) -> State:
        """What became of it so far."""
        return state_of(self.ended, self.outcome)

    @property
    def is_on_its_way(self) -> bool:
        """Whether nothing became of it yet: its state is `FOUND`."""
        return self.ended is None and self.outcome is None

    @property
    def reasons(self) -> tuple[Violation, ...]:
        """Why it, or a part of it, does not serve."""
        return self.refusals if self.outcome is None else self.refusals + self.outcome.reasons

    @property
    def is_postponed(self) -> bool:
        """Whether nothing was decided about it, for what this process has too little of."""
        return bool(self.refusals) and any(r.rule in _POSTPONING for r in self.refusals)

    @property
    def is_new_here(self) -> bool:
        """Whether its code is new to this process, not our own, and not refused yet."""
        return self.is_on_its_way and not self.is_bundled and not is_bound(self.candidate.path)

    def record(self) -> PluginRecord:
        """Return it as users see it."""
        outcome = self.outcome
        return PluginRecord(
            self.name,
            self.path,
            self.candidate.source._value_,  # `value` takes three calls
            _kind_names(self.facts.kinds),
            self.state,
            outcome.schemes if outcome else (),
            outcome.device_types if outcome else (),
            self.reasons,
            self.remarks if outcome is None else self.remarks + outcome.warnings,
            self.decisions,
            outcome.kernels if outcome else 0,
            outcome.ops if outcome else 0,
            self.candidate.brought_by,
        )

    # -- steps ----------------------------------------------------------------------------------

    def _with(self, **changed: Any) -> Plugin:
        """Return it with other values, as `_replace` does, in a third of the time."""
        values: list[Any] = [*self]
        for name, value in changed.items():
            values[_AT[name]] = value
        return Plugin._make(values)

    def _and(self, stage: str, rule: str | None, text: str, *, passed: bool) -> _Decisions:
        """Return its decisions and one more."""
        return (*self.decisions, Decision(stage, passed, rule, text))

    def ends(self, state: State, reason: Violation) -> Plugin:
        """Return it as one that ended in a state and registers nothing."""
        if not self.is_on_its_way:
            return self
        return self._replace(
            ended=state,
            refusals=(*self.refusals, reason),
            decisions=self._and(reason.stage, reason.rule, reason.message, passed=False),
        )

    def postponed(self, stage: str, shortage: ShortageError) -> Plugin:
        """Return it as one that cannot be processed now; the next load tries again."""
        return self.ends(State.FAILED, Violation.of_error(shortage, stage))

    def under_policy(self, config: Config, veto: str | None) -> Plugin:
        """Return it disabled where configuration or a hook says so, before its code runs."""
        if (why := config.why_disabled(self.name)) is not None:
            return self.ends(State.DISABLED, Violation(PLUGIN_ENABLED, why, "policy"))
        if veto is not None:
            return self.ends(State.DISABLED, Violation(NOT_VETOED, veto, "policy"))
        return self

    @property
    def is_isolable(self) -> bool:
        """Whether it can run in a worker process: devices share memory by address and cannot."""
        return set(self.facts.kinds) == {Kind.FILESYSTEM}

    def accepted(self, finding: Finding, why: str) -> Plugin:
        """Return it as one that does no harm, with what it offers."""
        if not self.is_on_its_way or self.finding is not None:
            return self
        remarks = self.remarks
        if finding.notes:
            remarks += tuple([note.at("first-contact") for note in finding.notes_of_trial])
        decisions = self._and("first-contact", None, why, passed=True)
        return self._with(finding=finding, remarks=remarks, decisions=decisions)

    def untried(self, why: str) -> Plugin:
        """Return it as one that is not tried."""
        return self._replace(decisions=self._and("first-contact", None, why, passed=True))

    def judged(self, trust: TrustVerdict) -> Plugin:
        """Return it with another verdict on its files, which counts what its code opens."""
        if not self.is_on_its_way:
            return self
        judged = self._replace(trust=trust)
        if trust.refused is None:
            return judged
        return judged.ends(State.REJECTED, trust.refused.at("trust"))

    def with_ended_calls(self, incidents: Iterable[Incident]) -> Plugin:
        """Return it with its calls in which processes ended, as far as they are no quarantine."""
        kept = [remark for remark in self.remarks if remark.stage != "work"]
        told = [incident.violation.at("work") for incident in incidents]
        if not told and len(kept) == len(self.remarks):
            return self
        return self._replace(remarks=(*kept, *told))

    def quarantined(self, incident: Incident, since: float) -> Plugin:
        """Return it kept out of this process, for what it did to another one.

        Args:
            incident: What it did.
            since: When, in seconds since 1970.
        """
        state = State.FAILED if incident.untried else State.QUARANTINED
        ended = self.ends(state, incident.violation.at("first-contact"))
        if ended is self:
            return self
        return ended._replace(incident=incident, quarantined_since=since)

    def registered(self, outcome: Outcome, how: str) -> Plugin:
        """Return it with what it registered.

        Args:
            outcome: What that came to; the last one counts.
            how: Whether its library is mapped, for the decision.
        """
        if self.outcome is not None:  # it was registered before its library was mapped
            return self._replace(outcome=outcome)
        if state_of(self.ended, outcome) is State.LOADED:
            decisions = self._and("register", None, how, passed=True)
        else:
            reason = outcome.reasons[0]
            decisions = self._and(reason.stage, reason.rule, reason.message, passed=False)
        return self._with(outcome=outcome, decisions=decisions)

    def kept(self, reason: Violation) -> Plugin:
        """Return it as one that goes on serving though its file was replaced, and why."""
        others = [remark for remark in self.remarks if remark.rule != reason.rule]
        decisions = self._and(reason.stage, reason.rule, reason.message, passed=True)
        return self._replace(remarks=(*others, reason), decisions=decisions)


_AT = {name: at for at, name in enumerate(Plugin._fields)}


@cache
def _probed(of_kinds: frozenset[Kind], *, is_new: bool) -> Decision:
    """Return that nothing of the bytes of a plugin was refused."""
    kinds = ", ".join(_kind_names(of_kinds)) or "no plugin"
    how = "read from its bytes" if is_new else "known from an earlier scan"
    return Decision("probe", True, None, f"{kinds}, {how}")  # noqa: FBT003


def _sorted_out(
    problems: Iterable[Violation],
) -> tuple[list[Violation], tuple[Violation, ...]]:
    """Return what refuses a plugin, and what is only remarked."""
    found = [problem.at("probe") for problem in problems]
    remarks = tuple([problem for problem in found if not problem.is_error])
    return [problem for problem in found if problem.is_error], remarks


def _state_of_refused(refusals: list[Violation]) -> State | None:
    if not refusals:
        return None
    is_postponed = any(reason.rule in _POSTPONING for reason in refusals)
    return State.FAILED if is_postponed else State.REJECTED


@cache
def _kind_names(kinds: frozenset[Kind]) -> tuple[str, ...]:
    return tuple(kind.value for kind in Kind if kind in kinds)
