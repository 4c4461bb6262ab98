"""The way of plugins through a service, from what discovery found to what is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from modular_tf.admission import Admission

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from modular_tf.configuration import Config
    from modular_tf.first_contact.finding import Finding
    from modular_tf.hooks import Hooks
    from modular_tf.plugin_entry import PluginEntry
    from modular_tf.registries import Registries
    from modular_tf.report import State
    from modular_tf.scan_cache import ScanCache


class Judged(NamedTuple):
    """Plugins that are on their way: judged by what is known of them, and not registered yet.

    Attributes:
        entries: The plugins.
        before: The state of each before that.
        untried: Those of them that have to be tried.
    """

    entries: Sequence[PluginEntry]
    before: Sequence[State]
    untried: Sequence[PluginEntry]


class PluginPipeline:
    """Takes plugins of one service from candidates to registrations, several at once.

    Three steps: judge, try out, register. Used under the service's lock, but for `try_out`, so
    that others need not wait for the plugins that are tried.

    Args:
        config: What the user decided.
        cache: What is known of libraries.
        registries: Where plugins register.
        hooks: Who may forbid a plugin, and is told what became of it.
    """

    def __init__(
        self, config: Config, cache: ScanCache, registries: Registries, hooks: Hooks
    ) -> None:
        self._config = config
        self._cache = cache
        self._registries = registries
        self._hooks = hooks
        self._admission = Admission(config, cache)
        self._seals = False  # whether plugins are mapped from copies

    def run(self, entries: Sequence[PluginEntry], *, eager: bool = False) -> None:
        """Take plugins all the way; those that are loaded already stay so.

        Args:
            entries: The plugins.
            eager: Whether they are mapped now, whatever the configuration says.
        """
        judged = self.judge(entries)
        self.register(judged, self.try_out(judged), eager=eager)

    def judge(self, entries: Sequence[PluginEntry]) -> Judged:
        """Apply the user's decisions and what is remembered."""
        before = [entry.state for entry in entries]
        for entry in entries:
            entry.sealed = entry.sealed or (self._seals and not entry.bundled)
            entry.apply_policy(self._config, self._hooks.veto)
        return Judged(entries, before, self._admission.recall(entries))

    def try_out(self, judged: Judged) -> list[Finding]:
        """Try the plugins that have to be, in other processes. [any thread]

        Returns:
            What was found, in the order of the untried.
        """
        return self._admission.try_out(judged.untried)

    def register(self, judged: Judged, findings: Iterable[Finding], *, eager: bool = False) -> None:
        """Register plugins that may run, and tell the hooks of those whose state changed.

        Args:
            judged: The plugins.
            findings: What was found of those that were tried.
            eager: As for `run`.
        """
        self._admission.conclude(judged.untried, findings)
        eager = eager or self._config.load == "eager"
        for entry, state in zip(judged.entries, judged.before, strict=True):
            entry.register(self._config, self._registries, self._admission.mark, eager=eager)
            self._admission.remember_offer(entry)
            if entry.state is not state:
                self._hooks.outcome(entry.record)
        self._cache.save()

    def expect_changes(self) -> None:
        """From now on map plugins from copies, and keep what they are tried in for the next."""
        self._seals = True
        self._admission.keep_warm()

    def close(self) -> None:
        """End what plugins are tried in; safe to call twice. [any thread]"""
        self._admission.close()
