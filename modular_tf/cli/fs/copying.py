"""Copying files and trees between places."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from modular_tf.cli.fs.place import destination_place
from modular_tf.cli.fs.stream import CHUNK, refuse_overlap
from modular_tf.cli.progress_line import ProgressLine
from modular_tf.cli.text import size
from modular_tf.errors import FailedPreconditionError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.cli.failures import Failures
    from modular_tf.cli.fs.place import Place

Copied = tuple["Place", "Place"]
"""A file that has been copied, and its copy."""


def require_directory_for_several(sources: list[str], target: Place) -> None:
    """Raise if several sources would be copied to one name.

    Raises:
        FailedPreconditionError: `target` is not a directory.
    """
    if len(sources) > 1 and not target.is_directory():
        raise FailedPreconditionError("is not a directory, and there are several sources")


def copy(source: Place, target: Place, failures: Failures, *, recursive: bool) -> Iterator[Copied]:
    """Copy a file, or with `recursive` a tree, and yield each file that was copied.

    An existing directory takes the source in under its own name. Within a tree, a file that
    cannot be copied is added to `failures` and does not stop the rest.

    Raises:
        FailedPreconditionError: `source` is a directory and `recursive` is False, or both
            places are the same.
        NotFoundError: There is nothing at `source`.
    """
    is_directory = source.stat().is_directory
    if is_directory and not recursive:
        raise FailedPreconditionError("is a directory; copy it with -r", path=source.uri)
    landing = destination_place(source, target)
    refuse_overlap(source, landing)
    copied = _copy_tree(source, landing, failures) if is_directory else _copy_one(source, landing)
    yield from copied


def _copy_tree(source: Place, target: Place, failures: Failures) -> Iterator[Copied]:
    if not target.is_directory():
        target.filesystem.recursively_create_dir(target.uri)
    for child in source.children():
        landing = target.child(child.name)
        with failures.about(child.uri):
            if child.is_directory():
                yield from _copy_tree(child, landing, failures)
            else:
                yield from _copy_one(child, landing)


def _copy_one(source: Place, target: Place) -> Iterator[Copied]:
    copy_file(source, target)
    yield source, target


def copy_file(source: Place, target: Place) -> bool:
    """Copy one file, by the plugin itself if one plugin serves both, else through this process.

    Returns:
        False where both may be one file, and nothing was done.
    """
    from modular_tf.filesystem.copying import copy_through  # noqa: PLC0415  (help needs no core)

    if source.shares_store_with(target):
        source.filesystem.copy_file(source.uri, target.uri)
        return True
    with closing(Progress(source.uri, _size_if_known(source))) as progress:
        return copy_through(
            source.filesystem,
            source.uri,
            target.filesystem,
            target.uri,
            progress.advance,
            CHUNK,
        )


def _size_if_known(place: Place) -> int:
    try:
        return place.filesystem.get_file_size(place.uri)
    except NotFoundError:
        return 0


class Progress:
    """Counts the bytes of a copy, and shows them on a terminal.

    Args:
        name: What is being copied.
        total: Its size in bytes.
    """

    def __init__(self, name: str, total: int) -> None:
        self._name = name
        self._total = total
        self._done = 0
        self._line = ProgressLine()

    def advance(self, n_bytes: int) -> None:
        """Add `n_bytes` to the count and update the line."""
        self._done += n_bytes
        self._line.show(self._text)

    def _text(self, seconds: float) -> str:
        percent = 100 * self._done / self._total if self._total else 100
        return (
            f"{self._name}  {percent:.0f}% of {size(self._total)}, {size(self._done / seconds)}/s"
        )

    def close(self) -> None:
        """Clear the line."""
        self._line.wipe()
