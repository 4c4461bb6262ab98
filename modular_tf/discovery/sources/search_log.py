"""The log of a search: files, places and problems, in the order in which they were found."""

from __future__ import annotations

import os
import stat
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.sources.installed import UNPACKED_SUFFIX, unpacked_wheel
from modular_tf.discovery.sources.search_paths import NO_HOME, expand_home
from modular_tf.rules import Violation
from modular_tf.rules import loading as rules
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.discovery.candidate import Source
    from modular_tf.rules import Rule

MOST_LIBRARIES = 10_000
"""How many libraries of a folder, or of a distribution, are candidates (LD-145)."""


class Sighting(NamedTuple):
    """One file that a source pointed to, by an absolute path with links kept; see `Candidate`."""

    path: str
    source: Source
    origin: str
    distribution: str | None = None


class SearchedPlace(NamedTuple):
    """One place that was looked at, or would have been.

    Attributes:
        path: The file or directory.
        source: The source that names it.
        origin: What named it.
        exists: Whether it is there.
        hits: How many files found there count as candidates, twins included.
        ignored: Why it was not searched, or None.
    """

    path: str
    source: Source
    origin: str
    exists: bool
    hits: int
    ignored: str | None = None


class SearchLog:
    """Collects sightings, places and problems; sources write to it in order of precedence."""

    def __init__(self) -> None:
        self.sightings: list[Sighting] = []
        self.places: list[SearchedPlace] = []
        self.problems: list[Violation] = []
        # Folders of unpacked wheels that are still to be searched, each with the source that found
        # it.
        self.unpacked_folders: list[tuple[str, Source]] = []
        self._libraries: Counter[str] = Counter()  # of entry points, by distribution

    def visit(
        self,
        path: str,
        source: Source,
        origin: str,
        *,
        distribution: str | None = None,
        required: bool = False,
        keep: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Search a file with any name, or a directory; note the unpacked wheels in it.

        `~` and relative paths are resolved. `origin` is what named the place, `distribution` what
        brings it. If `required`, it is a problem if there is nothing; `keep` returns whether a file
        that is found counts.
        """
        expanded = expand_home(path)
        if expanded is None:
            self.note_place(path, source, origin, exists=False, hits=0, ignored=NO_HOME)
            what = f"{path} cannot be found, named by {origin}: {NO_HOME}"
            self._note_problem(rules.PATH_EXISTS, what, path, origin)
            return
        path = os.path.abspath(expanded)
        mode = None
        try:
            with suppress(OSError):
                mode = os.stat(path).st_mode
            if mode is None:  # a link that leads nowhere is a file, which the probe reports
                mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            if required:
                what = f"{path} does not exist, named by {origin}"
                self._note_problem(rules.PATH_EXISTS, what, path, origin)
        except (OSError, ValueError) as error:
            raise_shortage(error)
            what = f"{path} cannot be looked at, named by {origin}: {_reason(error)}"
            self._note_problem(rules.READABLE, what, path, origin)
        if mode is None:
            self.note_place(path, source, origin, exists=False, hits=0)
            return
        if stat.S_ISDIR(mode):
            listed = self._list(path, source, origin)
        else:
            listed = [path]
            if distribution is None and (wheel := unpacked_wheel(path)) is not None:
                distribution = wheel.name
        most = MOST_LIBRARIES - (self._libraries[distribution] if distribution else 0)
        if len(listed) > most:
            what = f"{path} has {len(listed)} libraries, named by {origin}: {most} are searched"
            self._note_problem(rules.SEARCH_BOUNDED, what, path, origin)
        found = [file for file in listed[:most] if keep(file)]
        if distribution:
            self._libraries[distribution] += len(found)
        self.sightings += [Sighting(file, source, origin, distribution) for file in found]
        self.note_place(path, source, origin, exists=True, hits=len(found))

    def note_place(
        self,
        path: str,
        source: Source,
        origin: str,
        *,
        exists: bool,
        hits: int,
        ignored: str | None = None,
    ) -> None:
        """Record a place that was searched or ignored."""
        self.places.append(SearchedPlace(path, source, origin, exists, hits, ignored))

    def _note_problem(self, broken: Rule, message: str, path: str, origin: str) -> None:
        self.problems.append(Violation(broken, message, path=path, origin=origin))

    def _list(self, directory: str, source: Source, origin: str) -> list[str]:
        try:
            names = os.listdir(directory)
        except OSError as error:
            raise_shortage(error)
            what = f"the directory {directory} cannot be listed: {_reason(error)}"
            self._note_problem(rules.DIRECTORY_LISTABLE, what, directory, origin)
            return []
        prefix = os.path.join(directory, "")
        unpacked = [prefix + name for name in sorted(names) if name.endswith(UNPACKED_SUFFIX)]
        if directory.endswith(UNPACKED_SUFFIX):
            unpacked = [directory]
        self.unpacked_folders += [(folder, source) for folder in unpacked]
        return [prefix + name for name in sorted(names) if is_plugin_file_name(name)]


def is_plugin_file_name(name: str) -> bool:
    """Return whether a name is that of a plugin file: `x.so`, `x.so.2`, as in TensorFlow."""
    if name.endswith(".so"):
        return True
    at = name.rfind(".so.")
    return at >= 0 and name[at + 4 : at + 5] in set("0123456789")


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
