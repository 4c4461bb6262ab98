"""From a library file to the processes of checks that it is to go through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.check.offered import offered_by
from modular_tf.check.outcome import Pass
from modular_tf.check.sanitizer_runtime import lacking_runtime
from modular_tf.check.selection import OF_ANY_KIND, selected
from modular_tf.check.settings import repeated_by
from modular_tf.check.target import Target
from modular_tf.discovery.candidate import Kind, LoadFacts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.check.check import Check
    from modular_tf.check.offered import Offered
    from modular_tf.check.settings import CheckSettings
    from modular_tf.discovery.probe import Probe

Step = tuple[Target, tuple[str, ...]]
"""One process: what it works on, and the ids of the checks that it tries, in order."""

_SCHEMED = "filesystem"
_KINDS = {_SCHEMED: Kind.FILESYSTEM, "device": Kind.DEVICE, "kernel": Kind.KERNEL}


@dataclass(frozen=True, slots=True)
class PluginPlan:
    """What one plugin is to go through.

    Attributes:
        path: The library's file, absolute.
        name: Its name for users.
        kinds: What it is: `filesystem`, `device`, `kernel`; none where its bytes do not say.
        offered: What it registers, as far as that was needed to know.
        steps: Its processes, in the order of a report.
        seed: Of all that is random.
        lacks: What this process was started without, as a report says it; None for nothing.
        untried: How many outcomes there would be of schemes that were asked for, had it one.
    """

    path: str
    name: str
    kinds: tuple[str, ...]
    offered: Offered | None
    steps: tuple[Step, ...]
    seed: int
    lacks: str | None = None
    untried: int = 0


def plan_of(probe: Probe, settings: CheckSettings, *, seed: int) -> PluginPlan:
    """Plan the checks of one library.

    What it registers is found out in a child process, where checks are wanted that need to know.

    Args:
        probe: Of the library.
        settings: What the user wants.
        seed: Of all that is random.

    Raises:
        ConfigError: A name in the settings matches no check.
    """
    kinds = tuple(name for name, kind in _KINDS.items() if kind in probe.kinds)
    checks = selected(settings, kinds or tuple(_KINDS))
    if not kinds:  # it is no plugin: the checks of files say why
        checks = [check for check in checks if check.kind == OF_ANY_KIND]
    facts = LoadFacts.of(probe)
    needs_offer = any(check.ways != {Pass.LIBRARY} for check in checks)
    offered = offered_by(probe, facts) if needs_offer and facts.loadable else None
    plan = _Plan(probe.candidate.path, facts, settings, offered, seed)
    return PluginPlan(
        path=probe.candidate.path,
        name=probe.candidate.name,
        kinds=kinds,
        offered=offered,
        steps=tuple(plan.steps(checks)),
        seed=seed,
        lacks=lacking_runtime(probe),
        untried=plan.untried(checks),
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    path: str
    facts: LoadFacts
    settings: CheckSettings
    offered: Offered | None
    seed: int

    def steps(self, checks: Sequence[Check]) -> Iterator[Step]:
        for kind in dict.fromkeys(check.kind for check in checks):
            of_kind = [check for check in checks if check.kind == kind]
            for target in self._targets(kind):
                for group in dict.fromkeys(check.group for check in of_kind):
                    ids = tuple(
                        check.id
                        for check in of_kind
                        if check.group == group and target.reached in check.ways
                    )
                    if ids:
                        yield target, ids

    def untried(self, checks: Sequence[Check]) -> int:
        """Return how many outcomes each scheme would have, where the plugin has none of those."""
        if self.offered is None or not self.offered.schemes or self._schemes():
            return 0
        of_schemes = (check.ways - {Pass.LIBRARY} for check in checks if check.kind == _SCHEMED)
        return sum(map(len, of_schemes))

    def _targets(self, kind: str) -> Iterator[Target]:
        yield self._target(kind, Pass.LIBRARY)
        if self.offered is None or kind == OF_ANY_KIND:
            return
        if kind == "kernel":
            if self.offered.kernels:
                yield self._target(kind, Pass.HOST)
            return
        for reached in (Pass.RAW, Pass.HOST):
            if kind == _SCHEMED:
                for scheme in self._schemes():
                    yield self._target(kind, reached, scheme=scheme)
            elif self.offered.device_type is not None:
                for ordinal in self.settings.options.get("ordinals", [0]):
                    yield self._target(kind, reached, ordinal=ordinal)

    def _schemes(self) -> Sequence[str]:
        """Return the schemes of the plugin that are to be tried."""
        schemes = () if self.offered is None else self.offered.schemes
        wanted = wanted_schemes(self.settings)
        return [scheme for scheme in schemes if wanted is None or scheme in wanted]

    def _target(
        self, kind: str, reached: Pass, *, scheme: str | None = None, ordinal: int | None = None
    ) -> Target:
        return Target(
            path=self.path,
            kind=kind,
            reached=reached,
            scheme=scheme,
            ordinal=ordinal,
            root=self.settings.root,
            companions=self.facts.companions,
            absent=self.facts.absent,
            seed=self.seed,
            options={**self.settings.profile.options, **self.settings.options},
            repeated_by=repeated_by(self.settings, self.seed),
        )


def wanted_schemes(settings: CheckSettings) -> Sequence[str] | None:
    """Return the schemes that the user names, or the one of the root; None for all of a plugin."""
    wanted: Sequence[str] | None = settings.options.get("schemes")
    if wanted is None and settings.root is not None:
        named, separator, _ = settings.root.partition("://")
        return [named if separator else ""]
    return wanted


def subject_of(target: Target, offered: Offered | None) -> str:
    """Return what a report calls a target: `ram://`, `GPU:0`, `kernels`, "" for the library."""
    if target.scheme is not None:
        return f"{target.scheme}://" if target.scheme else "local paths"
    if target.kind == "kernel" and target.reached is Pass.HOST:
        return "kernels"
    if target.ordinal is not None and offered is not None:
        return f"{offered.device_type}:{target.ordinal}"
    return ""


def number_of_checks(plan: PluginPlan) -> int:
    """Return how many outcomes there will be."""
    return sum(len(ids) for _, ids in plan.steps)
