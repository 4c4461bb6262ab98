"""The part of a probe that loading needs, which is small enough for the scan cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from modular_tf.codec import row
from modular_tf.discovery.kinds import Kind  # noqa: TC001  (the codec reads the types of fields)
from modular_tf.rules import Violation  # noqa: TC001

if TYPE_CHECKING:
    from modular_tf.discovery.probe import Probe

__all__ = ["LoadFacts"]


@row
class LoadFacts(NamedTuple):
    """The part of a probe that decides whether and how a plugin is mapped."""

    kinds: frozenset[Kind]
    problems: tuple[Violation, ...] = ()  # broken rules, the most significant first
    companions: tuple[str, ...] = ()  # libraries that it brings along, in the order of their needs
    absent: tuple[str, ...] = ()  # functions that it needs and that nobody defines (LD-017), sorted
    # files, of the plugin and of those loaded with it, that ask for an executable stack
    executable_stacks: tuple[str, ...] = ()

    @classmethod
    def of(cls, probe: Probe) -> LoadFacts:
        """Return the facts in a probe."""
        found = reversed(probe.libraries)
        return cls(
            kinds=probe.kinds,
            problems=probe.problems,
            companions=tuple(library.path for library in found if library.is_companion),
            absent=tuple(sorted({symbol.name for symbol in probe.missing_symbols})),
            executable_stacks=probe.executable_stacks,
        )

    @property
    def loadable(self) -> bool:
        """Whether it can be loaded here."""
        return not (self.problems and any(problem.is_error for problem in self.problems))
