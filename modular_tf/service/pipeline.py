"""The steps from what discovery found to what is registered: judge, try out, register."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.service.admission import Admission
from modular_tf.service.configuration import trust_of
from modular_tf.service.deferred_library import DeferredLibrary
from modular_tf.service.lifetime import entry_point
from modular_tf.service.plugin_entry import Attempt
from modular_tf.service.registrations import Registrations

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.service.configuration import Config
    from modular_tf.service.hooks import Hooks
    from modular_tf.service.lifetime import ServiceLock
    from modular_tf.service.plugin import Plugin
    from modular_tf.service.plugin_entry import PluginEntry
    from modular_tf.service.plugins import KnownPlugins
    from modular_tf.service.registrations import Registries


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

    def try_out(self, untried: Sequence[PluginEntry]) -> None:
        """Try the plugins that have to be, in child processes, and conclude what may run.

        What another application tries now is not tried here: this waits for what it finds, unless
        each process has to try for itself.
        """
        if not untried:
            return
        with self._lock:
            shared = [entry for entry in untried if self._admission.is_shared(entry)]
        if not shared:
            self._try(untried, lambda: None)
            return
        self._known.cache.turn.find_out(
            untried,
            unknown=self._recall_anew,
            find_out=self._try,
            patience_s=self._admission.patience_s,
            check=self._lock.check_open,
        )

    def _recall_anew(self, entries: Sequence[PluginEntry]) -> list[PluginEntry]:
        notes = self._admission.notes_for(entries, anew=True)
        with self._lock:
            return self._admission.recall_anew(entries, notes)

    def _try(self, entries: Sequence[PluginEntry], tell_progress: Callable[[], None]) -> None:
        findings = self._admission.try_out(entries, tell_progress)
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
            mark = self._admission.mark
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
