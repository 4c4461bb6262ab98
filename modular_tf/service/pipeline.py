"""The steps from what discovery found to what is registered: judge, try out, register.

Which plugins may run in this process is known of them, or found out by trying them now.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.first_contact.finding import Limits
from modular_tf.service.configuration import trust_of
from modular_tf.service.deferred_library import DeferredLibrary
from modular_tf.service.lifetime import entry_point
from modular_tf.service.plugin import Attempt, Plugin
from modular_tf.service.registrations import Registrations
from modular_tf.service.report import State
from modular_tf.service.storage.notes import LOADING, TRYING, Notes
from modular_tf.service.storage.quarantine import FOUND_BY_NO_TRIAL, QuarantineStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.first_contact.finding import Finding, Incident
    from modular_tf.first_contact.trials import Trials
    from modular_tf.service.configuration import Config
    from modular_tf.service.hooks import Hooks
    from modular_tf.service.lifetime import ServiceLock
    from modular_tf.service.plugin import PluginEntry
    from modular_tf.service.plugins import KnownPlugins
    from modular_tf.service.registrations import Registries
    from modular_tf.service.storage.notes import Note
    from modular_tf.service.storage.scan_cache import ScanCache


class PluginPipeline:
    """Takes plugins of one service from candidates to registrations, several at once. [any thread]

    Three steps: judge, try out, register. It takes the service's lock itself, but releases it while
    it asks hooks and while plugins are tried, so that others need not wait for those.
    """

    def __init__(
        self,
        lock: ServiceLock,
        config: Config,
        known: KnownPlugins,
        registries: Registries,
        hooks: Hooks,
        reserved: Mapping[str, str],
    ) -> None:
        self._lock = lock
        self._config = config
        self._known = known
        self._registries = registries
        self._hooks = hooks
        self._reserved = reserved
        self._admission = Admission(config, known.cache)
        self._seals = False  # whether plugins are mapped from copies
        self._running = ForkLock()  # held by one run at a time; the next then has less to try

    def run(self, entries: Sequence[PluginEntry], *, eager: bool = False) -> None:
        """Take plugins through all steps, and map them now if `eager`; what is loaded stays so."""
        self._run(self.vetoes(entries), eager=eager)

    def vetoes(self, entries: Iterable[PluginEntry]) -> dict[PluginEntry, str | None]:
        """Ask the hooks why plugins are forbidden, without the lock, as hooks are users' code.

        The answers lack the plugins for which a hook asks for this while it is asked.
        """
        if self._hooks.is_asking("modular_tf_veto"):
            return {entry: None for entry in entries if not entry.plugin.is_on_its_way}
        if self._hooks.are_none:
            return dict.fromkeys(entries)
        return {entry: self._veto_of(entry) for entry in entries}

    def _veto_of(self, entry: PluginEntry) -> str | None:
        plugin = entry.plugin
        if not plugin.is_on_its_way or self._config.why_disabled(plugin.name) is not None:
            return None
        return self._hooks.veto(lambda: entry.probe)

    @entry_point
    def _run(self, vetoes: dict[PluginEntry, str | None], *, eager: bool) -> None:
        if eager or self._config.load == "eager":
            _open_registered(vetoes)
        with self._running:
            attempt = Attempt()
            try:
                self.try_out(self.judge(vetoes, attempt))
                with self._lock:
                    self.register([e for e in vetoes if self._known.has(e)], eager=eager)
            finally:
                attempt.is_over = True

    def judge(self, vetoes: dict[PluginEntry, str | None], attempt: Attempt) -> list[PluginEntry]:
        """Apply vetoes, the user's decisions and what is known; return what has to be tried."""
        notes = self._admission.notes_for(vetoes)
        with self._lock:
            self._lock.check_open()
            for entry, veto in vetoes.items():
                entry.attempt = attempt
                entry.change(self._under_policy, veto)
            return self._admission.recall(vetoes, notes)

    def _under_policy(self, plugin: Plugin, veto: str | None) -> Plugin:
        if self._seals and not (plugin.sealed or plugin.is_bundled):
            plugin = plugin._replace(sealed=True)
        return plugin.to_be_tried().under_policy(self._config, veto)

    def try_out(self, entries: Sequence[PluginEntry]) -> None:
        """Try the plugins that have to be, in child processes, and conclude what may run.

        What another application tries now is not tried here: this waits for what it finds, unless
        each process has to try for itself.
        """
        if not entries:
            return
        with self._lock:
            shared = [entry for entry in entries if self._admission.is_shared(entry)]
        if not shared:
            self._try(entries, lambda: None)
            return
        self._known.cache.turn.find_out(
            entries,
            unknown=self._recall_anew,
            find_out=self._try,
            timeout_s=self._admission.timeout_s,
            check=self._lock.check_open,
        )

    def _recall_anew(self, entries: Sequence[PluginEntry]) -> list[PluginEntry]:
        notes = self._admission.notes_for(entries, anew=True)
        with self._lock:
            self._known.cache.refresh()
            return self._admission.recall(entries, notes)

    def _try(self, entries: Sequence[PluginEntry], report_progress: Callable[[], None]) -> None:
        findings = self._admission.try_out(entries, report_progress)
        with self._lock:
            self._admission.conclude(entries, findings)

    def register(self, entries: Collection[PluginEntry], *, eager: bool = False) -> None:
        """Register plugins that may run, and report those whose state changed to the hooks."""
        eager = eager or self._config.load == "eager"
        with self._lock:
            self._lock.check_open()
            trust = trust_of(self._config)  # the environment may be another one at the first use
            try:
                for entry in entries:
                    self._register(entry, trust, eager=eager)
                    self._admission.remember_offer(entry)
                    if not self._hooks.are_none and entry.has_other_state():
                        self._hooks.outcome(entry.plugin.record)
            finally:
                self._known.cache.save()

    def _register(self, entry: PluginEntry, trust: TrustPolicy, *, eager: bool) -> None:
        """Register what a plugin offers, unless that is done or the plugin was refused."""
        plugin = entry.plugin
        if plugin.outcome is not None and eager:
            _open_registered([entry])
        if not plugin.is_on_its_way:
            return
        if entry.serving is None:
            registrations = entry.registrations
            if registrations is None:
                reserved = {} if plugin.is_bundled else self._reserved
                registrations = Registrations(plugin.name, self._config, self._registries, reserved)
            mark = self._admission.noted
            entry.serving = DeferredLibrary(entry, self._config, trust, registrations, mark)
        finding = plugin.finding
        # At the first use the file of what is sealed may be another one.
        if finding is None or finding.offer is None or eager or plugin.sealed:
            entry.serving.open_now()
        else:
            entry.serving.defer(finding, finding.offer)

    def expect_changes(self) -> None:
        """From now on map plugins from copies, and keep the processes of trials."""
        self._seals = True
        self._admission.keep_warm()

    def close(self) -> None:
        """End the processes of trials; safe to call twice."""
        self._admission.close()


def _open_registered(entries: Iterable[PluginEntry]) -> None:
    """Map plugins that are registered already, without a lock of the service.

    An init that hangs would keep the lock.
    """
    for entry in entries:
        if entry.serving is not None and entry.plugin.outcome is not None:
            entry.serving.open_now()


# -- which plugins may run -------------------------------------------------------------------------


_TIMEOUT_S = 5.0  # beyond the time that one plugin may take


class Admission:
    """Decides for one service what may run in its process.

    Used under the service's lock, but for `notes_for` and `try_out`.
    """

    def __init__(self, config: Config, cache: ScanCache) -> None:
        self._config = config
        self._cache = cache
        self._quarantine: QuarantineStore | None = None
        self._notes = Notes.of_process()
        self._has_read_notes = False  # of what ended processes before this one
        self._trials: Trials | None = None  # None also while a thread uses it
        self._keeps_warm = False
        self._limits = Limits(
            seconds=config.first_contact_timeout_s,
            memory_mib=config.first_contact_memory_mib,
            accept=frozenset(config.first_contact_accept),
        )

    def notes_for(self, entries: Iterable[PluginEntry], *, anew: bool = False) -> list[Note] | None:
        """Return what ended processes left behind. [any thread]

        None where it was read before, or is for none of the plugins. Call it without the service's
        lock: it may wait for a second.
        """
        if (self._has_read_notes and not anew) or all(entry.plugin.is_bundled for entry in entries):
            return None
        return self._notes.of_ended()

    def recall(self, entries: Iterable[PluginEntry], notes: list[Note] | None) -> list[PluginEntry]:
        """Give each plugin its known finding or refuse it; return those that have to be tried.

        Plugins that come with this package, and those whose code runs in this process already, are
        admitted as they are.
        """
        new = self._new_here(entries)
        if not new:
            return []
        self._read_quarantine(notes)
        for entry in new:
            if entry.plugin.remarks or not self._quarantine_store().is_empty:
                self._recall_quarantine(entry)
        to_try = [entry for entry in new if entry.plugin.is_new_here and not self._recall(entry)]
        if self._config.first_contact != "never":
            return to_try
        for entry in to_try:
            if not self._suspicion(entry):
                why = f"not tried, as {self._config.origin} says"
                entry.change(Plugin.without_trial, why)
        return [entry for entry in to_try if self._suspicion(entry)]

    def _new_here(self, entries: Iterable[PluginEntry]) -> list[PluginEntry]:
        """Return the plugins whose code is new to this process; admit those of this package."""
        new = []
        for entry in entries:
            if entry.plugin.is_new_here:
                new.append(entry)
            elif entry.plugin.is_bundled and entry.plugin.known is not None:
                finding = entry.plugin.known.finding
                if finding is not None and finding.is_clean:
                    entry.change(Plugin.accepted, finding, "it comes with this package")
        return new

    def _read_quarantine(self, notes: list[Note] | None) -> None:
        """Read what others did to the quarantine, and record in it what ended processes left."""
        store = self._quarantine_store()
        store.refresh()
        if notes is not None:
            store.take(notes, self._notes)
            self._has_read_notes = True
        if store.shortage is not None:
            raise store.shortage

    def _recall_quarantine(self, entry: PluginEntry) -> None:
        sha256 = entry.plugin.sha256
        if not sha256:
            return
        incidents = [call.incident for call in self._quarantine_store().ended_calls(sha256)]
        entry.change(Plugin.with_ended_calls, incidents)
        found = self._quarantine_store().recall(sha256)
        if found is None:
            return
        rule = found.incident.violation.rule_id
        # first_contact = "never" ignores verdicts of trials; those of real processes count.
        is_wanted = self._config.first_contact != "never" or rule in FOUND_BY_NO_TRIAL
        if is_wanted and rule not in self._limits.accept:
            is_of_trial = rule not in FOUND_BY_NO_TRIAL  # of the others the message says when
            incident = _dated(found.incident, found.time) if is_of_trial else found.incident
            entry.change(Plugin.quarantined, incident, found.time)

    def _suspicion(self, entry: PluginEntry) -> Incident | None:
        """Return the incident that makes these bytes suspect, None for none.

        A process ended that was loading them, and nothing has loaded them without harm since.
        """
        if self._quarantine_store().is_empty:
            return None
        sha256 = entry.plugin.sha256
        found = self._quarantine_store().suspicion(sha256) if sha256 else None
        return None if found is None else found.incident

    def _quarantine_store(self) -> QuarantineStore:
        if self._quarantine is None:
            self._quarantine = QuarantineStore.of_process()
        return self._quarantine

    def _recall(self, entry: PluginEntry) -> bool:
        """Return whether a plugin need not be tried: its bytes were, and did no harm since."""
        known = entry.plugin.known
        if known is None or self._config.first_contact == "always" or self._suspicion(entry):
            return False
        finding = known.finding if known.tried else None
        if finding is None:
            finding = self._cache.finding_for(known)
        if finding is None and self._config.first_contact == "never":
            finding = known.finding
        if finding is None or not finding.is_clean:
            return False
        entry.change(Plugin.accepted, finding, "its bytes did no harm when they were tried before")
        if finding is not known.finding:
            self._judge_opened(entry, finding)
        return True

    def _judge_opened(self, entry: PluginEntry, finding: Finding) -> None:
        """Judge what the code of a plugin opens beside what the scan knew of."""
        if finding.opened:
            plugin = entry.plugin
            judge = TrustJudge(trust_of(self._config), python_path=sys.path)
            trust = judge.judge_opened(plugin.candidate, plugin.trust, finding.opened)
            entry.change(Plugin.judged, trust)

    @property
    def timeout_s(self) -> float:
        """How long another process that tries plugins may go without a finding."""
        return self._limits.seconds + _TIMEOUT_S

    def is_shared(self, entry: PluginEntry) -> bool:
        """Return whether one process tries a plugin for all; else each has to."""
        known = entry.plugin.known
        is_storable = (
            known is not None and known.storable and self._config.first_contact != "always"
        )
        return is_storable and bool(entry.plugin.sha256) and not self._suspicion(entry)

    def try_out(
        self, entries: Sequence[PluginEntry], report_progress: Callable[[], None]
    ) -> list[Finding]:
        """Try plugins and return what was found, when all have been tried. [any thread]

        Call it without the service's lock: a plugin may hang until its time limit.
        """
        # Imported where there is something to try only; most processes have nothing.
        from modular_tf.first_contact.trials import Trials, try_plugins  # noqa: PLC0415

        tasks = [entry.plugin.task for entry in entries]

        def report(*_: object) -> None:
            report_progress()

        def mark(number: int) -> AbstractContextManager[str]:
            return self.noted(entries[number].plugin, TRYING)

        if not self._keeps_warm:
            return try_plugins(tasks, self._limits, report=report, mark=mark)
        # No thread waits for the plugin of another, which may hang.
        trials, self._trials = self._trials, None
        trials = trials or Trials(self._limits)
        try:
            return trials.try_plugins(tasks, report=report, mark=mark)
        finally:
            if self._keeps_warm and self._trials is None:
                self._trials = trials
            else:
                trials.close()

    def conclude(self, entries: Sequence[PluginEntry], findings: Iterable[Finding]) -> None:
        """Apply the findings of trials to the plugins that were tried."""
        for entry, finding in zip(entries, findings, strict=True):
            if entry.plugin.state is State.FOUND:  # another thread may have been faster
                self._conclude(entry, finding)
        if entries:
            self._cache.save()

    def keep_warm(self) -> None:
        """Keep the processes of trials from now on, for the next plugins, until `close`."""
        self._keeps_warm = True

    def close(self) -> None:
        """End the stored processes; those of a running trial end after it. Safe to call twice."""
        self._keeps_warm = False
        trials, self._trials = self._trials, None
        if trials is not None:
            trials.close()

    def _conclude(self, entry: PluginEntry, finding: Finding) -> None:
        incident = finding.incident
        if incident is None:
            entry.change(
                Plugin.accepted, finding, "it did no harm to the process that it was tried in"
            )
            self._remember(entry, finding, tried=finding.storable)
            self._judge_opened(entry, finding)
            return
        if self._config.first_contact == "never":
            # Tried only because an earlier process died while loading it, so report that death.
            incident = self._suspicion(entry) or incident
        plugin = entry.change(Plugin.quarantined, incident, time.time())
        if not incident.is_not_tried and plugin.sha256:
            self._quarantine_store().remember(plugin.sha256, plugin.name, plugin.path, incident)

    def _remember(self, entry: PluginEntry, finding: Finding, *, tried: bool) -> None:
        if entry.plugin.known is not None:
            known = entry.plugin.known._replace(tried=tried, finding=finding)
            if finding.storable:  # which has all that its code opens
                known = known._replace(opened_before=())
            entry.change(lambda plugin: plugin._replace(known=known))
            self._cache.remember(known)

    def remember_offer(self, entry: PluginEntry) -> None:
        """Store what a plugin registered that was mapped without having been tried before.

        Its loading has to be complete: a part of a finding is not stored.
        """
        plugin = entry.plugin
        found = None if plugin.outcome is None else plugin.outcome.finding
        if found is None or entry.library is None or plugin.known is None:
            return
        # What was opened in its trial is not seen here.
        opened = () if plugin.known.finding is None else plugin.known.finding.opened
        if (found := found._replace(opened=opened)) != plugin.known.finding:
            self._remember(entry, found, tried=plugin.known.tried)

    @contextmanager
    def noted(self, plugin: Plugin, kind: str = LOADING) -> Iterator[str]:
        """Name a plugin as the culprit if this process ends in it, as `Notes.around`."""
        sha256 = plugin.sha256
        if plugin.is_bundled or not sha256:
            yield ""
            return
        known = (plugin.name, plugin.path, sha256)
        is_suspect = _read_quarantine_again().suspicion(sha256) is not None
        with self._notes.around(kind, *known, was_suspect=is_suspect) as path:
            yield path
        if is_suspect and kind == LOADING:
            _read_quarantine_again().clear_suspicion(sha256)


def _read_quarantine_again() -> QuarantineStore:
    """Return the quarantine, read anew from the disk, for callers without the service's lock."""
    store = QuarantineStore.of_process()
    if store.shortage is not None:
        raise store.shortage
    return store


def _dated(incident: Incident, found: float) -> Incident:
    """Return an incident of an earlier trial, whose message says when that was."""
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(found))
    return incident._replace(message=f"{incident.message}; this was found on {when}")
