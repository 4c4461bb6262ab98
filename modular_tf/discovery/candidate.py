"""Candidates: files that may be plugins, and the sources that find them."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from modular_tf.discovery.sources.installed import unpacked_wheel

__all__ = ["Candidate", "Source", "Twin"]


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
