"""What fsspec's own rules make of the arguments of `get`, `put`, `copy` and `cat`.

fsspec decides which files a pattern or a tree means and where each of them goes, and then transfers
one after the other. Its rules are applied here to an object that only takes notes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fsspec.implementations.local import (  # type: ignore[import-untyped]
    LocalFileSystem,
    make_path_posix,
    trailing_sep,
)
from fsspec.spec import AbstractFileSystem  # type: ignore[import-untyped]

from modular_tf.errors import FailedPreconditionError, NotFoundError
from modular_tf.filesystem.overlap import Identity, identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.fsspec.entries import Entry
    from modular_tf.fsspec.patterns import Patterns


# A part of a tree is no copy of it, and a move would remove the rest.
_WHOLE: dict[str, Any] = {"detail": True, "on_error": "raise"}


class Survey:
    """Stands for a filesystem in fsspec's own methods, and notes what they would do. [one thread]

    Args:
        fs: The filesystem; it is asked what exists.

    Attributes:
        pairs: Each source with its target, in fsspec's order.
    """

    def __init__(self, fs: Patterns) -> None:
        self._fs = fs
        self._entries: dict[str, Entry] = {}
        self.pairs: list[tuple[Any, Any]] = []

    def get(self, *arguments: Any, **options: Any) -> None:
        """Note what `get` transfers."""
        AbstractFileSystem.get(self, *arguments, **options)

    def put(self, lpath: Any, rpath: Any, **options: Any) -> None:
        """Note what `put` transfers, by the rules of `copy`, which are those of `put`."""
        if isinstance(rpath, str):
            rpath = self._strip_protocol(rpath) + ("/" if trailing_sep(rpath) else "")
        source = _LocalTrees(self._fs, rpath, self._note)
        source.copy(make_path_posix(lpath) if isinstance(lpath, str) else lpath, rpath, **options)

    def copy(self, *arguments: Any, **options: Any) -> None:
        """Note what `copy` transfers."""
        AbstractFileSystem.copy(self, *arguments, **options)

    def _note(self, source: Any, target: Any, **_: Any) -> None:
        self.pairs.append((source, target))

    get_file = put_file = cp_file = _note

    def expand_path(self, path: Any, *arguments: Any, **options: Any) -> Any:
        """Return the paths that are meant, as fsspec does."""
        return AbstractFileSystem.expand_path(self, path, *arguments, **options)

    def find(self, path: str, **options: Any) -> list[str]:
        """Return the paths in a tree, and note what they are."""
        found: dict[str, Entry] = self._fs.find(path, **{**options, **_WHOLE})
        self._entries.update(found)
        return list(found)

    def glob(self, path: str, **options: Any) -> list[str]:
        """Return the paths that match a pattern, and note what they are."""
        found: dict[str, Entry] = self._fs.glob(path, **{**options, **_WHOLE})
        self._entries.update(found)
        return list(found)

    def exists(self, path: str, **_: Any) -> bool:
        """Return whether something is there; what was found is."""
        return path in self._entries or self._fs.exists(path)

    def isdir(self, path: str) -> bool:
        """Return whether a directory is there; asked once."""
        if path not in self._entries:
            with suppress(NotFoundError):
                self._entries[path] = self._fs.info(path)
        return self.is_known_directory(path)

    def is_known_directory(self, path: Any) -> bool:
        """Return whether a directory was found at a path."""
        return path in self._entries and self._entries[path]["type"] == "directory"

    def known_directories(self) -> set[str]:
        """Return the directories that were found, in trees and by patterns too."""
        return {path for path in self._entries if self.is_known_directory(path)}

    def is_known_to_be_at_most(self, path: Any, size: int) -> bool:
        """Return whether a file of so many bytes at most was found at a path."""
        entry = self._entries.get(path, {"size": None})
        return entry["size"] is not None and entry["size"] <= size

    def _strip_protocol(self, path: Any) -> Any:
        return self._fs._strip_protocol(path)  # noqa: SLF001


class _LocalTrees(LocalFileSystem):  # type: ignore[misc]
    """This machine's files as the source of fsspec's own `copy`. [one thread]

    fsspec's `put` leaves out, without an error, what is behind links to directories and what cannot
    be listed.

    Args:
        fs: Where the target is.
        target: The target, as `copy` is given it.
        note: Called with each file and directory and its target.
    """

    cachable = False

    def __init__(self, fs: Patterns, target: Any, note: Callable[[Any, Any], None]) -> None:
        super().__init__()
        self._fs = fs
        self._target = target
        self.cp_file = note

    def isdir(self, path: Any) -> bool:
        """Return whether a directory is there; the target is in the other filesystem."""
        return bool(self._fs.isdir(path) if path is self._target else super().isdir(path))

    def walk(
        self,
        path: str,
        maxdepth: int | None = None,
        *,
        detail: bool = False,
        above: tuple[Identity | None, ...] = (),
        **_: Any,
    ) -> Iterator[tuple[str, Any, Any]]:
        """Yield each directory of a tree, links to directories included, as fsspec does.

        Raises:
            FailedPreconditionError: A link leads back to a directory above it, so that a tree of
                any depth has no end.
            OSError: A directory cannot be listed.
        """
        path = self._strip_protocol(path)
        known = identity(None, path)
        if maxdepth is None and known is not None and known in above:
            raise FailedPreconditionError(
                f"{path} leads back to a directory above it, so the tree has no end", path=path
            )
        dirs: dict[str, Any] = {}
        files: dict[str, Any] = {}
        for entry in self.ls(path, detail=True):
            name = "" if entry["name"] == path else entry["name"].rpartition("/")[2]
            if entry["islink"]:
                with suppress(OSError):  # of a link to nothing, whoever opens it raises
                    entry = self.info(entry["name"])  # noqa: PLW2901  (of what it leads to)
            (dirs if entry["type"] == "directory" else files)[name] = entry
        yield (path, dirs, files) if detail else (path, list(dirs), list(files))
        if maxdepth is None or maxdepth > 1:
            left = None if maxdepth is None else maxdepth - 1
            for entry in dirs.values():
                below = (*above, known)
                yield from self.walk(entry["name"], left, detail=detail, above=below)
