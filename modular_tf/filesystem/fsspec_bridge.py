"""Filesystems of fsspec with the operations of `TF_FilesystemOps`.

fsspec itself is not imported here: the caller who passes a filesystem has imported it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timezone
from glob import has_magic
from typing import TYPE_CHECKING, Any
from weakref import finalize

from modular_tf.errors import DataLossError, ModularTFError, UnimplementedError
from modular_tf.filesystem.client_ops import ClientOps, ClientWriter, translated
from modular_tf.filesystem.files import FileStatistics
from modular_tf.filesystem.python_errors import translated_errors
from modular_tf.filesystem.store_files import RangeReader, WholeFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

    from modular_tf.filesystem.client_ops import Child
    from modular_tf.filesystem.files import WritableFile

_CHANGED = ("mtime", "LastModified", "Last-Modified", "last_modified", "modified", "updated")
"""The names under which implementations give the modification time, each in a type of its own."""
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_OF_THE_PAGE = ("?", "#")
"""How links begin that lead to the listing itself, in another order."""
# Servers of these have each part of a file as soon as it is sent, instead of the old file.
_SENDING_AT_ONCE = {
    "fsspec.implementations.dbfs",
    "fsspec.implementations.ftp",
    "fsspec.implementations.webhdfs",
}


def is_of_fsspec(candidate: object, name: str) -> bool:
    """Return whether an object is of a class of `fsspec.spec`, which need not be imported."""
    return any(
        cls.__name__ == name and cls.__module__ == "fsspec.spec" for cls in type(candidate).__mro__
    )


class FsspecOps(ClientOps):
    """A filesystem of fsspec. [any thread]

    A URI whose scheme is a protocol of the filesystem means what it means to fsspec. Of any other
    URI, what follows `scheme://` is the path. Where paths are whole URLs, as over HTTP, a URI of
    another scheme may hold the URL (`web://https://host/file`), or else stands for one of the
    filesystem's first protocol (`web://host/file`).
    """

    def __init__(self, fs: Any, scheme: str = "", plugin: str | None = None) -> None:
        super().__init__(fs, scheme, plugin)
        own = _protocols(fs, with_inner=False)
        self._is_of_disk = "file" in own
        # Web servers may send the whole file whatever part they are asked for.
        self.is_distant = bool(getattr(fs, "async_impl", False)) and "http" not in own
        self._protocols = _protocols(fs)
        self._serves_all = "generic" in self._protocols
        self._are_unstripped = "data" in self._protocols  # its `info` takes nothing else
        of_urls = [one for one in self._protocols if one == "data" or _keeps_urls(fs, one)]
        self._are_urls = self._serves_all or bool(of_urls)
        self._protocols = of_urls or self._protocols
        self._uncached_info, self._uncached_ls = _uncached(fs.info), _uncached(fs.ls)

    @translated
    def translate_name(self, uri: str) -> str:
        match = _URL.fullmatch(uri)
        scheme, rest = match.groups() if match else ("", uri)
        is_ours = scheme in self._protocols
        if not self._are_urls:
            url = uri if is_ours else rest
        elif _URL.match(rest):
            url = rest
        else:
            url = uri if is_ours or self._serves_all else f"{self._protocols[0]}://{rest}"
        if self._are_unstripped:
            return url
        return str(self.fs._strip_protocol(url))  # noqa: SLF001  (the only way fsspec has)

    def disk_path(self, uri: str) -> str | None:
        return self.translate_name(uri) if self._is_of_disk else None

    # -- questions ----------------------------------------------------------------------------

    def _is_file(self, path: str) -> bool:
        # Some implementations take every name that others lie below for a directory.
        if self._are_urls:  # which name no directory too
            return False
        try:
            return isinstance(self.fs.cat_file(path, 0, 1), bytes)
        except FileNotFoundError:
            return False
        except Exception:  # noqa: BLE001  (an empty file has no first byte; a directory has none)
            return not self._is_directory(path)

    def _forget(self, path: str) -> None:
        """Make the client look a path up in the store, and not in its cache of listings.

        Some clients keep a listing for ever, s3fs even the old length of a file that it wrote anew.
        Another thread may fill the cache again, so clients that can look up without it do.
        """
        for one in (path, path.rstrip("/").rpartition("/")[0]):
            with suppress(Exception):  # of any implementation: it keeps nothing of such a path
                if one:
                    self.fs.invalidate_cache(one)

    def _info(self, path: str) -> dict[str, Any]:
        self._forget(path)
        info: dict[str, Any] = self.fs.info(path, **self._uncached_info)
        # Over HTTP every URL is a file to fsspec; the one that the server redirected to shows more.
        url = _URL.match(str(info.get("url")))
        is_page = url is not None and (url[2].endswith("/") or "/" not in url[2])
        return {**info, "type": "directory"} if is_page else info

    def _is_directory(self, path: str) -> bool:
        return bool(self._info(path)["type"] == "directory")

    def _statistics(self, path: str) -> FileStatistics:
        info = self._info(path)
        if (found := _statistics(info)) is not None:
            return found
        size, changed = info.get("size"), _change_time(info)
        if changed is None:
            with suppress(Exception):  # most implementations simply do not know
                changed = _nanoseconds(self.fs.modified(path))
        length = len(self.fs.cat_file(path)) if size is None else int(size)
        return FileStatistics(length, changed or 0, is_directory=False)

    def _listed(self, path: str, *, may_request: bool) -> list[Child]:
        if self._are_urls and not self._is_directory(path):  # to list it, it would be read
            raise NotADirectoryError("it is not a directory")
        return super()._listed(path, may_request=may_request)

    def _children(self, path: str, *, may_request: bool = True) -> list[Child]:
        self._forget(path)
        entries = self.fs.ls(path, detail=True, **self._uncached_ls)
        above, own = f"{path.rstrip('/')}/", {path.rstrip("/"), _plain(path)}
        # An object of a store may be a file and a directory. A page may link to a directory with
        # and without a slash, and to more than children.
        found: dict[tuple[str, bool], Child] = {}
        for entry in entries:
            listed = entry["name"].rstrip("/")
            if listed in own:  # some stores list the directory's own marker along with its entries
                continue
            is_below = listed.startswith(above)
            name = listed[len(above) :].partition("/")[0] if is_below else listed.rpartition("/")[2]
            if self._are_urls and (not name or name.startswith(_OF_THE_PAGE)):
                continue
            is_link = _URL.match(entry["name"]) is not None  # of a page
            is_directory = entry["type"] == "directory" and not is_link
            # A link of a page shows neither kind nor length, and one of the disk is not its target.
            is_sure = not is_link and not entry.get("islink")
            is_sure = is_sure and entry["type"] in ("file", "directory")
            statistics = _statistics(entry) if is_sure else None
            found[name, is_directory] = name, statistics
        if self._has_doubled_slash(path, entries, may_request=may_request):
            found["", True] = "", None
        return [*found.values()]

    def _has_doubled_slash(
        self, path: str, entries: list[dict[str, Any]], *, may_request: bool
    ) -> bool:
        """Return whether a directory holds keys with a doubled slash, as `d//key` in `d`.

        A listing then shows a directory with its own name, as some clients do for its marker too.
        """
        directory = _plain(path)
        shown = {entry["name"] for entry in entries if entry["type"] == "directory"}
        if not directory:
            return False
        if f"{directory}/" in shown or directory not in shown:
            return f"{directory}/" in shown
        from inspect import signature  # noqa: PLC0415  (takes long, and is rarely needed)

        client = self.fs
        while "prefix" not in signature(client.find).parameters:
            client = getattr(client, "fs", None)  # one that a wrapper hands everything on to
            if not hasattr(client, "find"):  # none, or a client of another library
                return True
        return may_request and bool(self.fs.find(directory, prefix="/"))

    def _is_above_others(self, path: str) -> bool:
        if self._are_urls:  # a page may be any file, which would be read to list it
            return False
        below = f"{_plain(path)}/"
        self._forget(path)
        try:
            names = self.fs.ls(path.rstrip("/"), detail=False, **self._uncached_ls)
            return any(one.startswith(below) for one in names)
        except Exception:  # noqa: BLE001  (of any implementation: most list no file)
            return False

    # -- opening ------------------------------------------------------------------------------

    def _reader(self, path: str, uri: str) -> RangeReader:
        """Open a file; one of a web server without sizes or ranges is read once, into memory."""
        info = self._info(path)
        if info["type"] == "directory":
            raise IsADirectoryError(f"{path!r} is a directory")
        if info.get("size") is None:
            return WholeFile(uri, bytes(self.fs.cat_file(path)))
        length, whole = int(info["size"]), b""
        # For a read from the start fsspec's wrapper of pyarrow opens a stream, which has no tell.
        modules = {cls.__module__ for cls in type(self.fs).__mro__}
        options = {"seekable": True} if "fsspec.implementations.arrow" in modules else {}

        def fetch(start: int, end: int) -> bytes:
            nonlocal whole
            if not whole:
                data = bytes(self.fs.cat_file(path, start=start, end=end, **options))
                if len(data) < end - start:
                    ended = f"it ended after {start + len(data)} of {length} bytes; open it again"
                    raise DataLossError.of("read", uri, ended)
                if len(data) != length or end - start == length:
                    return data
                whole = data
            return whole[start:end]

        return RangeReader(uri, length, fetch)

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

    # -- changes ------------------------------------------------------------------------------

    def _make_directory(self, path: str, *, parents: bool) -> None:
        if parents:
            self.fs.makedirs(path, exist_ok=True)
        else:
            self.fs.mkdir(path, create_parents=False)

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
        with translated_errors("flush_caches", "", self.plugin):
            self.fs.invalidate_cache()


def _protocols(fs: Any, *, with_inner: bool = True) -> list[str]:
    """Return a filesystem's protocols, after those of the filesystem that it caches."""
    own = [fs.protocol] if isinstance(fs.protocol, str) else [*fs.protocol]
    # What fsspec's caches store is named as in the filesystem behind them.
    inner = getattr(fs, "fs", None) if with_inner and hasattr(fs, "target_protocol") else None
    return own if inner is None else [*_protocols(inner), *own]


def _keeps_urls(fs: Any, protocol: str) -> bool:
    """Return whether the filesystem's paths are whole URLs of a protocol."""
    with suppress(Exception):  # some read more out of a URL than this one has
        url = f"{protocol}://host/name"
        return bool(fs._strip_protocol(url) == url)  # noqa: SLF001  (the only way fsspec has)
    return False


def _plain(path: str) -> str:
    """Return a path as listings show it, where some clients take URLs and list plain paths."""
    match = _URL.match(path)
    return (match[2] if match else path).rstrip("/")


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


def _change_time(info: dict[str, Any]) -> int | None:
    return next((_nanoseconds(info[key]) for key in _CHANGED if info.get(key) is not None), None)


def _nanoseconds(when: Any) -> int:
    """Return a time in nanoseconds from any of fsspec's formats, 0 if it cannot be parsed."""
    with suppress(ValueError):
        if isinstance(when, str) and when.endswith("GMT"):  # as HTTP writes it
            from email.utils import parsedate_to_datetime  # noqa: PLC0415  (takes long)

            when = parsedate_to_datetime(when)
        elif isinstance(when, str):
            when = datetime.fromisoformat(when.replace("Z", "+00:00"))
        if isinstance(when, datetime):
            # Stores give times of UTC, and some clients leave the zone out.
            when = (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()
        return int(when * 1e9)
    return 0


class FsspecWritableFile(ClientWriter):
    """A file that fsspec opened for writing.

    Files of fsspec's `AbstractBufferedFile` are stored when they are closed, or collected. What
    other clients do is unknown: their files are closed where they are discarded.
    """

    __slots__ = ("__weakref__", "is_stored_by_close", "is_torn")

    def __init__(self, file: Any, uri: str) -> None:
        super().__init__(file, uri)
        self.is_torn = False
        sends_at_once = {cls.__module__ for cls in type(file).__mro__} & _SENDING_AT_ONCE
        self.is_stored_by_close = is_of_fsspec(file, "AbstractBufferedFile") and not sends_at_once

    def append(self, data: Buffer) -> None:
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
        """Make its finalizer discard the client's file, whose own finalizer would store it."""
        file = self._file
        if self.is_stored_by_close and file is not None and not self.is_torn:
            # No `__del__`: the collector may end the client's file before this one.
            finalize(self, _give_up, file, self.uri)
            self.is_torn = True

    def discard(self) -> None:
        """Close the file without having its client store it."""
        file = self._file
        if not self.is_stored_by_close:
            self.close()
        elif file is not None:
            self._file = None
            _discard(file, self.uri)


def _discard(file: Any, uri: str) -> None:
    """Prevent a client from storing a file that is open."""
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
