"""Removal of files and whole directory trees."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from modular_tf.cli.fs.place import FILE_LEFT_OUT
from modular_tf.cli.fs.selection import EVERYTHING, Selection
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import FailedPreconditionError, NotFoundError
from modular_tf.filesystem.overlap import is_link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from modular_tf.cli.fs.place import Place
    from modular_tf.cli.fs.transfers import Transfers
    from modular_tf.filesystem.statistics import FileStatistics


@dataclass(frozen=True, slots=True)
class RemovalItem:
    """A file or directory to remove.

    Attributes:
        place: What is removed.
        path: Its path below what the user named; empty for that one.
        is_both: Its name is that of a file and of a directory: both are removed.
        facts: Its statistics, where its directory's listing had them.
    """

    place: Place
    path: str = ""
    is_both: bool = False
    facts: FileStatistics | None = None

    @property
    def uri(self) -> str:
        """What a failure is about."""
        return self.place.uri


@dataclass(frozen=True, slots=True)
class RemovalRules:
    """How the items of a verb are removed.

    Attributes:
        recursive: Directories are removed too.
        selection: Which files; where there are filters, directories stay.
        is_rehearsal: Nothing is removed; what would be is told.
        with_directories: Directories are removed in spite of filters; one that is not empty then is
            a failure.
    """

    recursive: bool
    selection: Selection = EVERYTHING
    is_rehearsal: bool = False
    with_directories: bool = False


class Removal:
    """Removes trees of object stores while they are listed, and others by one call. [any thread]

    Args:
        transfers: Takes the children of directories as further work.
        rules: How to remove.
        removed: Called for each file that is removed, and for a tree that is removed by one call.
    """

    def __init__(
        self,
        transfers: Transfers[Any],
        rules: RemovalRules,
        removed: Callable[[RemovalItem], object] = lambda _: None,
    ) -> None:
        self._transfers = transfers
        self._rules = rules
        self._removed = removed
        self._lock = ForkLock()
        self._directories: list[RemovalItem] = []

    def run(self, items: Iterable[RemovalItem]) -> None:
        """Remove items and all that is in them; what fails is added to the failures."""
        roots = list(items)
        self._transfers.totals.find(len(roots))
        self._transfers.run(self.step, roots, lambda item: item.uri)
        rules = self._rules
        if (rules.with_directories or not rules.selection) and not rules.is_rehearsal:
            self._remove_directories()

    def step(self, item: RemovalItem) -> None:
        """Remove a file, or begin to remove a directory."""
        if item.is_both or self._is_both(item):
            self._enter_both(replace(item, is_both=True))
            return
        is_taken = self._rules.selection.takes(item.path) if item.path else True
        is_tried = item.place.filesystem.is_object_store and not self._rules.is_rehearsal
        if is_tried and is_taken:
            try:
                item.place.filesystem.delete_file(item.uri)
            except FailedPreconditionError:
                if not item.place.is_directory():
                    raise
                self._enter(item)
                return
        elif _is_walked(item):
            self._enter(item)
            return
        elif is_taken:
            self._remove_file(item)
        if is_taken:
            self._transfers.totals.end()
            self._removed(item)
        else:
            self._transfers.totals.find(-1)

    def _is_both(self, item: RemovalItem) -> bool:
        """Return whether the name of a root is that of both; of others a listing shows it."""
        is_asked = self._rules.recursive and not item.path
        return is_asked and item.place.filesystem.is_file_and_directory(item.uri)

    def _enter_both(self, item: RemovalItem) -> None:
        """Begin to remove a directory; the file of its name goes with the directory."""
        if self._rules.selection and not item.path:  # of others the listing was reported
            self._transfers.tell_left_out(item.uri, [FILE_LEFT_OUT])
        elif self._rules.is_rehearsal and not self._rules.selection:
            self._end_one(item)
        self._enter(item)

    def _end_one(self, item: RemovalItem) -> None:
        self._transfers.totals.find(1)
        self._transfers.totals.end()
        self._removed(item)

    def _remove_file(self, item: RemovalItem) -> None:
        if not self._rules.is_rehearsal:
            item.place.filesystem.delete_file(item.uri)
        elif item.facts is None:
            item.place.stat()

    def _enter(self, item: RemovalItem) -> None:
        """Add what is in a directory, or remove it at once where that takes one call."""
        rules, place = self._rules, item.place
        if not rules.recursive:
            raise FailedPreconditionError("is a directory; remove it with -r", path=place.uri)
        is_whole = not rules.selection and not rules.is_rehearsal
        if is_whole and not place.filesystem.is_object_store:
            _remove_at_once(place)
            self._transfers.totals.end()
            self._removed(item)
            return
        with self._lock:
            self._directories.append(item)
        needs_kinds = rules.is_rehearsal or not place.filesystem.is_object_store
        found = place.filesystem.listing(place.uri, with_statistics=needs_kinds)
        left_out = found if rules.selection else found._replace(both=frozenset())
        self._transfers.tell_left_out(place.uri, left_out.left_out)
        self._transfers.totals.find(len(found.names) - 1)
        prefix = f"{item.path}/" if item.path else ""
        self._transfers.add(
            RemovalItem(
                place.child(name), f"{prefix}{name}", name in found.both, found.statistics.get(name)
            )
            for name in found.names
        )

    def _remove_directories(self) -> None:
        """Remove the directories that are empty now, the deepest ones first."""
        by_depth: dict[int, list[RemovalItem]] = {}
        for item in self._directories:
            by_depth.setdefault(item.uri.rstrip("/").count("/"), []).append(item)
        for depth in sorted(by_depth, reverse=True):
            self._transfers.run(self._remove_directory, by_depth[depth], lambda item: item.uri)

    def _remove_directory(self, item: RemovalItem) -> None:
        place = item.place
        with suppress(NotFoundError):  # in an object store it goes with the last file in it
            if not item.is_both or place.is_directory():
                place.filesystem.delete_dir(place.uri)
        if item.is_both:
            place.filesystem.delete_file(place.uri)
            self._end_one(item)


def _is_walked(item: RemovalItem) -> bool:
    """Return whether an item is a directory, and no link to one: its target stays."""
    if is_link(*item.place.pair):
        return False
    return item.facts.is_directory if item.facts is not None else item.place.is_directory()


def _remove_at_once(place: Place) -> None:
    """Remove a directory and everything in it by one call.

    Raises:
        FailedPreconditionError: Something could not be removed.
    """
    left = place.filesystem.delete_recursively(place.uri)
    if any(left):
        raise FailedPreconditionError(
            f"{left.undeleted_files} files and {left.undeleted_dirs} directories "
            "could not be removed",
            path=place.uri,
        )
