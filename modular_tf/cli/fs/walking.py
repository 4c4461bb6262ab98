"""Walking through trees of directories, with many requests at once on networks."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(slots=True)
class Entry:
    """What a walk comes to.

    Attributes:
        place: Where it is.
        facts: Its statistics; None if they were not asked for, or cannot be had.
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
        with_facts: Whether statistics of what is listed are wanted; a walk of several levels
            needs them.
    """

    def __init__(
        self,
        service: PluginService,
        failures: Failures,
        *,
        depth: int | None = None,
        with_facts: bool = True,
    ) -> None:
        self._service = service
        self._failures = failures
        self._depth = depth
        self._with_facts = with_facts
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
        for outcome in Crew(self._at_once).run(_children, directories):
            outcome.item.children = []
            with self._failures.about(outcome.item.place.uri):
                outcome.item.children, left_out = outcome.get()
                for what in left_out:
                    self._failures.add(what, outcome.item.place.uri)
        if self._with_facts:
            listed = [child for one in directories for child in one.children or ()]
            looks = Crew(self._at_once).run(Place.stat, [child.place for child in listed])
            for child, look in zip(listed, looks, strict=True):
                if not _leads_nowhere(look):
                    with self._failures.about(child.place.uri):
                        child.facts = look.get()


def _children(entry: Entry) -> tuple[list[Entry], list[str]]:
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
    place = entry.place
    found = place.filesystem.listing(place.uri)
    depth = entry.depth + 1
    children = [Entry(place.child(name), None, depth, None, above) for name in found.names]
    return children, found.left_out


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
