"""The results of a run: the outcomes of each plugin, and whether it conforms."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.level import Level
from modular_tf.check.outcome import BAD, CONCLUSIVE, Verdict

if TYPE_CHECKING:
    from modular_tf.check.outcome import Outcome
    from modular_tf.check.settings import KnownDeviation


@dataclass(frozen=True, slots=True)
class PluginReport:
    """The results of one plugin.

    Attributes:
        path: The library's file.
        name: Its name for users.
        kinds: What it is: `filesystem`, `device`.
        profile: The name of the profile that it was checked by.
        level: The highest level that was asked for.
        seed: Of all that was random.
        outcomes: One for each check, subject and way, in the order of the catalogue.
        outdated: Known deviations that are none any more.
        remarks: What else was seen: why less was checked than was asked for.
        seconds: How long it took.
        root: The URI below which files were made, None for the kit's choice.
        repeated_by: The options of `modular-tf check` that try the same again.
        faults: How the kit itself failed, which left checks of a process without an outcome.
        unanswered: How many checks have no outcome, because of a fault or an interruption.
    """

    path: str
    name: str
    kinds: tuple[str, ...]
    profile: str
    level: Level
    seed: int
    outcomes: tuple[Outcome, ...]
    outdated: tuple[KnownDeviation, ...] = ()
    remarks: tuple[str, ...] = ()
    seconds: float = 0.0
    root: str | None = None
    repeated_by: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    unanswered: int = 0

    @property
    def counts(self) -> Counter[Verdict]:
        """How many outcomes there are of each verdict."""
        return Counter(outcome.verdict for outcome in self.outcomes)

    @property
    def counts_by_level(self) -> dict[Level, Counter[Verdict]]:
        """How many outcomes of each verdict there are at each level, the lowest first."""
        counts: dict[Level, Counter[Verdict]] = {}
        for outcome in self.outcomes:
            level = all_checks()[outcome.check_id].level
            counts.setdefault(level, Counter())[outcome.verdict] += 1
        return dict(sorted(counts.items()))

    @property
    def bad(self) -> list[Outcome]:
        """The outcomes by which it does not conform."""
        return [outcome for outcome in self.outcomes if outcome.verdict in BAD]

    @property
    def has_checked(self) -> bool:
        """Whether anything was checked at all."""
        return any(outcome.verdict in CONCLUSIVE for outcome in self.outcomes)

    @property
    def conforms(self) -> bool:
        """Whether something was checked, nothing is bad, and nothing was left open by a fault."""
        blocked = any(outcome.verdict is Verdict.BLOCKED for outcome in self.outcomes)
        return self.has_checked and not (self.bad or blocked or self.faults or self.unanswered)

    @property
    def level_reached(self) -> Level | None:
        """The highest level of those asked for that it passes with all below; None for none.

        A level counts where something of it was checked, and nothing of it is bad or blocked; none
        does where checks have no outcome.
        """
        reached = None
        for level in Level:
            if level > self.level or self.unanswered:
                break
            verdicts = [o.verdict for o in self.outcomes if all_checks()[o.check_id].level is level]
            if any(verdict in BAD or verdict is Verdict.BLOCKED for verdict in verdicts):
                break
            if any(verdict in CONCLUSIVE for verdict in verdicts):
                reached = level
        return reached


@dataclass(frozen=True, slots=True)
class Report:
    """The results of all plugins of one run.

    Attributes:
        plugins: In the order of the run.
        seconds: How long it took.
        interrupted: Whether the user ended it; there is less then than was asked for.
    """

    plugins: tuple[PluginReport, ...]
    seconds: float = 0.0
    interrupted: bool = False

    def __str__(self) -> str:
        from modular_tf.check.report.text import (  # noqa: PLC0415  (it is about this class)
            plugin_lines,
            summary_line,
        )

        return "\n".join(
            line
            for plugin in self.plugins
            for line in (*plugin_lines(plugin, verbose=False), summary_line(plugin))
        )

    @property
    def counts(self) -> Counter[Verdict]:
        """How many outcomes there are of each verdict."""
        return sum((plugin.counts for plugin in self.plugins), Counter())

    @property
    def has_checked(self) -> bool:
        """Whether anything was checked at all."""
        return any(plugin.has_checked for plugin in self.plugins)

    @property
    def faults(self) -> tuple[str, ...]:
        """How the kit itself failed."""
        return tuple(fault for plugin in self.plugins for fault in plugin.faults)

    @property
    def conforms(self) -> bool:
        """Whether every plugin conforms."""
        whole = self.has_checked and not self.interrupted
        return whole and all(plugin.conforms for plugin in self.plugins)
