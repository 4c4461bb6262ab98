"""An adapter that gives an fsspec filesystem the operations of `TF_FilesystemOps`.

fsspec itself is not imported here: the caller who passes a filesystem has imported it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timezone
from glob import has_magic
from typing import TYPE_CHECKING, Any
from weakref import finalize

from modular_tf.errors import ClosedError, DataLossError, ModularTFError, UnimplementedError
from modular_tf.filesystem.client_ops import Child, ClientOps, ClientWriter, wrong_kind
from modular_tf.filesystem.files import RandomAccessFile
from modular_tf.filesystem.python_errors import translated_errors
from modular_tf.filesystem.statistics import FileStatistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Buffer

    from modular_tf.filesystem.files import WritableFile

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
        self._protocols = [fs.protocol] if isinstance(fs.protocol, str) else [*fs.protocol]
        # Web servers may send the whole file whatever part they are asked for.
        self.is_distant = bool(getattr(fs, "async_impl", False)) and "http" not in self._protocols
        self._uncached_info, self._uncached_ls = _uncached(fs.info), _uncached(fs.ls)

    def translate_name(self, uri: str) -> str:
        """Return fsspec's path for a URI."""
        return self._names.path_of(uri)

    def disk_path(self, uri: str) -> str | None:
        """Return the path on this machine's disk that a URI names; None where it names none."""
        return self.translate_name(uri) if "file" in self._protocols else None

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


_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_OF_THE_PAGE = ("?", "#")
"""How links begin that lead to the listing itself, in another order."""


class FsspecNames:
    """The names of a scheme's files in an fsspec filesystem. [any thread]

    A URI whose scheme is a protocol of the filesystem means what it means to fsspec. Of any other
    URI, what follows `scheme://` is the path. Where paths are whole URLs, as over HTTP, a URI of
    another scheme may hold the URL (`web://https://host/file`), or else stands for one of the
    filesystem's first protocol (`web://host/file`).
    """

    def __init__(self, fs: Any) -> None:
        self._fs = fs
        self._protocols = _protocols(fs)
        self._serves_all = "generic" in self._protocols
        self._are_unstripped = "data" in self._protocols  # its `info` takes nothing else
        kept = [one for one in self._protocols if one == "data" or _keeps_urls(fs, one)]
        self.are_urls = self._serves_all or bool(kept)
        if kept:
            self._protocols = kept

    def path_of(self, uri: str) -> str:
        """Return the path for a URI."""
        url = self._url_of(uri)
        if self._are_unstripped:
            return url
        return str(self._fs._strip_protocol(url))  # noqa: SLF001  (the only way fsspec has)

    def _url_of(self, uri: str) -> str:
        """Return the part of a URI that fsspec can read."""
        match = _URL.fullmatch(uri)
        scheme, rest = match.groups() if match else ("", uri)
        if not self.are_urls:
            return uri if scheme in self._protocols else rest
        if _URL.match(rest):
            return rest
        if self._serves_all or scheme in self._protocols:
            return uri
        return f"{self._protocols[0]}://{rest}"

    def children(self, path: str, listed: Iterable[str]) -> list[str]:
        """Return the names in a directory from the paths that fsspec lists."""
        # Some stores list the directory's own marker along with what is in it.
        found = {one.rstrip("/") for one in listed} - {path.rstrip("/"), plain_path(path)}
        names = {_name_below(path.rstrip("/") + "/", one) for one in found}
        if self.are_urls:
            names = {name for name in names if name and not name.startswith(_OF_THE_PAGE)}
        return sorted(names)

    def kinds(
        self, path: str, entries: Iterable[dict[str, Any]]
    ) -> dict[tuple[str, bool], dict[str, Any]]:
        """Return the entries of a directory by name and whether it is the name of a directory.

        An object of a store may be both. A page may link to a directory with and without a slash.
        """
        return {
            (name, entry["type"] == "directory" and not is_url(entry["name"])): entry
            for entry in entries
            for name in self.children(path, [entry["name"]])
        }

    def has_doubled_slash(
        self, path: str, entries: Iterable[dict[str, Any]], *, asks: bool = True
    ) -> bool:
        """Return whether a directory holds keys with a doubled slash, as `d//key` in `d`.

        A listing shows a directory with the name of the listed one then. Some clients show that for
        the directory's own marker too; of those that can find by a prefix the store is asked.

        Args:
            path: The directory.
            entries: What fsspec lists there.
            asks: Whether the store may be asked.
        """
        directory = plain_path(path)
        shown = {entry["name"] for entry in entries if entry["type"] == "directory"}
        if not directory:
            return False
        if f"{directory}/" in shown or directory not in shown:
            return f"{directory}/" in shown
        from inspect import signature  # noqa: PLC0415  (takes long, and is rarely needed)

        client = self._fs
        while "prefix" not in signature(client.find).parameters:
            client = getattr(client, "fs", None)  # one that a wrapper hands everything on to
            if not hasattr(client, "find"):  # none, or a client of another library
                return True
        return asks and bool(self._fs.find(directory, prefix="/"))


def is_url(name: str) -> bool:
    """Return whether a name in a listing is a whole URL, as those of a page's links are."""
    return _URL.match(name) is not None


def plain_path(path: str) -> str:
    """Return a path as listings show it, where some clients take URLs and list plain paths."""
    match = _URL.match(path)
    return (match[2] if match else path).rstrip("/")


def is_directory_url(url: object) -> bool:
    """Return whether a URL is that of a directory: it ends in a slash, or behind its host."""
    match = _URL.match(url) if isinstance(url, str) else None
    return match is not None and (match[2].endswith("/") or "/" not in match[2])


def _name_below(directory: str, path: str) -> str:
    """Return the child of `directory` on the way to `path`; pages link to more than children."""
    if path.startswith(directory):
        return path[len(directory) :].partition("/")[0]
    return path.rpartition("/")[2]


def _protocols(fs: Any) -> list[str]:
    """Return a filesystem's protocols, those that it passes on first."""
    own = [fs.protocol] if isinstance(fs.protocol, str) else [*fs.protocol]
    # What fsspec's caches store is named as in the filesystem behind them.
    behind = getattr(fs, "fs", None) if hasattr(fs, "target_protocol") else None
    return own if behind is None else [*_protocols(behind), *own]


def _keeps_urls(fs: Any, protocol: str) -> bool:
    """Return whether the filesystem's paths are whole URLs of a protocol."""
    with suppress(Exception):  # some read more out of a URL than this one has
        url = f"{protocol}://host/name"
        return bool(fs._strip_protocol(url) == url)  # noqa: SLF001  (the only way fsspec has)
    return False


# Servers of these have each part of a file as soon as it is sent, in the place of the old file.
_SENDING_AT_ONCE = {"fsspec.implementations.ftp", "fsspec.implementations.webhdfs"}


def is_of_fsspec(candidate: object, name: str) -> bool:
    """Return whether an object is of a class of `fsspec.spec`, which need not be imported."""
    return any(
        cls.__name__ == name and cls.__module__ == "fsspec.spec" for cls in type(candidate).__mro__
    )


class FsspecRandomAccessFile(RandomAccessFile):
    """A file read by ranges, which fsspec allows any number of threads to do.

    Some HTTP servers tell no size, or answer with the whole file whatever range they are asked for.
    Such a file is read once and kept in memory until it is closed.

    Args:
        fs: fsspec's filesystem.
        path: The path within it.
        uri: The URI it was opened as.
        size: Bytes in the file, None where fsspec does not know.
    """

    __slots__ = ("_closed", "_fs", "_path", "_size", "_whole")

    def __init__(self, fs: Any, path: str, uri: str, size: int | None) -> None:
        self.uri = uri
        self._fs = fs
        self._path = path
        self._size = size
        self._whole: bytes | None = None
        self._closed = False

    def read(self, offset: int, n: int) -> bytes:
        """Return up to `n` bytes from `offset`; fewer only where the file ends."""
        if self._closed:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        if self._size is None:
            self._whole = self._fetch()
            self._size = len(self._whole)
        # A store asked for a range behind the end answers with an error of its own.
        end = min(offset + n, self._size or 0)
        if end <= offset:
            return b""
        whole = self._whole
        if whole is None:
            data = self._fetch(start=offset, end=end)
            if len(data) <= end - offset:
                return data
            if len(data) != self._size:  # else the store gave the whole file
                text = f"expected at most the file's {self._size} bytes, found {len(data)}"
                raise DataLossError.of("read", self.uri, f"{text}; open it again")
            whole = self._whole = data
        return whole[offset:end]

    def known_length(self) -> int | None:
        """Return the length in bytes that fsspec told when it was opened; None if it did not."""
        return self._size

    def _fetch(self, **limits: int) -> bytes:
        # For a read from the start fsspec's wrapper of pyarrow opens a stream, which has no tell.
        modules = {cls.__module__ for cls in type(self._fs).__mro__}
        is_wrapper = "fsspec.implementations.arrow" in modules
        options = {"seekable": True} if limits and is_wrapper else {}
        with translated_errors("read", self.uri):
            return bytes(self._fs.cat_file(self._path, **limits, **options))

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; fsspec hands out copies, so this costs one."""
        with memoryview(buffer) as whole, whole.cast("B") as view:
            data = self.read(offset, view.nbytes)
            view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Reject further reads; fsspec itself holds nothing open."""
        self._closed = True
        self._whole = None


class FsspecWritableFile(ClientWriter):
    """A file that fsspec opened for writing.

    Most clients of stores derive their files from fsspec's `AbstractBufferedFile`, and store them
    when they are closed, or collected. Of others nobody knows: these are closed where they are
    given up.
    """

    __slots__ = ("__weakref__", "is_stored_by_close", "is_torn")

    def __init__(self, file: Any, uri: str) -> None:
        super().__init__(file, uri)
        self.is_torn = False
        self.is_stored_by_close = _is_stored_by_close(file)

    def append(self, data: Buffer) -> None:
        """Add all of `data`."""
        try:
            file = self._open_file()
            with translated_errors("append", self.uri), memoryview(data) as view:
                # A client may send it after its `write` has returned, and the caller changes or
                # frees it.
                file.write(data if isinstance(data, bytes) else bytes(view))
        except BaseException:
            with suppress(TypeError), memoryview(data):  # else it is no bytes: none are missing
                self._tear()
            raise

    def _tear(self) -> None:
        """Have its end discard the client's file, which its own end would store."""
        file = self._file
        if self.is_stored_by_close and file is not None and not self.is_torn:
            # No `__del__`: the collector may end the client's file before this one.
            finalize(self, _give_up, file, self.uri)
            self.is_torn = True

    def discard(self) -> None:
        """Have its client store nothing, where it would store the file when it is closed."""
        file = self._file
        if not self.is_stored_by_close:
            self.close()
        elif file is not None:
            self._file = None
            _discard(file, self.uri)


def _is_stored_by_close(file: Any) -> bool:
    """Return whether a client sends nothing, or nothing that others see, before its file's end."""
    sends_at_once = {cls.__module__ for cls in type(file).__mro__} & _SENDING_AT_ONCE
    return is_of_fsspec(file, "AbstractBufferedFile") and not sends_at_once


def _discard(file: Any, uri: str) -> None:
    """Have a client store nothing of a file that is open."""
    if file.closed:
        return
    try:
        # Before it has begun to send there is nothing to discard, and some would remove the old
        # file.
        if getattr(file, "offset", None) is not None:
            with translated_errors("discard", uri):
                file.discard()
    finally:
        file.closed = True  # else its end would store it


def _give_up(file: Any, uri: str) -> None:
    """Discard a file that nobody closed, whose error is raised already."""
    with suppress(ModularTFError):
        _discard(file, uri)
