"""The functions of `tf.io.gfile`, on one service."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING, Any, Protocol

from modular_tf.concurrency.crew import results_at_once
from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    FailedPreconditionError,
    ModularTFError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
)
from modular_tf.filesystem.copying import copy_through, inside_directory
from modular_tf.filesystem.location import Location, checked_listing, entered
from modular_tf.filesystem.trees import remove_tree, rename
from modular_tf.filesystem.uri import scheme_of
from modular_tf.gfile.file import GFile, PathArgument, as_uri
from modular_tf.service.default import default_service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from modular_tf.filesystem.files import FileStatistics
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.location import Identity, Listing


def join(path: Any, *paths: Any) -> Any:
    """Join parts of a path, as `os.path.join` does; of a URI, always by `/`.

    An absolute part on the right replaces what stands before it, host and scheme included
    (TensorFlow's rule).

    Returns:
        Text, or bytes if the parts are bytes.
    """
    if "://" in as_uri(path)[1:]:
        return posixpath.join(path, *paths)
    return os.path.join(path, *paths)  # pathlib would fold the slashes of a URI


class ServesFilesystems(Protocol):
    """The part of `PluginService` that the functions need."""

    def filesystem_for(self, uri: str) -> Filesystem:
        """Return the filesystem that serves the scheme of `uri`."""

    def schemes(self) -> Mapping[str, str]:
        """Return the plugin's name for each scheme."""

    def calls_at_once(self, *schemes: str) -> int:
        """Return how many calls work on many files may make at once."""


class GfileFunctions:
    """All that `modular_tf.gfile` offers, on one service. Any thread may call it.

    Every function raises the `ModularTFError` whose name is that of TensorFlow's error, and a
    `TypeError` for an argument that is no path.

    Args:
        service: Where filesystems come from; the default service, asked anew for each call, where
            it is not given.
    """

    def __init__(self, service: ServesFilesystems | None = None) -> None:
        self._service = service

    def _filesystem_for(self, uri: str) -> Filesystem:
        return (self._service or default_service()).filesystem_for(uri)

    def GFile(self, name: PathArgument, mode: str = "r") -> GFile:  # noqa: N802 - TensorFlow's name
        """Return a file object; see `modular_tf.gfile.GFile`."""
        return GFile(name, mode, service=self._service)

    join = staticmethod(join)

    def get_registered_schemes(self) -> list[str]:
        """Return the schemes that are served, sorted; "" stands for plain local paths."""
        return sorted((self._service or default_service()).schemes())

    # -- questions ----------------------------------------------------------------------------

    def exists(self, path: PathArgument) -> bool:
        """Return whether a file or directory exists; nothing exists under a file."""
        uri = path if type(path) is str else as_uri(path)
        try:  # called often: a further function would cost
            return (self._service or default_service()).filesystem_for(uri).path_exists(uri)
        except FailedPreconditionError:
            return False

    def isdir(self, path: PathArgument) -> bool:
        """Return whether a directory exists; False also if that cannot be found out."""
        uri = as_uri(path)
        try:
            filesystem = self._filesystem_for(uri)
        except UnimplementedError:
            return False
        return _is_directory(filesystem, uri)

    def stat(self, path: PathArgument) -> FileStatistics:
        """Return `length` in bytes, `mtime_nsec` since 1970, and `is_directory`."""
        uri = path if type(path) is str else as_uri(path)
        return (self._service or default_service()).filesystem_for(uri).stat(uri)  # as above

    def listdir(self, path: PathArgument) -> list[str]:
        """Return the names in a directory, sorted.

        Raises:
            NotFoundError: It does not exist or is no directory.
        """
        return self._listing(as_uri(path)).names

    def _listing(self, uri: str, *, with_statistics: bool = False) -> Listing:
        filesystem = self._filesystem_for(uri)
        try:
            found = checked_listing(
                filesystem, uri, on_left_out="warn", with_statistics=with_statistics
            )
        except FailedPreconditionError as error:
            raise _no_directory(uri) from error
        # Object stores list what does not exist as empty.
        if not found.names and not _is_directory(filesystem, uri):
            raise _no_directory(uri)
        return found

    def glob(self, pattern: PathArgument | Iterable[PathArgument]) -> list[str]:
        r"""Return the paths that match a pattern, or each of several in turn, sorted for each.

        `*` and `?` match within one level, `[set]`, `[^set]` and `[!set]` one character, and a
        backslash takes the meaning from what follows. Names with a leading dot are like others.

        Raises:
            InvalidArgumentError: A wildcard stands before the path, in scheme or host.
        """
        if isinstance(pattern, (str, os.PathLike)):
            return self._glob_one(pattern)
        return [path for single in pattern for path in self._glob_one(single)]

    def _glob_one(self, pattern: object) -> list[str]:
        uri = as_uri(pattern)
        return self._filesystem_for(uri).get_matching_paths(uri)

    def walk(
        self,
        top: PathArgument,
        topdown: bool = True,  # noqa: FBT001, FBT002 - TensorFlow's signature
        onerror: Callable[[ModularTFError], object] | None = None,
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield each directory of a tree with the names of its directories and its files.

        Args:
            top: The root of the tree.
            topdown: Parents come before their children, and names that the caller removes from
                the list of directories are passed over.
            onerror: Called with the error of each directory that cannot be listed, which is then
                passed over. Without it a missing directory is passed over and other errors rise.

        A link that leads back to a directory above it is passed over: what is there was yielded.
        `onerror` is called for it too.
        """

        def walk(
            uri: str, above: tuple[Identity, ...]
        ) -> Iterator[tuple[str, list[str], list[str]]]:
            place = self._filesystem_for(uri), uri
            try:
                above = entered(place, above)
                subdirs, files = self._listed_by_kind(uri)
            except ModularTFError as error:
                if onerror is not None:
                    onerror(error)
                elif not isinstance(error, (NotFoundError, FailedPreconditionError)):
                    raise
                return
            if topdown:
                yield uri, subdirs, files
            for name in subdirs:
                yield from walk(join(uri, name), above)
            if not topdown:
                yield uri, subdirs, files

        yield from walk(as_uri(top), ())

    def _listed_by_kind(self, uri: str) -> tuple[list[str], list[str]]:
        service = self._service or default_service()
        filesystem = service.filesystem_for(uri)
        prefix = join(uri, "")
        found = self._listing(uri, with_statistics=True)
        kinds = {name: known.is_directory for name, known in found.statistics.items()}
        unknown = [name for name in found.names if name not in kinds]
        asked = results_at_once(
            lambda name: _is_directory(filesystem, prefix + name),
            unknown,
            service.calls_at_once(scheme_of(uri)),
        )
        kinds.update(zip(unknown, asked, strict=True))
        subdirs = [name for name in found.names if kinds[name]]
        files = [name for name in found.names if not kinds[name]]
        return subdirs, files

    # -- changes ------------------------------------------------------------------------------

    def mkdir(self, path: PathArgument) -> None:
        """Create a directory whose parent exists; fine if the name is taken already."""
        uri = as_uri(path)
        try:
            self._filesystem_for(uri).create_dir(uri)
        except AlreadyExistsError:
            return

    def makedirs(self, path: PathArgument) -> None:
        """Create a directory and whatever parents are missing; fine if it exists."""
        uri = as_uri(path)
        self._filesystem_for(uri).recursively_create_dir(uri)

    def remove(self, path: PathArgument) -> None:
        """Delete one file."""
        uri = as_uri(path)
        self._filesystem_for(uri).delete_file(uri)

    def rmtree(self, path: PathArgument) -> None:
        """Delete a directory with all that it holds, or a file.

        Raises:
            PermissionDeniedError: The filesystem left something behind without saying why.
        """
        uri = as_uri(path)
        service = self._service or default_service()
        at_once = service.calls_at_once(scheme_of(uri))
        left = remove_tree(service.filesystem_for(uri), uri, at_once)
        if any(left):
            counts = f"{left.undeleted_files} files and {left.undeleted_dirs} directories"
            raise PermissionDeniedError.of(
                "delete_recursively", uri, f"{counts} could not be deleted"
            )

    def rename(
        self,
        src: PathArgument,
        dst: PathArgument,
        overwrite: bool = False,  # noqa: FBT001, FBT002 - TensorFlow's signature
    ) -> None:
        """Move a file or directory within one filesystem.

        A directory is moved entry by entry where the filesystem renames files only.

        Raises:
            AlreadyExistsError: `dst` exists and `overwrite` is not set.
            UnimplementedError: The two lie on different filesystems; copy and remove instead.
        """
        source, target = as_uri(src), as_uri(dst)
        service = self._service or default_service()
        filesystem = service.filesystem_for(source)
        if service.filesystem_for(target) is not filesystem:
            why = f"{target!r} lies on another filesystem; copy it, then remove the source"
            raise UnimplementedError.of("rename_file", source, why)
        self._require_free(target, "rename", overwrite=overwrite)
        places = Location(filesystem, source), Location(filesystem, target)
        rename(*places, service.calls_at_once(scheme_of(source)))

    def copy(
        self,
        src: PathArgument,
        dst: PathArgument,
        overwrite: bool = False,  # noqa: FBT001, FBT002 - TensorFlow's signature
    ) -> None:
        """Copy a file, also between filesystems; onto itself it changes nothing.

        Raises:
            AlreadyExistsError: `dst` exists and `overwrite` is not set.
        """
        source, target = as_uri(src), as_uri(dst)
        source_fs, target_fs = self._filesystem_for(source), self._filesystem_for(target)
        self._require_free(target, "copy", overwrite=overwrite)
        if source_fs is not target_fs:
            target = inside_directory(target_fs, target, source)
        if source_fs.shares_store_with(target_fs):
            source_fs.copy_file(source, target)
        else:
            copy_through(source_fs, source, target_fs, target, is_landing=True)

    def _require_free(self, target: str, operation: str, *, overwrite: bool) -> None:
        if isinstance(overwrite, (str, bytes, os.PathLike)):  # a third path, by mistake
            raise TypeError(f"{operation}: overwrite is True or False; found {overwrite!r}")
        if not overwrite and self.exists(target):
            raise AlreadyExistsError(
                f"{operation}: {target!r} exists and overwrite is not set", path=target
            )


def _is_directory(filesystem: Filesystem, uri: str) -> bool:
    try:
        return filesystem.is_directory(uri)
    except ClosedError:
        raise
    except ModularTFError:
        return False


def _no_directory(uri: str) -> NotFoundError:
    return NotFoundError.of("get_children", uri, "no such directory")
