"""Which plugins may run in this process: by what is remembered of them, or by trying them now."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.first_contact.finding import Limits
from modular_tf.rules.trust import CALLS_SURVIVED, LOADING_SURVIVED
from modular_tf.service.configuration import trust_of
from modular_tf.service.kept.notes import Notes
from modular_tf.service.kept.quarantine import QuarantineStore
from modular_tf.service.plugin import Plugin
from modular_tf.service.report import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from modular_tf.first_contact.finding import Finding, Incident
    from modular_tf.first_contact.trials import Trials
    from modular_tf.service.configuration import Config
    from modular_tf.service.kept.notes import Note
    from modular_tf.service.kept.scan_cache import ScanCache
    from modular_tf.service.plugin_entry import PluginEntry

_SEEN_IN_PROCESS = (LOADING_SURVIVED, CALLS_SURVIVED)
_PATIENCE_S = 5.0  # beyond the time that one plugin may take


class Admission:
    """Decides for one service what may run in its process.

    Used under the service's lock, but for `notes_for` and `try_out`.
    """

    def __init__(self, config: Config, cache: ScanCache) -> None:
        self._config = config
        self._cache = cache
        self._quarantine: QuarantineStore | None = None
        self._notes = Notes.of_process()
        self._is_told = False  # of what ended processes before this one
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
        if (self._is_told and not anew) or all(entry.plugin.is_bundled for entry in entries):
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
        untried = [entry for entry in new if entry.plugin.is_new_here and not self._recall(entry)]
        if self._config.first_contact != "never":
            return untried
        for entry in untried:
            if not self._suspicion(entry):
                why = f"not tried, as {self._config.origin} says"
                entry.change(Plugin.untried, why)
        return [entry for entry in untried if self._suspicion(entry)]

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
            self._is_told = True
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
        is_wanted = self._config.first_contact != "never" or rule in _SEEN_IN_PROCESS
        if is_wanted and rule not in self._limits.accept:
            is_of_trial = rule not in _SEEN_IN_PROCESS  # of the others the message says when
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
    def patience_s(self) -> float:
        """How long another process that tries plugins may go without a finding."""
        return self._limits.seconds + _PATIENCE_S

    def is_shared(self, entry: PluginEntry) -> bool:
        """Return whether one process tries a plugin for all; else each has to."""
        known = entry.plugin.known
        is_kept = known is not None and known.lasting and self._config.first_contact != "always"
        return is_kept and bool(entry.plugin.sha256) and not self._suspicion(entry)

    def recall_anew(
        self, entries: Sequence[PluginEntry], notes: list[Note] | None
    ) -> list[PluginEntry]:
        """Recall plugins once more, by what other processes have found since; see `recall`."""
        self._cache.refresh()
        return self.recall(entries, notes)

    def try_out(
        self, entries: Sequence[PluginEntry], tell_progress: Callable[[], None]
    ) -> list[Finding]:
        """Try plugins and return what was found, when all have been tried. [any thread]

        Call it without the service's lock: a plugin may hang until its time limit.
        """
        # Imported where there is something to try only; most processes have nothing.
        from modular_tf.first_contact.trials import Trials, try_plugins  # noqa: PLC0415

        tasks = [entry.plugin.task for entry in entries]

        def tell(number: int, finding: Finding) -> None:
            del number, finding
            tell_progress()

        def mark(number: int) -> AbstractContextManager[str]:
            return self._mark_trial(entries[number])

        if not self._keeps_warm:
            return try_plugins(tasks, self._limits, tell=tell, mark=mark)
        # No thread waits for the plugin of another, which may hang.
        trials, self._trials = self._trials, None
        trials = trials or Trials(self._limits)
        try:
            return trials.try_plugins(tasks, tell=tell, mark=mark)
        finally:
            self._put_back(trials)

    def _mark_trial(self, entry: PluginEntry) -> AbstractContextManager[str]:
        plugin = entry.plugin
        if not plugin.sha256:
            return nullcontext("")
        is_suspect = _store_now().suspicion(plugin.sha256) is not None
        return self._notes.around_trial(
            plugin.name, plugin.path, plugin.sha256, was_suspect=is_suspect
        )

    def _put_back(self, trials: Trials) -> None:
        """Store the processes of trials for the next plugins, or end them."""
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
            self._remember(entry, finding, tried=finding.lasting)
            self._judge_opened(entry, finding)
            return
        if self._config.first_contact == "never":
            # Tried only because an earlier process died while loading it, so report that death.
            incident = self._suspicion(entry) or incident
        plugin = entry.change(Plugin.quarantined, incident, time.time())
        if not incident.untried and plugin.sha256:
            self._quarantine_store().remember(plugin.sha256, plugin.name, plugin.path, incident)

    def _remember(self, entry: PluginEntry, finding: Finding, *, tried: bool) -> None:
        if entry.plugin.known is not None:
            known = entry.plugin.known._replace(tried=tried, finding=finding)
            if finding.lasting:  # which has all that its code opens
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

    def mark(self, plugin: Plugin) -> AbstractContextManager[object]:
        """Return a context that names a plugin as the culprit if this process ends in it."""
        if plugin.is_bundled or not plugin.sha256:
            return nullcontext()
        return self._marked(plugin, plugin.sha256)

    @contextmanager
    def _marked(self, plugin: Plugin, sha256: str) -> Iterator[None]:
        is_suspect = _store_now().suspicion(sha256) is not None
        known = (plugin.name, plugin.path, sha256)
        with self._notes.around_loading(*known, was_suspect=is_suspect):
            yield
        if is_suspect:
            _store_now().clear_suspicion(sha256)


def _store_now() -> QuarantineStore:
    """Return the quarantine, read anew from the disk, for callers without the service's lock."""
    store = QuarantineStore.of_process()
    if store.shortage is not None:
        raise store.shortage
    return store


def _dated(incident: Incident, found: float) -> Incident:
    """Return an incident of an earlier trial, whose message says when that was."""
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(found))
    return incident._replace(message=f"{incident.message}; this was found on {when}")
