"""The way of plugins through a service, from what discovery found to what is registered."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.events.delivery import delivers_at_end
from modular_tf.rules.shortage import ShortageError
from modular_tf.service.admission import Admission
from modular_tf.service.configuration import trust_of
from modular_tf.service.kept.claims import find_out_once
from modular_tf.service.plugin import Attempt
from modular_tf.service.report import State

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from modular_tf.first_contact.finding import Finding
    from modular_tf.service.configuration import Config
    from modular_tf.service.hooks import Hooks
    from modular_tf.service.plugin import PluginEntry
    from modular_tf.service.plugins import KnownPlugins
    from modular_tf.service.registries import Registries
    from modular_tf.service.service_lock import ServiceLock


class Judged(NamedTuple):
    """Plugins that are on their way: judged by what is known of them, and not registered yet.

    Attributes:
        entries: The plugins.
        untried: Those of them that have to be tried.
    """

    entries: Sequence[PluginEntry]
    untried: Sequence[PluginEntry]


class PluginPipeline:
    """Takes plugins of one service from candidates to registrations, several at once. [any thread]

    Three steps: judge, try out, register. It takes the service's lock itself, but lets go of it
    while it asks hooks and while plugins are tried, so that others need not wait for those.

    Args:
        lock: The service's.
        config: What the user decided.
        known: The plugins of the service.
        registries: Where plugins register.
        hooks: Who may forbid a plugin, and is told what became of it.
    """

    def __init__(
        self,
        lock: ServiceLock,
        config: Config,
        known: KnownPlugins,
        registries: Registries,
        hooks: Hooks,
    ) -> None:
        self._lock = lock
        self._config = config
        self._known = known
        self._registries = registries
        self._hooks = hooks
        self._admission = Admission(config, known.cache)
        self._seals = False  # whether plugins are mapped from copies
        self._running = ForkLock()  # whoever runs the whole way; the next has less to try then

    def run(self, entries: Sequence[PluginEntry], *, eager: bool = False) -> None:
        """Take plugins all the way; those that are loaded already stay so.

        Args:
            entries: The plugins.
            eager: Whether they are mapped now, whatever the configuration says.

        Raises:
            ClosedError: The service is closed.
        """
        self._run(self.vetoes(entries), eager=eager)

    @delivers_at_end
    def _run(self, vetoes: dict[PluginEntry, str | None], *, eager: bool) -> None:
        if eager or self._config.load == "eager":
            _open_registered(vetoes)
        with self._running:
            attempt = Attempt()
            try:
                judged = self.judge(vetoes, attempt)
                self.try_out(judged)
                with self._lock:
                    known = [entry for entry in judged.entries if self._known.has(entry)]
                    self.register(known, eager=eager)
            finally:
                attempt.is_over = True

    def vetoes(self, entries: Iterable[PluginEntry]) -> dict[PluginEntry, str | None]:
        """Ask the hooks, which is users' code and not for the lock, why plugins are forbidden.

        Returns:
            The answers; without the plugins for which a hook asks for this while it is asked.
        """
        if self._hooks.is_asking("modular_tf_veto"):
            return {entry: None for entry in entries if entry.state is not State.FOUND}
        return {entry: self._veto_of(entry) for entry in entries}

    def _veto_of(self, entry: PluginEntry) -> str | None:
        if entry.state is not State.FOUND or self._config.why_disabled(entry.name) is not None:
            return None
        try:
            return self._hooks.veto(lambda: entry.probe)
        except ShortageError as error:
            with self._lock:
                entry.postpone("policy", error)
            return None

    @delivers_at_end
    def judge(self, vetoes: dict[PluginEntry, str | None], attempt: Attempt) -> Judged:
        """Apply the user's decisions and what is remembered.

        Args:
            vetoes: The plugins, with what hooks say of them.
            attempt: Is over when somebody else may begin with them.

        Raises:
            ClosedError: The service is closed.
        """
        with self._lock:
            self._lock.check_open()
            for entry, veto in vetoes.items():
                entry.attempt = attempt
                entry.sealed = entry.sealed or (self._seals and not entry.bundled)
                entry.apply_policy(self._config, veto)
            return Judged(list(vetoes), self._admission.recall(vetoes))

    def try_out(self, judged: Judged) -> None:
        """Try the plugins that have to be, in child processes, and conclude what may run.

        What another application tries now is not tried here: this waits for what it finds.

        Raises:
            ClosedError: The service was closed meanwhile.
        """
        if not judged.untried:
            return
        with self._lock:
            keys = {entry: self._admission.claim_of(entry) for entry in judged.untried}
        find_out_once(
            self._known.cache.claims("trial"),
            judged.untried,
            keys.__getitem__,
            unknown=self._recall_anew,
            find_out=self._try,
            patience_s=self._admission.patience_s,
            check=self._lock.check_open,
        )

    @delivers_at_end
    def _recall_anew(self, entries: Sequence[PluginEntry]) -> list[PluginEntry]:
        with self._lock:
            return self._admission.recall_anew(entries)

    def _try(self, entries: Sequence[PluginEntry], tell_progress: Callable[[], None]) -> None:
        self._conclude(entries, self._admission.try_out(entries, tell_progress))

    @delivers_at_end
    def _conclude(self, entries: Sequence[PluginEntry], findings: Sequence[Finding]) -> None:
        with self._lock:
            self._admission.conclude(entries, findings)

    @delivers_at_end
    def register(
        self,
        entries: Collection[PluginEntry],
        *,
        eager: bool = False,
    ) -> None:
        """Register plugins that may run, and tell the hooks of those whose state changed.

        Args:
            entries: The plugins, judged and tried, that are still wanted.
            eager: As for `run`.

        Raises:
            ClosedError: The service is closed.
        """
        eager = eager or self._config.load == "eager"
        # The lock file is looked up once, not for each plugin.
        config = replace(self._config, trust=trust_of(self._config))
        with self._lock:
            self._lock.check_open()
            for entry in entries:
                entry.register(config, self._registries, self._admission.mark, eager=eager)
                self._admission.remember_offer(entry)
                if entry.state is not entry.told:
                    entry.told = entry.state
                    self._hooks.outcome(entry.record)
            self._known.cache.save()

    def expect_changes(self) -> None:
        """From now on map plugins from copies, and keep what they are tried in for the next."""
        self._seals = True
        self._admission.keep_warm()

    def close(self) -> None:
        """End what plugins are tried in; safe to call twice."""
        self._admission.close()


def _open_registered(entries: Iterable[PluginEntry]) -> None:
    """Map plugins that are registered already, without a lock of the service.

    A thread that maps one for its first use may be in a signal handler that waits for that lock,
    and an init that hangs would keep the lock.
    """
    for entry in entries:
        if entry.generation is not None and entry.generation.is_settled:
            with suppress(ShortageError):  # the first use does it
                entry.generation.open_now()
