"""What is known of one plugin: a value that each stage of its way replaces by the next.

A step either goes on or ends the processing with a state and a reason; nothing is raised to the
service, so that one plugin never stops the next.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.discovery.candidate import Kind, Source
from modular_tf.events import EventLog
from modular_tf.events.event_log import INFO
from modular_tf.loading.bound_files import is_bound
from modular_tf.loading.task import Task
from modular_tf.rules import Violation
from modular_tf.rules.loading import NOT_VETOED, PLUGIN_ENABLED
from modular_tf.service.report import Decision, PluginRecord, State, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Concatenate

    from typing_extensions import ParamSpec

    from modular_tf.device.platform import DevicePlatform
    from modular_tf.discovery.candidate import Candidate, LoadFacts
    from modular_tf.discovery.file_identity import FileIdentity, SeenFile
    from modular_tf.discovery.probe import Probe
    from modular_tf.discovery.trust.policy import TrustVerdict
    from modular_tf.errors import ModularTFError
    from modular_tf.filesystem.registry import Registered
    from modular_tf.first_contact.finding import Finding, Incident
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.native.library import Library
    from modular_tf.service.configuration import Config
    from modular_tf.service.deferred_library import DeferredLibrary
    from modular_tf.service.registrations import Registrations
    from modular_tf.service.report import Outcome
    from modular_tf.service.storage.scan_cache import CacheEntry

    _Given = ParamSpec("_Given")

_log = EventLog("plugin")  # asked before a plugin's own, which costs more, is made


class Plugin(NamedTuple):
    """What is known of one plugin so far. Immutable: each step returns the next.

    A step that comes too late, since the plugin is registered or was refused, returns the plugin as
    it is.
    """

    candidate: Candidate
    facts: LoadFacts  # what loading needs of its probe
    trust: TrustVerdict  # whether its files may be opened
    name: str  # for users, unique in the service
    # what is stored of it between runs; None where that cannot be stored
    known: CacheEntry | None = None
    probe: Probe | None = None  # None where its bytes were not read
    file: SeenFile | None = None  # its file as it was when it was read last; None for nothing
    # its library is mapped at once, from copies, so that its file may be overwritten
    sealed: bool = False
    finding: Finding | None = None  # of its trial; None where it was not tried
    outcome: Outcome | None = None  # of its registration; None before
    # the state in which it ended before it registered anything; None where it did not end
    ended: State | None = None
    incident: Incident | None = None  # what it did to another process; None for nothing
    quarantined_since: float | None = None  # when it did that, in seconds since 1970
    # rules that it broke before it was loaded, without being refused
    remarks: tuple[Violation, ...] = ()
    # what was decided about it, in order: for it, or why it is refused
    steps: tuple[Decision | Violation, ...] = ()

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        facts: LoadFacts,
        trust: TrustVerdict,
        *,
        known: CacheEntry | None = None,
        probe: Probe | None = None,
        file: SeenFile | None = None,
    ) -> Plugin:
        """Make it of a candidate that was probed and judged; see the fields."""
        problems = [problem.at("probe") for problem in facts.problems]
        refusals: list[Decision | Violation] = [found for found in problems if found.is_error]
        steps = refusals or [_probed(facts.kinds, is_new=probe is not None)]
        if trust.refused is not None and trust.refused not in facts.problems:
            steps.insert(0, trust.refused.at("trust"))
        else:
            judged = Decision("trust", trust.accepted, trust.rule, trust.message)
            steps.insert(0, judged)
        return cls(
            candidate,
            facts,
            trust,
            candidate.name,
            known,
            probe,
            file,
            ended=State.REJECTED if refusals or trust.refused is not None else None,
            remarks=tuple([found for found in problems if not found.is_error]),
            steps=tuple(steps),
        )

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
    def identity(self) -> FileIdentity | None:
        """The identity of its file when that was read last; None where nothing is known of it."""
        return None if self.file is None else self.file.identity

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
        for status_of in (os.stat, os.lstat):  # a link that leads nowhere is a candidate by itself
            with suppress(OSError, ValueError):
                found = status_of(self.path)
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
        if self.outcome is not None:
            return self.outcome.reasons
        if self.ended is None:
            return ()
        return tuple([step for step in self.steps if isinstance(step, Violation)])

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided about it, in order, for and against."""
        return tuple([_decision(s) if isinstance(s, Violation) else s for s in self.steps])

    @property
    def is_not_tried(self) -> bool:
        """Whether no process could be started to try it in; the next run tries it."""
        return self.incident is not None and self.incident.is_not_tried

    @property
    def is_new_here(self) -> bool:
        """Whether its code is new to this process, not our own, and not refused yet."""
        if not self.is_on_its_way or self.is_bundled:
            return False
        return not is_bound(self.candidate.path, self.sha256)

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

    def ends(self, state: State, reason: Violation) -> Plugin:
        """Return it as one that ended in a state and registers nothing."""
        if not self.is_on_its_way:
            return self
        return self._replace(ended=state, steps=(*self.steps, reason))

    def to_be_tried(self) -> Plugin:
        """Return it without the result of a trial whose process could not be started."""
        if not self.is_not_tried:
            return self
        steps = tuple([step for step in self.steps if step.stage != "first-contact"])
        return self._replace(ended=None, incident=None, quarantined_since=None, steps=steps)

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
        steps = (*self.steps, _passed("first-contact", why))
        return self._replace(finding=finding, remarks=remarks, steps=steps)

    def without_trial(self, why: str) -> Plugin:
        """Return it as one that is not tried, and why."""
        return self._replace(steps=(*self.steps, _passed("first-contact", why)))

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
        ended_calls = [incident.violation.at("work") for incident in incidents]
        if not ended_calls and len(kept) == len(self.remarks):
            return self
        return self._replace(remarks=(*kept, *ended_calls))

    def quarantined(self, incident: Incident, since: float) -> Plugin:
        """Return it kept out of this process, for what it did to another one at that time."""
        state = State.FAILED if incident.is_not_tried else State.QUARANTINED
        ended = self.ends(state, incident.violation.at("first-contact"))
        if ended is self:
            return self
        return ended._replace(incident=incident, quarantined_since=since)

    def registered(self, outcome: Outcome, how: str) -> Plugin:
        """Return it with what it registered; a later call replaces the earlier."""
        if self.outcome is not None:  # it was registered before its library was mapped
            return self._replace(outcome=outcome)
        is_loaded = state_of(self.ended, outcome) is State.LOADED
        step = _passed("register", how) if is_loaded else _decision(outcome.reasons[0])
        return self._replace(outcome=outcome, steps=(*self.steps, step))

    def refusing_the_new_file(self, reason: Violation) -> Plugin:
        """Return it as one whose old library goes on though its file was replaced, and why."""
        others = [remark for remark in self.remarks if remark.rule != reason.rule]
        step = _decision(reason)._replace(passed=True)
        return self._replace(remarks=(*others, reason), steps=(*self.steps, step))


def _passed(stage: str, text: str) -> Decision:
    return Decision(stage, passed=True, rule=None, text=text)


def _decision(reason: Violation) -> Decision:
    return Decision(reason.stage, passed=False, rule=reason.rule, text=reason.message)


@cache
def _probed(of_kinds: frozenset[Kind], *, is_new: bool) -> Decision:
    """Return that nothing of the bytes of a plugin was refused."""
    kinds = ", ".join(_kind_names(of_kinds)) or "no plugin"
    how = "read from its bytes" if is_new else "known from an earlier scan"
    return _passed("probe", f"{kinds}, {how}")


@cache
def _kind_names(kinds: frozenset[Kind]) -> tuple[str, ...]:
    return tuple(kind.value for kind in Kind if kind in kinds)


# A plugin that the operator disabled is no fault.
_AS_INTENDED = frozenset((State.LOADED, State.DISABLED))


class Attempt:
    """One run over some plugins, from the first step to the last.

    `is_over` is set by its maker: nobody waits for the run any more.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._process = os.getpid()

    @property
    def is_under_way(self) -> bool:
        """Whether it runs, in this process."""
        return not self.is_over and self._process == os.getpid()


class PluginEntry:
    """The place of one plugin among those of a service, with its newest record. [any thread]"""

    def __init__(
        self,
        plugin: Plugin,
        registrations: Registrations | None = None,
        attempt: Attempt | None = None,
    ) -> None:
        # Where its library registers what it offers; None for the registries of the service.
        self.registrations = registrations
        self.attempt = attempt  # the run that processed it last, None for none
        self.serving: DeferredLibrary | None = None  # what registers for it, None before it does
        self._plugin = plugin
        self._reported_state = plugin.state
        self._lock = ForkLock()

    @property
    def plugin(self) -> Plugin:
        """The newest record."""
        return self._plugin

    def change(
        self,
        step: Callable[Concatenate[Plugin, _Given], Plugin],
        *given: _Given.args,
        **named: _Given.kwargs,
    ) -> Plugin:
        """Replace the record by the next one, which `step` makes of it, and return that."""
        with self._lock:
            before = self._plugin
            self._plugin = after = step(before, *given, **named)
        if after is not before:
            log_step(before, after)
        return after

    def has_other_state(self) -> bool:
        """Return whether its state is another one than when this was called last."""
        before, self._reported_state = self._reported_state, self._plugin.state
        return self._reported_state is not before

    @property
    def probe(self) -> Probe:
        """All that its bytes say; read now where the stored facts sufficed so far."""
        if self._plugin.probe is None:
            # What reads libraries is imported where one is read; known plugins are not.
            from modular_tf.discovery.linking.host_exports import host_exports  # noqa: PLC0415
            from modular_tf.discovery.probe import probe  # noqa: PLC0415

            found = probe(self._plugin.candidate, host_exports())
            self.change(lambda plugin: plugin._replace(probe=plugin.probe or found))
            return self._plugin.probe or found
        return self._plugin.probe

    @property
    def is_under_way(self) -> bool:
        """Whether a run processes it now."""
        return self.attempt is not None and self.attempt.is_under_way

    def anew(self, plugin: Plugin, attempt: Attempt | None = None) -> PluginEntry:
        """Return an entry for the same plugin, with what its file is now, from the beginning."""
        before = self._plugin
        return PluginEntry(plugin._replace(name=before.name, sealed=before.sealed), attempt=attempt)

    # -- what it serves ---------------------------------------------------------------------------

    @property
    def library(self) -> Library | None:
        """The mapped library, once it is."""
        return None if self.serving is None else self.serving.library

    @property
    def filesystems(self) -> Mapping[str, Registered]:
        """What it registered, by scheme."""
        return {} if self.serving is None else self.serving.registrations.filesystems

    @property
    def tables(self) -> Mapping[str, FilesystemTables]:
        """Its accepted filesystem tables, by scheme, served or not, once it is mapped."""
        return {} if self.serving is None else self.serving.tables

    @property
    def platform(self) -> DevicePlatform | None:
        """Its device platform, once it is loaded."""
        return None if self.serving is None else self.serving.registrations.loaded_platform

    # -- the end ----------------------------------------------------------------------------------

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        if self.serving is not None:
            self.serving.registrations.after_fork_in_child()

    def close(self, failures: list[ModularTFError], *, at_exit: bool) -> None:
        """Stop serving: files, filesystems, devices; add what went wrong to `failures`."""
        if self.serving is not None:
            self.serving.close(failures, at_exit=at_exit)


def log_step(before: Plugin | None, after: Plugin) -> None:
    """Log what a step decided about a plugin, and what became of it where the step is its last."""
    reports_all = _log.is_enabled_for(INFO)
    if reports_all:
        _log_decisions(after, already=len(before.decisions) if before else 0)
    if after.is_on_its_way or not (before is None or before.is_on_its_way):
        return
    state = after.state
    if state in _AS_INTENDED and not reports_all:
        return
    reason = after.reasons[0] if after.reasons else None
    write = after.log.info if state in _AS_INTENDED else after.log.warning
    write(
        "plugin.processed",
        outcome=state.value,
        reason=reason.message if reason else None,
        rule=reason.rule if reason else None,
    )


def _log_decisions(plugin: Plugin, already: int) -> None:
    if len(plugin.decisions) == already:
        return
    bound_log = plugin.log
    for stage, passed, rule, text in plugin.decisions[already:]:
        write = bound_log.debug if passed else bound_log.info
        write("plugin.decided", stage=stage, passed=passed, rule=rule, text=text)
