"""Moving files and directories between places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.cli.fs.copying import Copying, CopyItem, CopyRules, copy_file
from modular_tf.cli.fs.removal import Removal, RemovalItem, RemovalRules
from modular_tf.cli.fs.selection import EVERYTHING, Selection
from modular_tf.cli.fs.stream import refuse_overlap
from modular_tf.cli.fs.transfers import watched
from modular_tf.errors import AlreadyExistsError, FailedPreconditionError, UnimplementedError
from modular_tf.filesystem.child_names import complete_listing
from modular_tf.filesystem.copying import CopyWatch
from modular_tf.filesystem.overlap import is_link

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modular_tf.cli.fs.place import Place
    from modular_tf.cli.fs.transfers import Transfers
    from modular_tf.filesystem.statistics import FileStatistics


def move_all(
    transfers: Transfers[Any],
    items: Sequence[CopyItem],
    moved: Callable[[CopyItem], object],
    selection: Selection = EVERYTHING,
    *,
    is_rehearsal: bool = False,
) -> None:
    """Move files, many at once, and directories one after the other, their files many at once.

    Args:
        transfers: Does the work, and takes what fails.
        items: What is moved where.
        moved: Called for each of the items that is moved; where there are filters, for each file
            of a directory instead.
        selection: Which files of directories; where there are filters, files go one by one,
            directories stay, and files may arrive in directories that exist.
        is_rehearsal: Nothing is moved; what would be is told.
    """
    trees: list[CopyItem] = []

    def step(item: CopyItem) -> None:
        refuse_overlap(item.source, item.target, is_move=True)
        if item.source.filesystem.is_file_and_directory(item.uri):
            raise FailedPreconditionError(
                "is a file and a directory, so nothing was moved; fs cp copies either, and fs rm -r"
                " removes both"
            )
        is_directory = item.source.stat().is_directory
        if is_directory and not selection:
            _require_nothing_at(item.target)
        if is_directory and (selection or not _is_renamed(item)):
            trees.append(item)
            return
        if is_rehearsal:
            transfers.totals.end()
        elif is_directory:
            rename_directory(item.source, item.target)
            transfers.totals.end()
        else:
            with watched(transfers, item.target) as watch:
                move_file(item.source, item.target, watch)
        moved(item)

    transfers.totals.find(len(items))
    transfers.run(step, items, lambda item: item.uri)
    transfers.totals.find(-len(trees))
    if selection:
        rules = CopyRules(
            recursive=True, selection=selection, is_rehearsal=is_rehearsal, is_move=True
        )
        _FilteredMove(transfers, rules, moved).run(trees)
        return
    for item in trees:
        _move_tree(transfers, item, moved, is_rehearsal=is_rehearsal)


class _FilteredMove(Copying):
    """Moves the files of trees that filters take, each by itself. [any thread]

    A target that exists may be the source by another name: to copy such a file and to remove it
    afterwards would lose it, which a move of one file does not.
    """

    def _facts(self, item: CopyItem, *, is_taken: bool) -> FileStatistics:  # noqa: ARG002
        return item.source.stat()  # a directory would be moved whole

    def copy_file(self, item: CopyItem, facts: FileStatistics | None) -> None:
        """Move one file."""
        if self._rules.is_rehearsal:
            super().copy_file(item, facts)
            return
        with watched(self._transfers, item.target) as watch:
            move_file(item.source, item.target, watch)
        self._copied(item)


def _move_tree(
    transfers: Transfers[Any],
    item: CopyItem,
    moved: Callable[[CopyItem], object],
    *,
    is_rehearsal: bool,
) -> None:
    """Copy a tree, then remove what was copied of the source if all of it has arrived."""
    before = transfers.failures.count
    arrived = _Arrived()
    copy_rules = CopyRules(recursive=True, is_rehearsal=is_rehearsal, is_move=True)
    Copying(transfers, copy_rules, arrived.add).run([item])
    if transfers.failures.count > before:
        transfers.failures.add("not all of it could be copied, so it stays where it is", item.uri)
        return
    if is_rehearsal:
        moved(item)
        return
    files = transfers.totals.files
    rules = RemovalRules(recursive=True, selection=arrived, with_directories=True)
    Removal(transfers, rules).run([RemovalItem(item.source)])
    transfers.totals.files = files  # a file that was moved is one file
    if transfers.failures.count == before:
        moved(item)


class _Arrived(Selection):
    """The files that were copied, and the directories above them: what came later stays."""

    def __init__(self) -> None:
        super().__init__()
        self._paths: set[str] = set()

    def add(self, item: CopyItem) -> None:
        """Add a file that was copied. [any thread]"""
        path = item.path
        while path and path not in self._paths:
            self._paths.add(path)
            path = path.rpartition("/")[0]

    def __bool__(self) -> bool:
        return True

    def takes(self, path: str) -> bool:
        """Return whether it was copied."""
        return path in self._paths


def _is_renamed(item: CopyItem) -> bool:
    """Return whether the plugin moves a directory by itself, and not file by file."""
    return item.source.shares_store_with(item.target) and not (
        item.source.filesystem.is_object_store
    )


def _require_nothing_at(target: Place) -> None:
    if target.filesystem.path_exists(target.uri):
        raise AlreadyExistsError(f"{target.uri} exists already", path=target.uri)


def move_file(source: Place, target: Place, watch: CopyWatch | None = None) -> None:
    """Move one file; an existing target file is replaced.

    Raises:
        FailedPreconditionError: The target may be the same file by another name; both stay.
    """
    if source.shares_store_with(target):
        source.filesystem.rename_file(source.uri, target.uri)
    elif copy_file(source, target, watch := watch or CopyWatch()):
        watch.whole()
        source.filesystem.delete_file(source.uri)
    else:
        raise FailedPreconditionError(
            f"{target.uri} holds the same bytes and may be the same file; remove one of them",
            path=source.uri,
        )


def rename_directory(source: Place, target: Place) -> None:
    """Let the plugin rename a directory to where nothing is, or what is in it file by file.

    Raises:
        AlreadyExistsError: Something is at `target`; directories are not merged.
    """
    _require_nothing_at(target)
    _rename(source, target)


def _rename(source: Place, target: Place) -> None:
    try:
        source.filesystem.rename_file(source.uri, target.uri)
    except (FailedPreconditionError, UnimplementedError):
        if is_link(*source.pair):
            raise
        names = complete_listing(source.filesystem, source.uri).names
        target.filesystem.create_dir(target.uri)
        for child in map(source.child, names):
            move = _rename if child.is_directory() else move_file
            move(child, target.child(child.name))
        source.filesystem.delete_dir(source.uri)
