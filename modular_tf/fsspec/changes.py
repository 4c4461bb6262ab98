"""The operations that change a filesystem: create, remove, copy and move."""

# ruff: noqa: FBT001, FBT002  (the signatures are fsspec's)

from __future__ import annotations

from contextlib import suppress
from glob import has_magic
from os import PathLike
from typing import TYPE_CHECKING, Any

from modular_tf.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    ModularTFError,
    NotFoundError,
    UnimplementedError,
)
from modular_tf.filesystem.overlap import Overlap, overlap
from modular_tf.filesystem.trees import remove_tree
from modular_tf.fsspec import paths
from modular_tf.fsspec.patterns import Patterns
from modular_tf.fsspec.survey import Survey

if TYPE_CHECKING:
    from collections.abc import Callable


class Changes(Patterns):
    """The part of `ModularFileSystem` that changes more than the contents of a file."""

    def mkdir(self, path: Any, create_parents: bool = True, **_: Any) -> None:
        """Create a directory, and with `create_parents` its missing parents.

        Raises:
            AlreadyExistsError: Something is there already.
            NotFoundError: A directory above it is missing and `create_parents` is False.
        """
        path = self._strip_protocol(path)
        uri = self.uri(path)
        if self.exists(path):
            raise AlreadyExistsError(f"{uri} exists already", path=uri)
        make = self.filesystem.recursively_create_dir if create_parents else None
        (make or self.filesystem.create_dir)(uri)
        self.forget_listing(path)

    def makedirs(self, path: Any, exist_ok: bool = False) -> None:
        """Create a directory and its missing parents.

        Raises:
            AlreadyExistsError: A file is there, or a directory and `exist_ok` is False.
        """
        path = self._strip_protocol(path)
        try:
            self.mkdir(path)
        except AlreadyExistsError:
            if not (exist_ok and self.isdir(path)):
                raise

    def rmdir(self, path: Any) -> None:
        """Remove an empty directory."""
        path = self._strip_protocol(path)
        self.filesystem.delete_dir(self.uri(path))
        self.forget_listing(path)

    def rm_file(self, path: Any) -> None:
        """Remove one file."""
        path = self._strip_protocol(path)
        self.filesystem.delete_file(self.uri(path))
        self.forget_listing(path)

    def _rm(self, path: Any) -> None:
        self.rm_file(path)

    def rm(
        self,
        path: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Remove files, and with `recursive` whole directories; many at once.

        Of a link only the link is removed, whatever it leads to.

        Args:
            path: A path, a pattern, or a list of them.
            recursive: Remove directories with all that is in them.
            maxdepth: How many levels to go down; None for all.
            batch_size: How many calls are made at once at most; -1 for as many as configured.

        Raises:
            IsADirectoryError: A directory is to be removed and `recursive` is False.
            NotFoundError: There is nothing at `path`.
        """
        is_by_levels = recursive and maxdepth is not None
        found: list[str] = self.expand_path(
            path, recursive=is_by_levels, maxdepth=maxdepth, follow_links=False
        )
        links = set(filter(self._is_link, found))
        found = _not_below(found, links)
        directories = set(self._directories([one for one in found if one not in links]))
        if directories and not recursive:
            raise self._is_a_directory(min(directories), "; pass recursive=True")
        if not is_by_levels:  # a tree goes with all that is in it
            found = _not_below(found, directories)
        files = [one for one in found if one not in directories]
        for outcome in self._crew(batch_size).run(self.rm_file, files):
            outcome.get()
        for directory in sorted(directories.intersection(found), reverse=True):
            if is_by_levels:
                self.rmdir(directory)
            else:
                self._remove_tree(directory, self._at_once(batch_size))

    def _remove_tree(self, path: str, at_once: int) -> None:
        uri = self.uri(path)
        try:
            left = remove_tree(self.filesystem, uri, at_once)
        finally:
            self.forget_listings()
        if any(left):
            raise FailedPreconditionError(
                f"{uri}: {left.undeleted_files} files and {left.undeleted_dirs} directories "
                "could not be removed",
                path=uri,
                operation="delete_recursively",
            )

    def cp_file(self, path1: Any, path2: Any, **_: Any) -> None:
        """Copy one file within the scheme, by the plugin itself; a directory is only made."""
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        try:
            self._copy_one(source, target)
        except NotFoundError:
            raise
        except ModularTFError:
            if not self.isdir(source):  # asked only here: a look costs as much as a copy
                raise
            self.makedirs(target, exist_ok=True)

    def _copy_one(self, source: str, target: str) -> None:
        """Copy a file, which is known to be none of the directories."""
        self._making_parents(
            target, lambda: self.filesystem.copy_file(self.uri(source), self.uri(target))
        )
        self.forget_listing(target)

    def _making_parents(self, path: str, action: Callable[[], Any]) -> Any:
        """Call `action`; if the directory is missing, create it and call again (`auto_mkdir`)."""
        return self._with_parents(path, action) if self.auto_mkdir else action()

    def _with_parents(self, path: str, action: Callable[[], Any]) -> Any:
        """Call `action`; if the directory is missing, create it and call again."""
        try:
            return action()
        except NotFoundError:
            self.makedirs(self._parent(path), exist_ok=True)
        return action()

    def mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        **_: Any,
    ) -> None:
        """Move a file or a directory; the plugin renames it where it can.

        A list or a pattern is copied, and what was copied is removed, and so are some levels of a
        directory: what lies deeper stays. What is moved to where it is stays.

        Raises:
            FailedPreconditionError: A link to a directory was to be moved with others.
            InvalidArgumentError: A directory was to be moved into itself, two files to one place,
                or a file to where another one is moved from; nothing was done.
        """
        try:
            if maxdepth is not None or not _is_single(path1):
                self._move_many(path1, path2, recursive=recursive, maxdepth=maxdepth)
                return
            source, target = self._strip_protocol(path1), self._destination(path1, path2)
            if not self.isdir(source):
                self._rename(source, target)
            elif Overlap.SAME not in {self._overlap(source, target), self._overlap(source, path2)}:
                self._refuse_inside(source, target)
                self._move_directory(source, target)
        finally:
            self.forget_listings()

    def _move_many(self, path1: Any, path2: Any, *, recursive: bool, maxdepth: int | None) -> None:
        """Copy what fsspec's rules make of the arguments, then remove exactly that."""
        survey = Survey(self)
        survey.copy(path1, path2, recursive=recursive, maxdepth=maxdepth, follow_links=False)
        pairs = [
            (self._strip_protocol(source), self._strip_protocol(target))
            for source, target in survey.pairs
        ]
        self._refuse_losses(pairs)
        pairs = [pair for pair in pairs if self._overlap(*pair) is not Overlap.SAME]
        files = [pair for pair in pairs if not survey.is_known_directory(pair[0])]
        known = survey.known_directories()
        for source in filter(self._is_link, sorted(known)):
            raise FailedPreconditionError(
                f"{self.uri(source)} is a link to a directory; move it by itself",
                path=self.uri(source),
                operation="rename_file",
            )
        directories = [pair for pair in pairs if pair[0] in known]
        for source, target in directories:
            self._refuse_inside(source, target)
        for _, target in directories:
            self.makedirs(target, exist_ok=True)
        for outcome in self._crew().run(lambda pair: self._copy_one(*pair), files):
            outcome.get()
        for outcome in self._crew().run(lambda pair: self.rm_file(pair[0]), files):
            outcome.get()
        emptied = {source for source, _ in directories}.union(
            *(_above(source) for source, _ in files)
        )
        for source in sorted(emptied & known, reverse=True):
            with suppress(NotFoundError):  # in a store a directory goes with the last file
                if maxdepth is None or not self.ls(source, detail=False, refresh=True):
                    self.rmdir(source)

    def _refuse_losses(self, pairs: list[tuple[str, str]]) -> None:
        """Raise if a file would be moved to where another one is moved to, or from.

        Raises:
            InvalidArgumentError: One of the two would be lost.
        """
        sources = dict(pairs)
        taken: dict[str, str] = {}
        for source, target in pairs:
            other = taken.setdefault(target, source)
            why = ""
            if other != source:
                why = f"where {self.uri(other)} is moved to"
            elif sources.get(target, target) != target:
                why = "which is moved itself"
            if why:
                raise InvalidArgumentError(
                    f"{self.uri(source)} cannot be moved to {self.uri(target)}, {why}",
                    path=self.uri(source),
                    operation="rename_file",
                )

    def _overlap(self, one: Any, other: Any) -> Overlap:
        fs = self.filesystem
        return overlap((fs, self.uri(one)), (fs, self.uri(other)))

    def _refuse_inside(self, source: str, target: str) -> None:
        """Raise if a directory is moved into itself, which would delete it."""
        if self._overlap(source, target) is Overlap.HOLDS:
            raise InvalidArgumentError(
                f"{self.uri(source)} cannot be moved to {self.uri(target)}, which lies within it",
                path=self.uri(source),
                operation="rename_file",
            )

    def _destination(self, source: Any, target: Any) -> str:
        """Return where `source` ends up: a directory takes it in under its own name."""
        stripped: str = self._strip_protocol(target)
        if str(target).endswith("/") or self.isdir(stripped):
            return paths.join(stripped, self._strip_protocol(source).rpartition("/")[2])
        return stripped

    def _rename(self, source: str, target: str) -> None:
        self._making_parents(
            target, lambda: self.filesystem.rename_file(self.uri(source), self.uri(target))
        )

    def _move_directory(self, source: str, target: str) -> None:
        """Rename a directory, or move what is in it where the plugin renames files only."""
        try:
            self._rename(source, target)
        except (UnimplementedError, FailedPreconditionError):
            if self._is_link(source):
                raise
            (children,) = self._listings([source], are_whole=True)
            if isinstance(children, OSError):
                raise children from None
            self.mkdir(target)
            for child in children:
                move = self._move_directory if child["type"] == "directory" else self._rename
                move(child["name"], paths.join(target, child["name"].rpartition("/")[2]))
            self.rmdir(source)


def _not_below(found: list[str], directories: set[str]) -> list[str]:
    """Return those paths that do not lie below one of some directories."""
    return [one for one in found if directories.isdisjoint(_above(one))]


def _above(path: str) -> set[str]:
    """Return the paths above a path."""
    parts = path.split("/")
    return {"/".join(parts[:count]) for count in range(1, len(parts))}


def _is_single(path: Any) -> bool:
    return isinstance(path, (str, PathLike)) and not has_magic(str(path))
