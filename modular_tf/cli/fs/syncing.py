"""Making one tree like another: what differs is copied, and what is too much is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.cli.fs.copying import Copying, CopyItem, make_directory
from modular_tf.cli.fs.stream import refuse_overlap
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import FailedPreconditionError, NotFoundError
from modular_tf.filesystem.child_names import Listing
from modular_tf.filesystem.overlap import is_link

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.cli.fs.copying import CopyRules
    from modular_tf.cli.fs.place import Place
    from modular_tf.cli.fs.removal import RemovalItem
    from modular_tf.cli.fs.transfers import Transfers
    from modular_tf.filesystem.statistics import FileStatistics

_SECOND_NS = 10**9  # what stores keep of a time


@dataclass(frozen=True, slots=True)
class SyncItem(CopyItem):
    """A file or directory to compare.

    Attributes:
        is_there: Whether the target has something by this name.
        there: Statistics of the target, where its directory's listing had them.
    """

    is_there: bool = True
    there: FileStatistics | None = None


class Syncing:
    """Copies what the target lacks, or has in another size or older. [any thread]

    Each directory is listed once on both sides. Only what both have is asked for its statistics,
    where the listings do not have them.

    Args:
        transfers: Takes the children of directories as further work.
        rules: How to copy, and which files.
        copied: Called for each file that is copied.
        size_only: Files of one size are equal, whatever their times.
        is_mirror: What the target has beyond the source matters, keys that no path leads to too.
    """

    def __init__(
        self,
        transfers: Transfers[SyncItem],
        rules: CopyRules,
        copied: Callable[[CopyItem], object],
        *,
        size_only: bool,
        is_mirror: bool = False,
    ) -> None:
        self._transfers = transfers
        self._rules = rules
        self._copying = Copying(transfers, rules, copied)  # type: ignore[arg-type]
        self._size_only = size_only
        self._is_mirror = is_mirror
        self._lock = ForkLock()
        self.surplus: list[RemovalItem] = []
        """What only the target has."""
        self.staying: list[tuple[str, list[str]]] = []
        """What else each directory of a target has, which is a mirror, that no path leads to."""
        self.behind_links: list[Place] = []
        """Links of the target to directories that have what the source lacks; that stays."""
        self.is_source_empty = False

    def run(self, source: Place, target: Place) -> None:
        """Compare two trees and copy what differs; what fails is added to the failures."""
        self._transfers.totals.find(1)
        self._transfers.run(self.step, [SyncItem(source, target)], lambda item: item.uri)

    def step(self, item: SyncItem) -> None:
        """Compare and copy a file, or begin to compare directories."""
        selection = self._rules.selection
        if self._copying.is_both(item):
            self._enter(item)
            return
        is_taken = not item.path or selection.takes(item.path)
        facts = self._facts(item, is_taken=is_taken)
        if facts is not None and facts.is_directory:
            self._enter(item)
        elif not item.path:
            raise FailedPreconditionError("is no directory; copy it with fs cp", path=item.uri)
        elif is_taken and not self._is_equal(item, facts):
            try:
                self._copying.copy_file(item, facts)
            except FailedPreconditionError:
                if facts is not None or not item.source.is_directory():
                    raise
                self._enter(item)
        else:
            self._transfers.totals.find(-1)

    def _facts(self, item: SyncItem, *, is_taken: bool) -> FileStatistics | None:
        """Return the statistics of the source; None where copying it tells as much."""
        if item.facts is not None:
            return item.facts
        tells_itself = item.source.filesystem.is_object_store and not self._rules.is_rehearsal
        is_new = item.path and not item.is_there
        return None if tells_itself and is_new and is_taken else item.source.stat()

    def _is_equal(self, item: SyncItem, facts: FileStatistics | None) -> bool:
        """Return whether the target is like the source, by size and time."""
        if facts is None or not item.is_there:
            return False
        try:
            found = item.there or item.target.stat()
        except NotFoundError:
            return False
        if found.is_directory or found.length != facts.length:
            return False
        is_timed = found.mtime_nsec > 0 and facts.mtime_nsec > 0 and not self._size_only
        return not is_timed or facts.mtime_nsec // _SECOND_NS <= found.mtime_nsec // _SECOND_NS

    def _enter(self, item: SyncItem) -> None:
        from modular_tf.cli.fs.removal import RemovalItem  # noqa: PLC0415  (types of this module)

        if not item.path:
            refuse_overlap(item.source, item.target)
        root, above = item.entered()
        found = item.source.filesystem.listing(item.source.uri, with_statistics=True)
        names = found.names
        self._transfers.tell_left_out(item.source.uri, found.left_out)
        target = self._listing_of(item.target) if item.is_there else Listing([])
        there = set(target.names)
        if not item.path:
            self.is_source_empty = not names
        prefix = f"{item.path}/" if item.path else ""
        surplus = sorted(there - set(names))
        with self._lock:
            if self._is_mirror:  # a name that is both goes with the surplus
                kept = target._replace(both=target.both.intersection(names))
                self.staying.append((item.target.uri, kept.left_out))
            if surplus and item.path and is_link(*item.target.pair):
                self.behind_links.append(item.target)
            else:
                self.surplus.extend(
                    RemovalItem(item.target.child(name), prefix + name) for name in surplus
                )
        if not there and not self._rules.is_rehearsal and (names or not self._rules.selection):
            make_directory(item.target, is_root=not item.path, is_empty=not names)
        children = [
            SyncItem(
                item.source.child(name),
                item.target.child(name),
                prefix + name,
                root,
                above,
                name in found.both,
                found.statistics.get(name),
                name in there,
                target.statistics.get(name),
            )
            for name in names
        ]
        different = [child for child in children if not self._is_known_to_be_equal(child)]
        self._transfers.totals.find(len(different) - 1)
        self._transfers.add(different)

    def _is_known_to_be_equal(self, item: SyncItem) -> bool:
        """Return whether listings show that the target has the same file."""
        is_known = item.facts is not None and item.there is not None
        return is_known and not item.is_both and self._is_equal(item, item.facts)

    def _listing_of(self, target: Place) -> Listing:
        """Return what is in a directory; nothing where only its bucket is there."""
        try:
            return target.filesystem.listing(
                target.uri, is_thorough=self._is_mirror, with_statistics=True
            )
        except NotFoundError as error:
            if target.filesystem.is_missing_store(error):
                raise
            return Listing([])
