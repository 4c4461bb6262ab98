"""Walking through trees of directories, with many requests at once on networks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from itertools import islice
from typing import TYPE_CHECKING

from modular_tf.cli.fs.place import FILE_LEFT_OUT, Place
from modular_tf.concurrency.crew import Crew
from modular_tf.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from modular_tf.filesystem.overlap import Identity, identity, is_link
from modular_tf.filesystem.scheme import is_of_this_machine, scheme_of
from modular_tf.filesystem.statistics import FileStatistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from modular_tf.cli.failures import Failures
    from modular_tf.concurrency.crew import Outcome
    from modular_tf.service.service import PluginService


class Facts(Enum):
    """What is to be known of the names in a directory."""

    NONE = auto()
    """Nothing else."""

    KIND = auto()
    """Whether each is a directory, which a walk of several levels needs."""

    STATISTICS = auto()
    """Length and time too."""


@dataclass(slots=True)
class Entry:
    """What a walk comes to.

    Attributes:
        place: Where it is.
        facts: Its statistics; None if they were not asked for, or cannot be had. Where a walk asks
            for kinds, length and time may be 0.
        depth: How many levels it lies below where the walk began.
        children: What is in a directory, while the walk is there; None if it was not listed.
        above: What the directories of the disk above it are known by.
    """

    place: Place
    facts: FileStatistics | None
    depth: int = 0
    children: list[Entry] | None = None
    above: tuple[Identity, ...] = ()

    @property
    def is_directory(self) -> bool:
        """Whether it is known to be a directory."""
        return self.facts is not None and self.facts.is_directory

    @property
    def size(self) -> int:
        """Bytes of a file; 0 for a directory, and where they are not known."""
        return self.facts.length if self.facts and not self.facts.is_directory else 0


class Walk:
    """A walk through trees, each directory before what it holds, in the order of the names.

    Args:
        service: Says how many requests may be made at once.
        failures: Takes what cannot be read, which does not stop the rest.
        depth: How many levels are walked; None for all, 0 for the roots alone.
        facts: What is to be known of what is listed. A directory's listing may have it; else it is
            asked for, name by name.
    """

    def __init__(
        self,
        service: PluginService,
        failures: Failures,
        *,
        depth: int | None = None,
        facts: Facts = Facts.STATISTICS,
    ) -> None:
        self._service = service
        self._failures = failures
        self._depth = depth
        self._facts = facts
        self._at_once = 1

    def roots(self, places: Iterable[Place]) -> list[Entry]:
        """Return the entries of where the walk begins; what is not there is a failure."""
        begin = list(places)
        schemes = {scheme_of(place.uri) for place in begin}
        self._at_once = self._service.calls_at_once(*schemes)
        found = []
        look = _look if self._depth == 0 else _look_to_list
        for outcome in Crew(self._at_once).run(look, begin):
            with self._failures.about(outcome.item.uri):
                facts, is_both = outcome.get()
                if is_both:
                    self._failures.add(FILE_LEFT_OUT, outcome.item.uri)
                found.append(Entry(outcome.item, facts))
        return found

    def through(self, roots: Sequence[Entry]) -> Iterator[Entry]:
        """Yield the roots and all that is below them, as deep as wanted."""
        stack = list(reversed(roots))
        while stack:
            entry = stack.pop()
            if self._is_listed(entry):
                if entry.children is None:
                    coming = (one for one in reversed(stack) if one.children is None)
                    self._list([entry, *islice(filter(self._is_listed, coming), self._at_once - 1)])
                stack.extend(reversed(entry.children or ()))
            yield entry
            entry.children = None  # whoever needs it has had it; a whole tree would stay in memory

    def _is_listed(self, entry: Entry) -> bool:
        return entry.is_directory and (self._depth is None or entry.depth < self._depth)

    def _list(self, directories: list[Entry]) -> None:
        """List directories, those that are walked through next together with the first."""
        for outcome in Crew(self._at_once).run(self._children, directories):
            outcome.item.children = []
            with self._failures.about(outcome.item.place.uri):
                outcome.item.children, left_out = outcome.get()
                for what in left_out:
                    self._failures.add(what, outcome.item.place.uri)
        if self._facts is not Facts.NONE:
            listed = (child for one in directories for child in one.children or ())
            unknown = [child for child in listed if child.facts is None]
            look = Place.stat if self._facts is Facts.STATISTICS else _look_at_kind
            looks = Crew(self._at_once).run(look, [child.place for child in unknown])
            for child, looked in zip(unknown, looks, strict=True):
                if not _leads_nowhere(looked):
                    with self._failures.about(child.place.uri):
                        child.facts = looked.get()

    def _children(self, entry: Entry) -> tuple[list[Entry], list[str]]:
        """Return what is in a directory, and what of it no path leads to.

        Raises:
            FailedPreconditionError: A link leads back to a directory above it.
        """
        known = identity(*entry.place.pair)
        if known is not None and known in entry.above:
            raise FailedPreconditionError(
                "leads back to a directory above it, and was left out", path=entry.place.uri
            )
        above = entry.above if known is None else (*entry.above, known)
        place, depth = entry.place, entry.depth + 1
        with_statistics = self._facts is not Facts.NONE
        found = place.filesystem.listing(place.uri, with_statistics=with_statistics)
        facts = found.statistics
        children = [
            Entry(place.child(name), facts.get(name), depth, None, above) for name in found.names
        ]
        return children, found.left_out


def _look_at_kind(place: Place) -> FileStatistics:
    return FileStatistics(0, 0, place.filesystem.is_directory(place.uri))


def _leads_nowhere(looked: Outcome[Place, FileStatistics]) -> bool:
    """Return whether a look failed for what is listed and not there: a link, or gone meanwhile."""
    error = looked.error
    return isinstance(error, NotFoundError) or (error is not None and is_link(*looked.item.pair))


def _look(place: Place) -> tuple[FileStatistics, bool]:
    return place.stat(), False


def _look_to_list(place: Place) -> tuple[FileStatistics, bool]:
    """Return the statistics of a place, and whether a file has the name of that directory too.

    Raises:
        InvalidArgumentError: It stands for buckets that cannot be listed.
    """
    scheme = scheme_of(place.uri)
    if place.uri == f"{scheme}://" and not is_of_this_machine(scheme) and not _buckets(place):
        raise InvalidArgumentError(
            f"{place.filesystem.plugin} does not list what there is; name it: {place.uri}BUCKET/",
            path=place.uri,
        )
    facts = place.stat()
    if place.filesystem.is_file_and_directory(place.uri):
        return FileStatistics(0, facts.mtime_nsec, is_directory=True), True
    return facts, False


def _buckets(place: Place) -> list[Place]:
    try:
        return place.children()
    except (InvalidArgumentError, UnimplementedError):
        return []
