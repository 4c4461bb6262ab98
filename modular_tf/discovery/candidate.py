"""Candidates: files that may be plugins, and the sources that find them."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.codec import row
from modular_tf.discovery.sources.installed import unpacked_wheel
from modular_tf.rules import Violation  # noqa: TC001

if TYPE_CHECKING:
    from modular_tf.discovery.probe import Probe


class Kind(Enum):
    """What a plugin registers."""

    FILESYSTEM = "filesystem"
    DEVICE = "device"
    KERNEL = "kernel"
    GRAPH = "graph"
    PROFILER = "profiler"
    NEXT_DEVICE = "next_device"

    def __str__(self) -> str:
        return self.value


SERVED_KINDS = frozenset((Kind.FILESYSTEM, Kind.DEVICE, Kind.KERNEL))


class Source(Enum):
    """The sources of candidates, in order of precedence."""

    ARGUMENT = "argument"
    ENVIRONMENT = "environment"
    TF_ENVIRONMENT = "tf-environment"
    CONFIG = "config"
    ENTRY_POINT = "entry-point"
    TENSORFLOW_PLUGINS = "tensorflow-plugins"
    DISTRIBUTION = "distribution"
    USER_DIRECTORY = "user-directory"
    BUNDLED = "bundled"

    def __str__(self) -> str:
        return self.value


class Twin(NamedTuple):
    """Another path to a file that is a candidate already."""

    path: str
    source: Source
    origin: str


class Candidate(NamedTuple):
    """A file that may be a plugin and was not read yet.

    Attributes:
        path: As it was found, made absolute; links are kept, since `$ORIGIN` follows them.
        real_path: The same with links resolved.
        source: The source of highest precedence that found it.
        origin: What named it: a variable, a distribution with version, a directory.
        distribution: Normalised name of the installed distribution that brings it, if known.
        identity: Device and inode number of the file, or of a link that leads nowhere.
        name: Short name for users, unique in one discovery.
        twins: Later sightings of the same file.
    """

    path: str
    real_path: str
    source: Source
    origin: str
    distribution: str | None
    identity: tuple[int, int]
    name: str
    twins: tuple[Twin, ...] = ()

    @property
    def brought_by(self) -> str | None:
        """Name and version of the distribution that brings it; None where none is known."""
        if self.distribution is None:
            return None
        for origin in (self.origin, *(twin.origin for twin in self.twins)):
            label = origin.partition(": ")[0]  # an entry point's name follows
            if label.partition(" ")[0] == self.distribution:
                return label
        wheel = unpacked_wheel(self.path)
        return self.distribution if wheel is None else wheel.label


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
