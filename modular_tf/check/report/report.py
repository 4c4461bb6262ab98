"""The results of a run: the outcomes of each plugin, and whether it conforms."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.level import Level
from modular_tf.check.outcome import BAD, CONCLUSIVE, Outcome, Verdict
from modular_tf.check.settings import KnownDeviation  # noqa: TC001  (the codec reads it)

if TYPE_CHECKING:
    from collections.abc import Iterable


class Conformance(Enum):
    """What the outcomes of a plugin, or of all plugins of a run, come to."""

    CONFORMS = "conforms"
    DEVIATES = "does not conform"
    UNKNOWN = "is not known to conform"
    UNCHECKED = "nothing was checked"

    @property
    def style(self) -> str:
        """How each form of a report shows it: `good`, `bad`, or `open` where it is not known."""
        return {"CONFORMS": "good", "DEVIATES": "bad"}.get(self.name, "open")


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
        only: What was selected of the checks: ids and groups, or globs over them; empty for all.
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
    only: tuple[str, ...] = ()

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
    def conformance(self) -> Conformance:
        """What all outcomes together say; each form of a report says the same."""
        if self.bad:
            return Conformance.DEVIATES
        if not self.has_checked:
            return Conformance.UNCHECKED
        return Conformance.UNKNOWN if self.left_open else Conformance.CONFORMS

    @property
    def left_open(self) -> str:
        """Why it is not known whether it conforms, where nothing is bad; "" for nothing."""
        blocked = self.counts[Verdict.BLOCKED]
        parts = [f"{blocked} blocked"] if blocked else []
        if self.unanswered or self.faults:
            parts.append(f"{self.unanswered} without an outcome")
        return f"checks left open: {' and '.join(parts)}" if parts else ""

    @property
    def verdict(self) -> str:
        """The conformance in words; where checks were selected, of these alone."""
        said = self.conformance
        if not self.only or said is Conformance.UNCHECKED:
            return said.value
        return f"{said.value} in what was selected"

    @property
    def conforms(self) -> bool:
        """Whether something was checked, nothing is bad, and nothing was left open."""
        return self.conformance is Conformance.CONFORMS

    @property
    def level_reached(self) -> Level | None:
        """The highest level of those asked for that it passes with all below; None for none.

        A level counts where something of it was checked, and nothing of it is bad or blocked; none
        does where checks have no outcome, or where a part of them was selected.
        """
        if self.only:
            return None
        reached, counts = None, self.counts_by_level
        for level in Level:
            verdicts = counts.get(level, Counter()).keys()
            if level > self.level or self.unanswered or verdicts & {*BAD, Verdict.BLOCKED}:
                break
            if verdicts & CONCLUSIVE:
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
        from modular_tf.check.report.text import report_lines  # noqa: PLC0415  (it is about this)

        return "\n".join(map(str, report_lines(self)))

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
    def conformance(self) -> Conformance:
        """What all plugins together say."""
        said = {plugin.conformance for plugin in self.plugins}
        if Conformance.DEVIATES in said:
            return Conformance.DEVIATES
        if not self.has_checked:
            return Conformance.UNCHECKED
        whole = said == {Conformance.CONFORMS} and not self.interrupted
        return Conformance.CONFORMS if whole else Conformance.UNKNOWN

    @property
    def conforms(self) -> bool:
        """Whether every plugin conforms."""
        return self.conformance is Conformance.CONFORMS


def labels(plugins: Iterable[PluginReport]) -> dict[str, str]:
    """Return what a report calls each plugin, by path: its file name, or what tells it apart."""
    paths = [plugin.path for plugin in plugins]
    names = Counter(map(os.path.basename, paths))
    return {
        path: path if names[os.path.basename(path)] > 1 else os.path.basename(path)
        for path in paths
    }
