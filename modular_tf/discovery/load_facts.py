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
    """The part of a probe that decides whether and how a plugin is mapped.

    Attributes:
        kinds: The kinds of plugin that it is.
        problems: The rules that it breaks, the most significant first.
        companions: Files of libraries that it brings along, in the order of their needs.
        absent: Functions that it needs and that are not defined anywhere (LD-017), sorted.
        executable_stacks: Files, its own and of libraries loaded with it, that ask for an
            executable stack.
    """

    kinds: frozenset[Kind]
    problems: tuple[Violation, ...] = ()
    companions: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
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
