"""Installed distributions, found by the names of their metadata directories alone.

Directory names have name and version, and two files have what else is needed. importlib-metadata
would take 41 ms for 110 of them beside 161 ms for all of `modular-tf list`, and 33 ms to import. It
loads the objects of hooks, but does not read `entry_points.txt`: our values name files
(`package:relative/path.so`), which version 8.7 refuses with everything else in the same file, and
one broken line of another group makes all versions refuse the file.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.concurrency.computed_once import computed_once
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

UNPACKED_SUFFIX = ".wheel"
"""How the name of a folder ends that has the plugins of one wheel, as an installer places them."""

_SUFFIXES = (".dist-info", ".egg-info")
_MOST_MIB = {"METADATA": 16, "RECORD": 64, "entry_points.txt": 1}
_MOST_ENTRIES = 1000
_MOST_CHARACTERS = 4096
_REQUIRED_TENSORFLOW = (  # of bounded length: it is shown
    r"Requires-Dist:\s*(tensorflow(?:-cpu|-gpu)?|tf-nightly)"
    r"\s*\(?([=<>!~][\w.*+=<>!~, ]{1,60}?)\s*\)?\s*(?:;.*)?"
)


class ExcessiveMetadataError(ValueError):
    """Metadata of a distribution exceed a bound (LD-145)."""


class InstalledDistribution(NamedTuple):
    """One distribution on the path."""

    name: str  # normalised as package indexes do: lower case, single hyphens
    version: str  # as in the directory's name; empty if that has none
    location: str  # the directory that it is installed in
    metadata_directory: str  # `.dist-info` or `.egg-info`

    @property
    def label(self) -> str:
        """Name and version, for reports."""
        return f"{self.name} {self.version}".rstrip()

    def path_of(self, file: str) -> str:
        """Return the path of a metadata file."""
        return os.path.join(self.metadata_directory, file)

    def read(self, file: str) -> bytes:
        """Return the bytes of METADATA, RECORD or entry_points.txt; none if it is not there."""
        most = _MOST_MIB[file]
        try:
            with open(self.path_of(file), "rb") as stream:
                content = stream.read((most << 20) + 1)
        except (FileNotFoundError, NotADirectoryError):
            return b""
        if len(content) > most << 20:
            raise ExcessiveMetadataError(f"is longer than {most} MiB")
        return content


class Installation:
    """The installed distributions as one search sees them: each file of theirs is read once."""

    def __init__(self, python_path: Iterable[str]) -> None:
        self.python_path = tuple(python_path)
        self._entry_points: dict[str, bytes] = {}

    @computed_once
    def distributions(self) -> tuple[InstalledDistribution, ...]:
        """The distributions; see `installed_distributions`."""
        return tuple(installed_distributions(self.python_path))

    def entry_points(self, distribution: InstalledDistribution) -> bytes:
        """Return the bytes of a distribution's `entry_points.txt`; none if it has no such file."""
        directory = distribution.metadata_directory
        if directory not in self._entry_points:
            self._entry_points[directory] = distribution.read("entry_points.txt")
        return self._entry_points[directory]


def installed_distributions(python_path: Iterable[str]) -> Iterator[InstalledDistribution]:
    """Yield the distributions on `python_path`; of one name only the first, as import does."""
    seen = set()
    for location in python_path:
        try:
            entries = sorted(os.listdir(location))
        except OSError as error:  # archives and missing entries are common on the path
            raise_shortage(error)
            continue
        for entry in entries:
            # An interrupted pip leaves directories behind that begin with a tilde.
            if entry.endswith(_SUFFIXES) and not entry.startswith("~"):
                name, _, rest = entry.rpartition(".")[0].partition("-")
                name = re.sub(r"[-_.]+", "-", name).lower()
                if name not in seen:
                    seen.add(name)
                    directory = os.path.join(location, entry)
                    yield InstalledDistribution(name, rest.partition("-")[0], location, directory)


def entries_of_group(content: bytes, group: str) -> list[tuple[str, str]]:
    """Return names and values of one group's entry points, in the order of the file."""
    found: list[tuple[str, str]] = []
    section = None
    for number, line in enumerate(content.decode("utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith(("#", ";")):
            continue
        if text.startswith("[") and text.endswith("]"):
            section = text[1:-1].strip()
        elif section == group:
            if len(text) > _MOST_CHARACTERS:
                raise ExcessiveMetadataError(f"line {number} has {len(text)} characters")
            if len(found) == _MOST_ENTRIES:
                raise ExcessiveMetadataError(f"group {group} has more than {_MOST_ENTRIES} entries")
            name, equals, value = text.partition("=")
            if not equals or not name.strip():
                raise ValueError(f"line {number}: expected 'name = value', found {text!r}")
            found.append((name.strip(), value.strip()))
    return found


def unpacked_folder(path: str) -> str | None:
    """Return the folder of an unpacked wheel that a file is in; None for none."""
    above, found, _ = path.rpartition(f"{UNPACKED_SUFFIX}{os.sep}")
    return above + UNPACKED_SUFFIX if found else None


def unpacked_wheel(path: str) -> InstalledDistribution | None:
    """Return the distribution whose unpacked wheel a file is in; None for none."""
    folder = unpacked_folder(path)
    return None if folder is None else next(installed_distributions((folder,)), None)


def required_tensorflow(name: str | None, python_path: Iterable[str]) -> str | None:
    """Return the TensorFlow that a distribution requires, such as "tensorflow==2.21.*"."""
    found = installed_distributions(python_path) if name is not None else ()
    for distribution in (it for it in found if it.name == name):
        try:
            metadata = distribution.read("METADATA")
        except (ExcessiveMetadataError, OSError) as error:
            raise_shortage(error)
            return None
        header = metadata.decode("utf-8", "replace").partition("\n\n")[0]
        # With many blanks together the pattern would take the square of their number.
        lines = (" ".join(line.split()) for line in header.splitlines())
        matches = (re.fullmatch(_REQUIRED_TENSORFLOW, line) for line in lines)
        return next((found[1] + found[2] for found in matches if found is not None), None)
    return None
