"""An adapter that gives an fsspec filesystem the operations of `TF_FilesystemOps`.

fsspec itself is not imported here: the caller who passes a filesystem has imported it.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone
from glob import has_magic
from typing import TYPE_CHECKING, Any

from modular_tf.errors import FailedPreconditionError, NotFoundError
from modular_tf.filesystem.child_names import (
    FILE_AND_DIRECTORY,
    Listing,
    incomplete,
    store_listing,
    unnamed_keys,
    warn_left_out,
)
from modular_tf.filesystem.fsspec_files import (
    FsspecMemoryRegion,
    FsspecRandomAccessFile,
    FsspecWritableFile,
    is_of_fsspec,
    translated_errors,
)
from modular_tf.filesystem.fsspec_names import FsspecNames, is_directory_url, is_url, plain_path
from modular_tf.filesystem.statistics import DeletedCounts, FileStatistics
from modular_tf.filesystem.uri import join_path

if TYPE_CHECKING:
    from modular_tf.filesystem.files import (
        RandomAccessFile,
        ReadOnlyMemoryRegion,
        WritableFile,
    )

_CHANGED = ("mtime", "LastModified", "Last-Modified", "last_modified", "modified", "updated")
"""The names under which implementations tell the modification time, each in a type of its own."""


def is_fsspec_filesystem(candidate: object) -> bool:
    """Return whether `candidate` is an instance of fsspec's `AbstractFileSystem`."""
    return is_of_fsspec(candidate, "AbstractFileSystem")


class FsspecOps:
    """The operations that an fsspec filesystem can do.

    Every other operation is missing on purpose: the host has defaults for those. Arguments are
    URIs of the scheme that the filesystem is registered for; `FsspecNames` tells fsspec's path.
    [any thread], as far as `fs` allows it.

    Args:
        fs: The filesystem; it stays the caller's, closing a service does not close it.
    """

    def __init__(self, fs: Any) -> None:
        self.fs = fs
        self._names = FsspecNames(fs)

    def translate_name(self, uri: str) -> str:
        """Return fsspec's path for a URI."""
        return self._names.path_of(uri)

    def disk_path(self, uri: str) -> str | None:
        """Return the path on this machine's disk that a URI names; None where it names none."""
        protocols = (self.fs.protocol,) if isinstance(self.fs.protocol, str) else self.fs.protocol
        return self.translate_name(uri) if "file" in protocols else None

    # -- opening ------------------------------------------------------------------------------

    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        """Open an existing file for reading."""
        path, info = self._file(uri, "new_random_access_file")
        return FsspecRandomAccessFile(self.fs, path, uri, info.get("size"))

    def new_writable_file(self, uri: str) -> WritableFile:
        """Create a file, or empty an existing one."""
        return self._open(uri, "wb", "new_writable_file")

    def new_appendable_file(self, uri: str) -> WritableFile:
        """Open a file, created where missing, for writing at its end."""
        return self._open(uri, "ab", "new_appendable_file")

    def _open(self, uri: str, mode: str, operation: str) -> WritableFile:
        with translated_errors(operation, uri):
            return FsspecWritableFile(self.fs.open(self.translate_name(uri), mode), uri)

    def new_read_only_memory_region_from_file(self, uri: str) -> ReadOnlyMemoryRegion:
        """Read a whole file into memory."""
        path, _ = self._file(uri, "new_read_only_memory_region_from_file")
        with translated_errors("new_read_only_memory_region_from_file", uri):
            return FsspecMemoryRegion(bytes(self.fs.cat_file(path)), uri)

    # -- questions ----------------------------------------------------------------------------

    def path_exists(self, uri: str) -> bool:
        """Return whether a path exists; fsspec's own `exists` would hide other errors."""
        try:
            self._info(uri, "path_exists")
        except NotFoundError:
            return False
        return True

    def stat(self, uri: str) -> FileStatistics:
        """Return length, modification time and kind; a length that no store tells is counted."""
        info = self._info(uri, "stat")
        if (found := _statistics(info)) is not None:
            return found
        size = info.get("size")
        length = self._count_bytes(uri) if size is None else int(size)
        return FileStatistics(length, self._changed(uri, info), is_directory=False)

    def _count_bytes(self, uri: str) -> int:
        with translated_errors("stat", uri):
            return len(self.fs.cat_file(self.translate_name(uri)))

    def _changed(self, uri: str, info: dict[str, Any]) -> int:
        if (changed := _change_time(info)) is not None:
            return changed
        with suppress(Exception):  # most implementations simply do not know
            return _nanoseconds(self.fs.modified(self.translate_name(uri)))
        return 0

    def is_directory(self, uri: str) -> bool:
        """Return whether it is a directory; `NotFoundError` for nothing."""
        return bool(self._info(uri, "is_directory")["type"] == "directory")

    def get_children(self, uri: str) -> list[str]:
        """Return the names in a directory."""
        found = self.listing(uri, is_thorough=False)
        warn_left_out(uri, found.left_out)
        return found.names

    def get_children_statistics(self, uri: str) -> dict[str, FileStatistics]:
        """Return the names in a directory, each with what `stat` returns; none that is gone."""
        found = self.listing(uri, is_thorough=False)
        warn_left_out(uri, found.left_out)
        statistics = dict(found.statistics)
        for name in found.names:
            if name not in statistics:
                with suppress(NotFoundError):
                    statistics[name] = self.stat(join_path(uri, name))
        return statistics

    def listing(
        self,
        uri: str,
        *,
        is_thorough: bool = True,
        with_statistics: bool = False,  # noqa: ARG002  (fsspec's listings have them)
    ) -> Listing:
        """Return the names in a directory, and what else is there that no path leads to."""
        path, info = self.translate_name(uri), self._info(uri, "get_children")
        is_directory = info["type"] == "directory"
        if not (is_directory or (is_thorough and self._is_above_others(path, info))):
            raise _wrong_kind("get_children", uri, "not a directory")
        with translated_errors("get_children", uri):
            entries = self.fs.ls(path, detail=True)
            kinds = self._names.kinds(path, entries)
            found = store_listing(name for name, _ in sorted(kinds))
            if self._names.has_doubled_slash(path, entries, asks=is_thorough):
                found = found._replace(unnamed=("", *found.unnamed))
        reached = {*found.names} - found.both
        statistics = {
            name: known
            for (name, _), entry in kinds.items()
            if name in reached and (known := _listed_statistics(entry)) is not None
        }
        return found._replace(statistics=statistics)

    def is_file_and_directory(self, uri: str) -> bool:
        """Return whether a name is that of a file and of a directory, as stores allow it."""
        path = self.translate_name(uri)
        if self.disk_path(uri) is not None:
            return False
        try:
            info = self.fs.info(path)
            # Some implementations take every name that others lie below for a directory.
            return self._is_above_others(path, info) and (
                info["type"] == "file" or isinstance(self.fs.cat_file(path, 0, 1), bytes)
            )
        except Exception:  # noqa: BLE001  (of any implementation: there is no file)
            return False

    def _is_above_others(self, path: str, info: dict[str, Any]) -> bool:
        """Return whether something lies below a name, which may be that of a file."""
        if is_url(info["name"]):  # a page may be any file, which would be read to list it
            return False
        below = f"{plain_path(path)}/"
        try:
            return any(one.startswith(below) for one in self.fs.ls(path.rstrip("/"), detail=False))
        except Exception:  # noqa: BLE001  (of any implementation: most list no file)
            return False

    # -- changes ------------------------------------------------------------------------------

    def create_dir(self, uri: str) -> None:
        """Create one directory."""
        with translated_errors("create_dir", uri):
            self.fs.mkdir(self.translate_name(uri), create_parents=False)

    def recursively_create_dir(self, uri: str) -> None:
        """Create a directory and whatever parents are missing; fine where it exists."""
        path = self.translate_name(uri)
        with translated_errors("recursively_create_dir", uri):
            self.fs.makedirs(path, exist_ok=True)
            if self.fs.isfile(path):
                raise _wrong_kind("recursively_create_dir", uri, "a file")

    def delete_file(self, uri: str) -> None:
        """Delete one file."""
        path, _ = self._file(uri, "delete_file")
        with translated_errors("delete_file", uri):
            self.fs.rm_file(path)

    def delete_dir(self, uri: str) -> None:
        """Delete one empty directory."""
        path = self.translate_name(uri)
        if self._info(uri, "delete_dir")["type"] != "directory":
            raise _wrong_kind("delete_dir", uri, "not a directory")
        if any(self.listing(uri, is_thorough=False)):
            raise _wrong_kind("delete_dir", uri, "not empty")
        with translated_errors("delete_dir", uri):
            self.fs.rmdir(path)

    def delete_recursively(self, uri: str) -> DeletedCounts:
        """Delete everything below and including `uri`."""
        self._info(uri, "delete_recursively")
        path = self.translate_name(uri)
        with translated_errors("delete_recursively", uri):
            if has_magic(path):
                self._delete_one_by_one(path)
            else:
                self.fs.rm(path, recursive=True)
        return DeletedCounts(0, 0)

    def _delete_one_by_one(self, path: str) -> None:
        """Delete a tree whose name fsspec would take for a pattern."""
        for found in sorted(self.fs.find(path, withdirs=True), reverse=True):
            if self.fs.isdir(found):
                self.fs.rmdir(found)
            else:
                self.fs.rm_file(found)

    def rename_file(self, source: str, target: str) -> None:
        """Move a file or a directory; a directory as target takes it in.

        A directory is moved file by file where the client does not rename it: all is copied first,
        and a failure until then leaves it as it was.
        """
        old, new = self._ends(source, target, "rename_file")
        if old == new:  # it lies in the directory that it is moved to
            return
        if self.is_file_and_directory(source):
            raise incomplete(source, [FILE_AND_DIRECTORY])
        with translated_errors("rename_file", source):
            if self.fs.isdir(old):
                self._move_directory(old.rstrip("/"), new.rstrip("/"), source)
            elif has_magic(old + new):
                self.fs.cp_file(old, new)
                self.fs.rm_file(old)
            else:
                self.fs.mv(old, new)

    def _move_directory(self, old: str, new: str, source: str) -> None:
        if f"{new}/".startswith(f"{old}/"):
            raise _wrong_kind("rename_file", source, "to be moved into itself")
        if self.fs.exists(new):
            raise _wrong_kind("rename_file", source, f"in the way of what is at {new!r}")
        # fsspec's own `mv` copies by patterns and deletes the rest: half of it fails over s3fs and
        # obstore, and names with magic characters are taken for patterns.
        if type(self.fs).mv.__module__ != "fsspec.spec":
            try:
                self.fs.mv(old, new, recursive=True)
            except Exception:
                if self.fs.exists(new) or not self.fs.exists(old):
                    raise
            else:
                return
        self._move_one_by_one(old, new)

    def _tree(self, path: str) -> dict[str, bool]:
        """Return the paths of a tree, its root first, and whether each is a directory.

        Raises:
            DataLossError: Something in it has no path.
        """
        found = {path: True}
        entries = self.fs.ls(path, detail=True)
        kinds = self._names.kinds(path, entries)
        listing = store_listing(name for name, _ in kinds)
        left_out = listing.left_out
        if self._names.has_doubled_slash(path, entries):
            left_out.append(unnamed_keys(""))
        if left_out:
            raise incomplete(path, left_out)
        for name, is_directory in kinds:
            child = f"{path}/{name}"
            found.update(self._tree(child) if is_directory else {child: False})
        return found

    def _move_one_by_one(self, old: str, new: str) -> None:
        """Copy each file of a tree, then delete what was copied, and directories that are empty."""
        found = self._tree(old)
        made: list[str] = []
        try:
            for path in sorted(found):
                landing = new + path.removeprefix(old)
                made.append(landing)
                if found[path]:
                    with suppress(NotImplementedError):  # it has no directories
                        self.fs.makedirs(landing, exist_ok=True)
                else:
                    self.fs.cp_file(path, landing)
        except BaseException:
            self._delete_all({path: found[old + path.removeprefix(new)] for path in made})
            raise
        left = self._delete_all(found)
        if left:
            raise left[0]

    def _delete_all(self, found: dict[str, bool]) -> list[Exception]:
        """Delete files and then empty directories; return what failed of what is still there."""
        failures: list[Exception] = []
        files = sorted(path for path, is_directory in found.items() if not is_directory)
        directories = sorted(found.keys() - set(files), reverse=True)
        for path in [*files, *directories]:
            try:
                if path in files:
                    self.fs.rm_file(path)
                elif self.fs.isdir(path):  # else it has gone with what was in it
                    if self.fs.ls(path, detail=False):
                        failures.append(_wrong_kind("rename_file", path, "not empty"))
                    else:
                        self.fs.rmdir(path)
            except Exception as error:  # noqa: BLE001  (of any implementation)
                failures.append(error)
        return failures

    def copy_file(self, source: str, target: str) -> None:
        """Copy a file; a directory as target is copied into."""
        self._file(source, "copy_file")
        old, new = self._ends(source, target, "copy_file")
        with translated_errors("copy_file", source):
            if old != new:
                self.fs.cp_file(old, new)

    def _ends(self, source: str, target: str, operation: str) -> tuple[str, str]:
        self._info(source, operation)
        old, new = self.translate_name(source), self.translate_name(target)
        with translated_errors(operation, target):
            into = self.fs.isdir(new)
        return old, f"{new.rstrip('/')}/{old.rpartition('/')[2]}" if into else new

    def flush_caches(self) -> None:
        """Clear the cache of listings."""
        with translated_errors("flush_caches", ""):
            self.fs.invalidate_cache()

    # -- what is there ------------------------------------------------------------------------

    def _info(self, uri: str, operation: str) -> dict[str, Any]:
        with translated_errors(operation, uri):
            info: dict[str, Any] = self.fs.info(self.translate_name(uri))
        # Over HTTP every URL is a file to fsspec; the one that the server redirected to tells more.
        return {**info, "type": "directory"} if is_directory_url(info.get("url")) else info

    def _file(self, uri: str, operation: str) -> tuple[str, dict[str, Any]]:
        info = self._info(uri, operation)
        if info["type"] == "directory":
            raise _wrong_kind(operation, uri, "a directory")
        return self.translate_name(uri), info


def _wrong_kind(operation: str, uri: str, kind: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"{operation} {uri!r}: it is {kind}", path=uri, operation=operation
    )


def _statistics(info: dict[str, Any]) -> FileStatistics | None:
    """Return the statistics in an entry of fsspec; None where it lacks length or time."""
    if info["type"] == "directory":
        return FileStatistics(int(info.get("size") or 0), 0, is_directory=True)
    size, changed = info.get("size"), _change_time(info)
    if size is None or changed is None:
        return None
    return FileStatistics(int(size), changed, is_directory=False)


def _listed_statistics(entry: dict[str, Any]) -> FileStatistics | None:
    """Return the statistics in an entry of a listing, unless `stat` may return others.

    A page's links show neither kind nor length, and a link of the disk is not what it leads to.
    """
    is_sure = entry["type"] in ("file", "directory") and not entry.get("islink")
    return _statistics(entry) if is_sure and not is_url(entry["name"]) else None


def _change_time(info: dict[str, Any]) -> int | None:
    """Return the modification time in an entry of fsspec, in nanoseconds; None if it has none."""
    return next((_nanoseconds(info[key]) for key in _CHANGED if info.get(key) is not None), None)


def _nanoseconds(when: Any) -> int:
    """Return a time in nanoseconds from any of fsspec's formats, 0 if it cannot be parsed."""
    if isinstance(when, str):
        try:
            when = _parsed(when)
        except ValueError:
            return 0
    if isinstance(when, datetime):
        # Stores tell times of UTC, and some clients leave the zone out.
        when = (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()
    return int(when * 1e9)


def _parsed(when: str) -> datetime:
    if when.endswith("GMT"):  # as HTTP writes it
        from email.utils import parsedate_to_datetime  # noqa: PLC0415  (takes long)

        return parsedate_to_datetime(when)
    return datetime.fromisoformat(when.replace("Z", "+00:00"))
