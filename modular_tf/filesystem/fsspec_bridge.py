"""An adapter that gives an fsspec filesystem the operations of `TF_FilesystemOps`.

fsspec itself is not imported here: the caller who passes a filesystem has imported it.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone
from glob import has_magic
from typing import TYPE_CHECKING, Any

from modular_tf.errors import UnimplementedError
from modular_tf.filesystem.client_ops import Child, ClientOps, wrong_kind
from modular_tf.filesystem.fsspec_files import (
    FsspecRandomAccessFile,
    FsspecWritableFile,
    is_of_fsspec,
)
from modular_tf.filesystem.fsspec_names import FsspecNames, is_directory_url, is_url, plain_path
from modular_tf.filesystem.python_errors import translated_errors
from modular_tf.filesystem.statistics import FileStatistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.filesystem.files import RandomAccessFile, WritableFile

_CHANGED = ("mtime", "LastModified", "Last-Modified", "last_modified", "modified", "updated")
"""The names under which implementations tell the modification time, each in a type of its own."""


def is_fsspec_filesystem(candidate: object) -> bool:
    """Return whether `candidate` is an instance of fsspec's `AbstractFileSystem`."""
    return is_of_fsspec(candidate, "AbstractFileSystem")


class FsspecOps(ClientOps):
    """The operations of an fsspec filesystem, whose paths `FsspecNames` finds. [any thread]"""

    def __init__(self, fs: Any) -> None:
        super().__init__(fs)
        self._names = FsspecNames(fs)
        protocols = (fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol
        # Web servers may send the whole file whatever part they are asked for.
        self.is_distant = bool(getattr(fs, "async_impl", False)) and "http" not in protocols
        self._uncached_info, self._uncached_ls = _uncached(fs.info), _uncached(fs.ls)

    def translate_name(self, uri: str) -> str:
        """Return fsspec's path for a URI."""
        return self._names.path_of(uri)

    def disk_path(self, uri: str) -> str | None:
        """Return the path on this machine's disk that a URI names; None where it names none."""
        protocols = (self.fs.protocol,) if isinstance(self.fs.protocol, str) else self.fs.protocol
        return self.translate_name(uri) if "file" in protocols else None

    # -- questions ----------------------------------------------------------------------------

    def _is_file(self, path: str) -> bool:
        # Some implementations take every name that others lie below for a directory.
        if self._names.are_urls:  # which name no directory too
            return False
        try:
            return isinstance(self.fs.cat_file(path, 0, 1), bytes)
        except FileNotFoundError:
            return False
        except Exception:  # noqa: BLE001  (an empty file has no first byte; a directory has none)
            return not self._is_directory(path)

    def _forget(self, path: str) -> None:
        """Have the client ask the store about a path, and not its cache of listings.

        Some keep a listing for as long as the process lives, whatever others change, and s3fs even
        the old length of a file that it wrote anew itself. Another thread may fill the cache again
        by a request that began before: those that can be asked past their cache are.
        """
        for one in (path, path.rstrip("/").rpartition("/")[0]):
            with suppress(Exception):  # of any implementation: it keeps nothing of such a path
                if one:
                    self.fs.invalidate_cache(one)

    def _info(self, path: str) -> dict[str, Any]:
        self._forget(path)
        info: dict[str, Any] = self.fs.info(path, **self._uncached_info)
        # Over HTTP every URL is a file to fsspec; the one that the server redirected to tells more.
        return {**info, "type": "directory"} if is_directory_url(info.get("url")) else info

    def _is_directory(self, path: str) -> bool:
        return bool(self._info(path)["type"] == "directory")

    def _statistics(self, path: str) -> FileStatistics:
        info = self._info(path)
        if (found := _statistics(info)) is not None:
            return found
        size = info.get("size")
        length = len(self.fs.cat_file(path)) if size is None else int(size)
        return FileStatistics(length, self._changed(path, info), is_directory=False)

    def _changed(self, path: str, info: dict[str, Any]) -> int:
        if (changed := _change_time(info)) is not None:
            return changed
        with suppress(Exception):  # most implementations simply do not know
            return _nanoseconds(self.fs.modified(path))
        return 0

    def _listed(self, uri: str, *, is_thorough: bool) -> list[Child]:
        if self._names.are_urls:  # to list what is no directory, it would be read
            return super()._listed(uri, is_thorough=is_thorough)
        with translated_errors("get_children", uri):
            path = self.translate_name(uri)
            children = self._children(path, asks=is_thorough)
            if not children and not self._is_directory(path):
                raise wrong_kind("get_children", uri, "not a directory")
            return children

    def _children(self, path: str, *, asks: bool = True) -> list[Child]:
        self._forget(path)
        entries = self.fs.ls(path, detail=True, **self._uncached_ls)
        children = [
            Child(name, is_directory, _listed_statistics(entry))
            for (name, is_directory), entry in self._names.kinds(path, entries).items()
        ]
        if self._names.has_doubled_slash(path, entries, asks=asks):
            children.append(Child("", is_directory=True))
        return children

    def _is_above_others(self, path: str) -> bool:
        if self._names.are_urls:  # a page may be any file, which would be read to list it
            return False
        below = f"{plain_path(path)}/"
        self._forget(path)
        try:
            names = self.fs.ls(path.rstrip("/"), detail=False, **self._uncached_ls)
            return any(one.startswith(below) for one in names)
        except Exception:  # noqa: BLE001  (of any implementation: most list no file)
            return False

    # -- opening ------------------------------------------------------------------------------

    def _file(self, path: str) -> dict[str, Any]:
        info = self._info(path)
        if info["type"] == "directory":
            raise IsADirectoryError(f"{path!r} is a directory")
        return info

    def _reader(self, path: str, uri: str) -> RandomAccessFile:
        return FsspecRandomAccessFile(self.fs, path, uri, self._file(path).get("size"))

    def _writer(self, path: str, uri: str, *, appends: bool) -> WritableFile:
        try:
            file = self.fs.open(path, "ab" if appends else "wb")
        except (NotImplementedError, ValueError) as error:
            if not appends:
                raise
            if self._has_file(path):
                raise UnimplementedError.of(
                    "new_appendable_file",
                    uri,
                    f"{type(self.fs).__name__} cannot append to a file"
                    f" ({error}); write another file, or register an obstore store or a filesystem"
                    " of pyarrow.fs, whose files are written anew to append to them",
                ) from error
            file = self.fs.open(path, "wb")
        return FsspecWritableFile(file, uri)

    def _content(self, path: str) -> bytes:
        self._file(path)
        return bytes(self.fs.cat_file(path))

    # -- changes ------------------------------------------------------------------------------

    def _make_directory(self, path: str) -> None:
        self.fs.mkdir(path, create_parents=False)

    def _make_directories(self, path: str) -> None:
        self.fs.makedirs(path, exist_ok=True)

    def _remove_file(self, path: str) -> None:
        self.fs.rm_file(path)

    def _remove_empty(self, path: str) -> None:
        try:
            self.fs.rmdir(path)
        except FileExistsError:
            if not self.is_distant:
                raise
            # s3fs removes buckets alone; what is there is the key that marks the directory.
            self.fs.rm_file(f"{path.rstrip('/')}/")

    def _remove_tree(self, path: str) -> None:
        if not has_magic(path):
            self.fs.rm(path, recursive=True)
            return
        for found in sorted(self.fs.find(path, withdirs=True), reverse=True):
            if self.fs.isdir(found):
                self.fs.rmdir(found)
            else:
                self.fs.rm_file(found)

    def _copy(self, old: str, new: str) -> None:
        self.fs.cp_file(old, new)

    def _move_file(self, old: str, new: str) -> None:
        if has_magic(old + new):
            self.fs.cp_file(old, new)
            self.fs.rm_file(old)
        else:
            self.fs.mv(old, new)

    def _move_whole_directory(self, old: str, new: str) -> bool:
        # fsspec's own `mv` copies by patterns and deletes the rest: half of it fails over s3fs and
        # obstore, and names with magic characters are taken for patterns.
        if type(self.fs).mv.__module__ == "fsspec.spec":
            return False
        try:
            self.fs.mv(old, new, recursive=True)
        except Exception:
            if self.fs.exists(new) or not self.fs.exists(old):
                raise
            return False
        return True

    def flush_caches(self) -> None:
        """Clear the cache of listings."""
        with translated_errors("flush_caches", ""):
            self.fs.invalidate_cache()


def _uncached(call: Callable[..., Any]) -> dict[str, bool]:
    """Return the arguments by which a client answers without its cache, none where it has none."""
    from inspect import signature  # noqa: PLC0415  (fsspec has imported it)

    return {"refresh": True} if "refresh" in signature(call).parameters else {}


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
