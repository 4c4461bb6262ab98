"""One plugin on its way through a service: probed, tried, registered.

Each step either goes on or ends the way with a state and a reason; nothing is raised to the
service, so that one plugin never stops the next.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from modular_tf.device.deferred import DeferredFactory
from modular_tf.discovery.candidate import Source
from modular_tf.discovery.kinds import Kind
from modular_tf.discovery.load_facts import LoadFacts
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.discovery.trust.verdict import TrustVerdict
from modular_tf.events import EventLog
from modular_tf.loading.bound_files import is_bound
from modular_tf.rules import Violation
from modular_tf.rules.first_contact import CHILD_STARTABLE
from modular_tf.rules.mapping import NOT_VETOED, PLUGIN_ENABLED
from modular_tf.rules.shortage import SHORTAGE, ShortageError
from modular_tf.service.configuration import trust_of
from modular_tf.service.mapped_library import Generation
from modular_tf.service.plugin_file import PluginFile
from modular_tf.service.report import Decision, PluginRecord, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from modular_tf.device.platform import DevicePlatform
    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.file_identity import FileIdentity, SeenFile
    from modular_tf.discovery.probe import Probe
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.errors import ModularTFError
    from modular_tf.filesystem.registry import Registered
    from modular_tf.first_contact.finding import Finding, Incident
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.native.library import Library
    from modular_tf.service.configuration import Config
    from modular_tf.service.kept.scan_cache import CacheEntry
    from modular_tf.service.registries import Registries

    Mark = Callable[[PluginFile], AbstractContextManager[object]]

_log = EventLog("plugin")
_POSTPONING = frozenset((SHORTAGE, CHILD_STARTABLE))  # no process could be started to try it in


class Attempt:
    """Somebody's way with some plugins, from the first step to the last.

    Attributes:
        is_over: Whether it came to its end, or was interrupted. Set by whoever makes it.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._process = os.getpid()

    @property
    def is_under_way(self) -> bool:
        """Whether somebody is at it, in this process."""
        return not self.is_over and self._process == os.getpid()


class PluginEntry:
    """What a service knows of one candidate. Used under the service's lock.

    Attributes:
        candidate: The file.
        facts: What loading needs of its probe.
        name: Its name for users, unique in the service.
        known: What is kept of it between runs, None where that cannot be kept.
        finding: What was found when it was tried, None where it was not.
        generation: What it registers, None before it does.
        decisions: What was decided about it, in order, for and against.
        incident: What it did to another process, None where it did nothing.
        quarantined_since: When it did that, in seconds since 1970.
        identity: What the system said of its file before that was read; None for nothing.
        sealed: Whether its library is mapped from copies, and at once, so that its file may be
            overwritten.
        predecessor: Whose place it takes when it is loaded, None for nobody's.
        successor: What was made last to take its place, None for nothing.
        attempt: Who took it on its way last, None for nobody.
        told: The state that hooks know of.

    Args:
        candidate: As above.
        facts: As above.
        trust: Whether its files may be opened.
        known: As above.
        probe: Its probe, where one was made now.
    """

    def __init__(
        self,
        candidate: Candidate,
        facts: LoadFacts,
        trust: TrustVerdict,
        *,
        known: CacheEntry | None = None,
        probe: Probe | None = None,
    ) -> None:
        self.candidate = candidate
        self.facts = facts
        self.name = candidate.name
        self.known = known
        self.finding: Finding | None = None
        self.generation: Generation | None = None
        self.decisions: list[Decision] = []
        self.incident: Incident | None = None
        self.quarantined_since: float | None = None
        self.identity: FileIdentity | None = None
        self.sealed = False
        self.predecessor: Generation | None = None
        self.successor: PluginEntry | None = None
        self.attempt: Attempt | None = None
        self._trust = trust
        self._probe = probe
        self._state = State.FOUND
        self._reasons: list[Violation] = []
        self._warnings = [p.at("probe") for p in facts.problems if not p.is_error]
        self._decide("trust", trust.rule, trust.message, passed=trust.accepted)
        self._take_probe("read from its bytes" if probe else "known from an earlier scan")
        if trust.refused is not None and trust.refused not in facts.problems:
            self._reasons.insert(0, trust.refused.at("trust"))
        if self._reasons:
            self._state = State.FAILED if self.is_postponed else State.REJECTED
        self.told = self._state

    @classmethod
    def postponed(cls, candidate: Candidate, shortage: ShortageError) -> PluginEntry:
        """Make the entry of a file that cannot be looked at now, and will be later."""
        problem = Violation(SHORTAGE, shortage.message, path=candidate.path)
        return cls(candidate, LoadFacts(frozenset(), (problem,)), TrustVerdict.of_problem(problem))

    def _take_probe(self, how: str) -> None:
        errors = [p.at("probe") for p in self.facts.problems if p.is_error]
        kinds = ", ".join(_kind_names(self.facts.kinds)) or "no plugin"
        if errors:
            self._decide("probe", errors[0].rule, errors[0].message, passed=False)
        else:
            self._decide("probe", None, f"{kinds}, {how}", passed=True)
        self._reasons = errors

    def _decide(self, stage: str, rule: str | None, text: str, *, passed: bool) -> None:
        self.decisions.append(Decision(stage, passed, rule, text))
        if not _log.is_enabled_for(logging.INFO):
            return
        write = _log.debug if passed else _log.info
        write(
            "plugin.decided",
            plugin=self.name,
            path=self.path,
            stage=stage,
            passed=passed,
            rule=rule,
            text=text,
        )

    @property
    def path(self) -> str:
        """The file, as it was found."""
        return self.candidate.path

    @property
    def checked(self) -> tuple[SeenFile, ...]:
        """Its files as they were when they were found to be trustworthy, its library first."""
        return self._trust.checked

    @property
    def sha256(self) -> str | None:
        """Of its bytes, in hexadecimal digits; None where they could not be read."""
        return self.known.sha256 if self.known is not None else None

    @property
    def bundled(self) -> bool:
        """Whether it comes with this package."""
        return self.candidate.source is Source.BUNDLED

    @property
    def probe(self) -> Probe:
        """All that its bytes say; read now where what was known of it sufficed so far."""
        if self._probe is None:
            # What reads libraries is imported where one is read; known plugins are not.
            from modular_tf.discovery.linking.host_exports import host_exports  # noqa: PLC0415
            from modular_tf.discovery.probe import probe  # noqa: PLC0415

            self._probe = probe(self.candidate, host_exports())
        return self._probe

    @property
    def is_there(self) -> bool:
        """Whether the path still leads to the file that was probed."""
        for look in (os.stat, os.lstat):  # a link that leads nowhere is a candidate by itself
            with suppress(OSError, ValueError):
                found = look(self.path)
                return (found.st_dev, found.st_ino) == self.candidate.identity
        return False

    @property
    def state(self) -> State:
        """Where its way ended, or has come to."""
        serving = self.generation
        return self._state if serving is None or not serving.is_settled else serving.state

    @property
    def library(self) -> Library | None:
        """The mapped library, once it is."""
        return None if self.generation is None else self.generation.library

    @property
    def filesystems(self) -> Mapping[str, Registered]:
        """What it registered, by scheme."""
        return {} if self.generation is None else self.generation.filesystems

    @property
    def tables(self) -> Mapping[str, FilesystemTables]:
        """Its accepted filesystem tables, by scheme, served or not, once it is mapped."""
        return {} if self.generation is None else self.generation.tables

    @property
    def platform(self) -> DevicePlatform | None:
        """Its device platform, once it is loaded."""
        found = None if self.generation is None else self.generation.platform
        return None if isinstance(found, DeferredFactory) else found

    def record(self) -> PluginRecord:
        """Return a snapshot."""
        serving = self.generation
        return PluginRecord(
            name=self.name,
            path=self.path,
            source=self.candidate.source.value,
            kinds=_kind_names(self.facts.kinds),
            state=self.state,
            schemes=tuple(self.filesystems),
            device_types=serving.device_types if serving else (),
            reasons=(*self._reasons, *(serving.reasons if serving else ())),
            warnings=(*self._warnings, *(serving.warnings if serving else ())),
            decisions=tuple(self.decisions),
        )

    # -- the way --------------------------------------------------------------------------------

    @property
    def is_postponed(self) -> bool:
        """Whether nothing was decided about it, for what this process has too little of."""
        return any(reason.rule in _POSTPONING for reason in self._reasons)

    def postpone(self, stage: str, shortage: ShortageError) -> None:
        """End the way here for now; whoever loads or refreshes next begins it anew."""
        if self._state is State.FOUND:
            self.end(State.FAILED, Violation.of_error(shortage, stage))

    @property
    def is_under_way(self) -> bool:
        """Whether somebody takes it on its way now."""
        return self.attempt is not None and self.attempt.is_under_way

    def apply_policy(self, config: Config, veto: str | None) -> None:
        """Disable the plugin where configuration or a hook says so, before its code runs."""
        if self.state is not State.FOUND:
            return
        if (why := config.why_disabled(self.name)) is not None:
            self.end(State.DISABLED, Violation(PLUGIN_ENABLED, why, "policy"))
        elif veto is not None:
            self.end(State.DISABLED, Violation(NOT_VETOED, veto, "policy"))

    @property
    def is_new_here(self) -> bool:
        """Whether its code is new to this process, and not our own, and nothing barred it yet."""
        return self.state is State.FOUND and not self.bundled and not is_bound(self.path)

    def accept_finding(self, finding: Finding, why: str) -> None:
        """Take note that it does no harm, and of what it offers."""
        if self.state is not State.FOUND or self.finding is not None:
            return
        warnings = [note.at("first-contact") for note in finding.notes_of_trial]
        self._warnings = [*self._warnings, *warnings]
        self.finding = finding
        self._decide("first-contact", None, why, passed=True)

    def judge_opened(self, opened: Sequence[SeenFile], policy: TrustPolicy) -> None:
        """Judge the libraries that its code opened when it was tried, before it does so here."""
        try:
            judge = TrustJudge(policy, python_path=sys.path)
            self._trust = judge.judge_opened(self.candidate, self._trust, opened)
        except ShortageError as error:
            self.postpone("trust", error)
            return
        if self._trust.refused is not None:
            self.end(State.REJECTED, self._trust.refused.at("trust"))

    def spare_first_contact(self, why: str) -> None:
        """Take note that it is not tried."""
        self._decide("first-contact", None, why, passed=True)

    def note_ended_calls(self, incidents: Iterable[Incident]) -> None:
        """Take note of its calls in which processes ended, as far as they are no quarantine yet."""
        kept = [warning for warning in self._warnings if warning.stage != "work"]
        told = [incident.violation.at("work") for incident in incidents]
        self._warnings = [*kept, *told]

    def quarantine(self, incident: Incident, since: float) -> None:
        """End the way before the library is opened here, for what it did to another process.

        Args:
            incident: What it did.
            since: When, in seconds since 1970.
        """
        state = State.FAILED if incident.untried else State.QUARANTINED
        self.incident, self.quarantined_since = incident, since
        self.end(state, incident.violation.at("first-contact"))

    def register(self, config: Config, registries: Registries, mark: Mark, *, eager: bool) -> None:
        """Go the rest of the way; does nothing where it was gone or is barred.

        It is gone once what the plugin offers is registered; what was interrupted before that is
        done by the next call.

        Args:
            config: What the user decided.
            registries: Where it registers.
            mark: Gives what surrounds the time in which its code begins to run in this process.
            eager: Whether its library is mapped now, instead of at the first use of what it
                offered when it was tried.
        """
        serving = self.generation
        if serving is not None and serving.is_settled:
            if eager:
                with suppress(ShortageError):  # the first use does it
                    serving.open_now()
            return
        if self._state is not State.FOUND:
            return
        if serving is None:
            made = Generation(self._file(config), config, registries, mark, self.predecessor)
            if self.generation is None:  # else a signal handler has registered it meanwhile
                self.generation, self.predecessor = made, None
            serving = self.generation
        finding = self.finding
        # At the first use the file of what is sealed may be another one.
        if finding is None or finding.offer is None or eager or self.sealed:
            try:
                serving.open_now()
            except ShortageError as error:
                self.postpone("load", error)
                return
            self._decide_registration("mapped")
        else:
            serving.defer(finding, finding.offer)
            self._decide_registration("to be mapped at its first use")
        self._tell()

    def _file(self, config: Config) -> PluginFile:
        return PluginFile(
            plugin=self.name,
            path=self.path,
            kinds=self.facts.kinds,
            companions=self.facts.companions,
            absent=self.facts.absent,
            bundled=self.bundled,
            sha256=self.sha256,
            checked=self.checked,
            sealed=self.sealed or config.trust.frozen,
            trust=trust_of(config),
        )

    def _decide_registration(self, how: str) -> None:
        reason = self._first_reason()
        if self.state is State.LOADED or reason is None:
            self._decide("register", None, how, passed=True)
        else:
            self._decide(reason.stage, reason.rule, reason.message, passed=False)

    def end(self, state: State, *reasons: Violation) -> None:
        """End the way here."""
        self._reasons = [*self._reasons, *reasons]
        self._state = state
        for reason in reasons:
            self._decide(reason.stage, reason.rule, reason.message, passed=False)
        self._tell()

    def note_kept(self, reason: Violation) -> None:
        """Take note that it goes on though its file was replaced, and why."""
        self._warnings = [warning for warning in self._warnings if warning.rule != reason.rule]
        self._warnings.append(reason)
        self._decide(reason.stage, reason.rule, reason.message, passed=True)

    def _tell(self) -> None:
        reason = self._first_reason()
        write = _log.info if self.state is State.LOADED else _log.warning
        write(
            "plugin.processed",
            plugin=self.name,
            path=self.path,
            outcome=self.state.value,
            reason=reason.message if reason else None,
            rule=reason.rule if reason else None,
        )

    def _first_reason(self) -> Violation | None:
        if self._reasons or self.generation is None:
            return self._reasons[0] if self._reasons else None
        return self.generation.reasons[0] if self.generation.reasons else None

    # -- the end --------------------------------------------------------------------------------

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        if self.generation is not None:
            self.generation.after_fork_in_child()

    def close(self, failures: list[ModularTFError], *, at_exit: bool) -> None:
        """Stop serving: files, filesystems, devices; add what went wrong to `failures`."""
        if self.generation is not None:
            self.generation.close(failures, at_exit=at_exit)


@cache
def _kind_names(kinds: frozenset[Kind]) -> tuple[str, ...]:
    return tuple(kind.value for kind in Kind if kind in kinds)
