"""Copying files and trees between places, many files at once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.cli.fs.place import FILE_LEFT_OUT
from modular_tf.cli.fs.selection import EVERYTHING, Selection
from modular_tf.cli.fs.stream import CHUNK, refuse_overlap
from modular_tf.cli.fs.transfers import Transfers, watched
from modular_tf.errors import AlreadyExistsError, FailedPreconditionError
from modular_tf.filesystem.overlap import (
    Identity,
    Overlap,
    identity,
    is_link,
    is_one_name,
    overlap,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from modular_tf.cli.fs.place import Place
    from modular_tf.filesystem.copying import CopyWatch
    from modular_tf.filesystem.statistics import FileStatistics


@dataclass(frozen=True, slots=True)
class CopyItem:
    """A file or directory to copy.

    Attributes:
        source: What is copied.
        target: Where it arrives.
        path: Its path below the source that was named; empty for that one.
        root: What was named, with where it arrives; None for that one.
        above: What the directories of the disk above it are known by.
        is_both: Its name is that of a file too, as its directory's listing showed.
        facts: Statistics of the source, where its directory's listing had them.
    """

    source: Place
    target: Place
    path: str = ""
    root: tuple[Place, Place] | None = None
    above: tuple[Identity, ...] = ()
    is_both: bool = False
    facts: FileStatistics | None = None

    @property
    def uri(self) -> str:
        """What a failure is about."""
        return self.source.uri

    def entered(self) -> tuple[tuple[Place, Place], tuple[Identity, ...]]:
        """Return `root` and `above` of what is in this directory.

        Raises:
            FailedPreconditionError: By a link, it is a directory above it, or where the copy
                arrives, or the target leads back into the source.
        """
        known = identity(*self.source.pair)
        root = self.root or (self.source, self.target)
        if known is None:
            return root, self.above
        if known in self.above:
            raise FailedPreconditionError(
                "leads back to a directory above it, and was left out", path=self.uri
            )
        if self.path and known == identity(*root[1].pair):
            raise FailedPreconditionError("is where the copy arrives, and was left out")
        is_linked = bool(self.path) and is_link(*self.target.pair)
        if is_linked and overlap(root[0].pair, self.target.pair) is not Overlap.APART:
            raise FailedPreconditionError(
                f"was left out, for {self.target.uri} is a link that leads back to the source"
            )
        return root, (*self.above, known)


@dataclass(frozen=True, slots=True)
class CopyRules:
    """How the items of a verb are copied.

    Attributes:
        recursive: Directories are copied too.
        selection: Which files.
        is_rehearsal: Nothing is written; what would be copied is told.
        is_move: What is copied is removed afterwards; links to directories are left.
    """

    recursive: bool
    selection: Selection = EVERYTHING
    is_rehearsal: bool = False
    is_move: bool = False


class Copying:
    """Copies the items of a tree while it is being listed. [any thread]

    Of the place of an object store nobody asks whether it is a directory: opening it as a file
    tells, and a file needs no other request. Of a name that is both, the directory is copied.

    Args:
        transfers: Takes the children of directories as further work.
        rules: How to copy.
        copied: Called for each file when it is copied.
    """

    def __init__(
        self,
        transfers: Transfers[CopyItem],
        rules: CopyRules,
        copied: Callable[[CopyItem], object],
    ) -> None:
        self._transfers = transfers
        self._rules = rules
        self._copied = copied

    def run(self, items: Iterable[CopyItem]) -> None:
        """Copy items and all that is in them; what fails is added to the failures."""
        roots = list(items)
        self._transfers.totals.find(len(roots))
        self._transfers.run(self.step, roots, lambda item: item.uri)

    def step(self, item: CopyItem) -> None:
        """Copy a file, or begin to copy a directory."""
        if not item.path:
            refuse_overlap(item.source, item.target, is_move=self._rules.is_move)
        if self.is_both(item):
            self._enter(item)
            return
        is_taken = not item.path or self._rules.selection.takes(item.path)
        facts = self._facts(item, is_taken=is_taken)
        if facts is not None and facts.is_directory:
            self._enter(item)
        elif is_taken:
            self._copy_found(item, facts)
        else:
            self._transfers.totals.find(-1)

    def is_both(self, item: CopyItem) -> bool:
        """Return whether the name of a source is that of a file too, which is then left out."""
        if item.path or not self._rules.recursive:
            return item.is_both
        is_both = item.source.filesystem.is_file_and_directory(item.source.uri)
        if is_both:
            self._transfers.tell_left_out(item.uri, [FILE_LEFT_OUT])
        return is_both

    def _facts(self, item: CopyItem, *, is_taken: bool) -> FileStatistics | None:
        """Return the statistics of the source; None where copying it tells as much."""
        if item.facts is not None:
            return item.facts
        fs = item.source.filesystem
        if fs.is_object_store and not self._rules.is_rehearsal and is_taken:
            return None
        facts = item.source.stat()
        is_read = fs.is_object_store and not item.source.shares_store_with(item.target)
        if facts.is_directory and is_read and not self._rules.recursive:
            return None if fs.is_file_and_directory(item.source.uri) else facts
        return facts

    def _copy_found(self, item: CopyItem, facts: FileStatistics | None) -> None:
        try:
            self.copy_file(item, facts)
        except FailedPreconditionError:
            if facts is not None or not item.source.is_directory():
                raise
            self._enter(item)

    def copy_file(self, item: CopyItem, facts: FileStatistics | None) -> None:
        """Copy one file."""
        if self._rules.is_rehearsal:
            self._transfers.totals.end()
        else:
            with watched(self._transfers, item.target) as watch:
                watch.begun(None if facts is None else facts.length)
                if copy_file(item.source, item.target, watch) is None and facts is not None:
                    self._transfers.totals.add_bytes(facts.length)
        self._copied(item)

    def _enter(self, item: CopyItem) -> None:
        """Make the directory and add what is in it."""
        if not self._rules.recursive:
            raise FailedPreconditionError("is a directory; copy it with -r", path=item.source.uri)
        if self._rules.is_move and item.path and is_link(*item.source.pair):
            raise FailedPreconditionError("is a link to a directory, which a move leaves")
        root, above = item.entered()
        if overlap(item.source.pair, item.target.pair) is Overlap.SAME:
            raise FailedPreconditionError(f"{item.target.uri} is the same directory")
        found = item.source.filesystem.listing(item.source.uri, with_statistics=True)
        names = found.names
        self._transfers.tell_left_out(item.source.uri, found.left_out)
        if not self._rules.is_rehearsal and (names or not self._rules.selection):
            make_directory(item.target, is_root=not item.path, is_empty=not names)
        self._transfers.totals.find(len(names) - 1)
        self._transfers.add(
            CopyItem(
                item.source.child(name),
                item.target.child(name),
                f"{item.path}/{name}" if item.path else name,
                root,
                above,
                name in found.both,
                found.statistics.get(name),
            )
            for name in names
        )


def make_directory(target: Place, *, is_root: bool, is_empty: bool) -> None:
    """Make the directory that a copied one becomes; one that exists is fine.

    Args:
        target: The directory.
        is_root: Its parent may be missing.
        is_empty: Nothing is to come into it. In an object store a directory is there as soon as
            something is in it, and takes no request before.
    """
    filesystem = target.filesystem
    if filesystem.is_object_store and not is_empty:
        return
    if is_root:
        if not target.is_directory():
            filesystem.recursively_create_dir(target.uri)
        return
    with suppress(AlreadyExistsError):
        filesystem.create_dir(target.uri)


def copy_file(source: Place, target: Place, watch: CopyWatch) -> bool | None:
    """Copy one file, by the plugin itself if one plugin serves both, else through this process.

    Returns:
        Whether it was copied through this process, which told the watch; None where the plugin
        copied it. False where both may be one file, and nothing was done.
    """
    from modular_tf.filesystem.copying import copy_through  # noqa: PLC0415  (help needs no core)

    if source.shares_store_with(target):
        source.filesystem.copy_file(source.uri, target.uri)
        return None
    return copy_through(
        source.filesystem,
        source.uri,
        target.filesystem,
        target.uri,
        watch,
        CHUNK,
        is_landing=True,
    )


class Landings:
    """Where sources arrive in a target: inside it, if it is a directory.

    What is in a source whose name ends in `.` or `..` arrives in the target itself, as with `cp`.

    Args:
        target: As the user named it.
        is_several: There are several sources, which need a directory.

    Raises:
        FailedPreconditionError: There are several sources, and the target is no directory.
    """

    def __init__(self, target: Place, *, is_several: bool) -> None:
        self._target = target
        self._is_directory = target.is_directory()
        if is_several and not self._is_directory:
            raise FailedPreconditionError("is not a directory, and there are several sources")

    def items(self, sources: Iterable[Place]) -> list[CopyItem]:
        """Return what arrives where; a source that is named twice arrives once.

        Raises:
            FailedPreconditionError: Two sources have one name, and only one of them would be left.
        """
        items: dict[str, CopyItem] = {}
        for source in sources:
            is_named = self._is_directory and source.name not in ("", ".", "..")
            target = self._target.child(source.name) if is_named else self._target
            item = items.setdefault(target.uri, CopyItem(source, target))
            if not is_one_name(item.source.pair, source.pair):
                raise FailedPreconditionError(
                    f"{item.source.uri} and {source.uri} would both become {target.uri}, so"
                    " nothing was done; give them different targets"
                )
        return list(items.values())
