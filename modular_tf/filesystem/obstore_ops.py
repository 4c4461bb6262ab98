"""Stores of obstore with the operations of `TF_FilesystemOps`."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from modular_tf.errors import FailedPreconditionError, InvalidArgumentError
from modular_tf.filesystem.client_ops import ClientOps, put_when_closed
from modular_tf.filesystem.files import DIRECTORY, FileStatistics
from modular_tf.filesystem.store_files import RangeReader
from modular_tf.filesystem.uri import clean_path, parse_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Buffer

    from modular_tf.filesystem.client_ops import Child
    from modular_tf.filesystem.files import WritableFile

_BUCKET_KEYS = ("bucket", "container_name")
"""The names of the settings in which the stores of Amazon, Google and Azure have their bucket."""
_LEAST_PART = 8 << 20
_MOST_PARTS = 9_000
"""A store takes 10 000 parts of a file."""


class ObstoreOps(ClientOps):
    """A store of obstore. [any thread]

    A store of one bucket serves the URIs of that bucket, which hold the store's prefix too where it
    has one; of other stores, what follows `scheme://` is the path. There are no empty directories:
    creating one does nothing. The directories of a `LocalStore` are those of the disk.
    """

    _process: ClassVar[int | None] = None
    """The process in which obstore was first used here."""

    def __init__(self, fs: Any, scheme: str = "", plugin: str | None = None) -> None:
        super().__init__(fs, scheme, plugin)
        config = getattr(fs, "config", None) or {}
        self._bucket = next((str(config[key]) for key in _BUCKET_KEYS if key in config), None)
        self.is_distant = self._bucket is not None
        prefix = str(getattr(fs, "prefix", None) or "")
        self._prefix = prefix.strip("/") if self.is_distant else ""
        self._root = prefix or "/" if type(fs).__name__ == "LocalStore" else None
        self._url = str(getattr(fs, "url", None) or "").rstrip("/")

    @property
    def _library(self) -> Any:
        """The library, unless this process was forked from one that used it.

        Its threads are missing in the child, where a call would wait for ever.
        """
        import obstore  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415  (imported)

        if ObstoreOps._process is None:
            ObstoreOps._process = os.getpid()
        elif ObstoreOps._process != os.getpid():
            raise FailedPreconditionError(
                "obstore was used before this process was forked, and cannot be used in it; start"
                " processes by spawn or forkserver, or use its scheme in them only"
            )
        return obstore

    def translate_name(self, uri: str) -> str:
        """Return the store's path for a URI.

        `InvalidArgumentError` for a URI of another bucket, or outside the store's prefix.
        """
        if self._url and f"{uri}/".startswith(f"{self._url}/"):
            return uri[len(self._url) :].strip("/")
        _, host, path = parse_uri(uri)
        path = clean_path(path).strip("/") if path else ""
        if self._bucket is None:
            return f"{host}/{path}".strip("/")
        if host == self._bucket and f"{path}/".startswith(f"{self._prefix}/".lstrip("/")):
            return path[len(self._prefix) :].strip("/")
        served = "/".join(filter(None, [self._bucket, self._prefix]))
        raise InvalidArgumentError(
            f"{uri!r}: the {type(self.fs).__name__} behind it serves {served!r} only; register"
            " another store for other URIs, or obstore.fsspec.FsspecStore, which serves all"
            " buckets",
            path=uri,
        )

    def disk_path(self, uri: str) -> str | None:
        return None if self._root is None else self._on_disk(self.translate_name(uri))

    def _on_disk(self, path: str) -> str:
        return os.path.abspath(os.path.join(self._root or "", path))

    # -- questions ----------------------------------------------------------------------------

    def _statistics(self, path: str) -> FileStatistics:
        if path:
            with suppress(FileNotFoundError):
                return _of_object(self._library.head(self.fs, path))
        if self._is_above_others(path) or not path:
            return DIRECTORY
        raise FileNotFoundError(f"{path!r} does not exist")

    def _is_file(self, path: str) -> bool:
        return bool(path) and self._is_object(path)

    def _children(self, path: str, *, may_request: bool = True) -> list[Child]:  # noqa: ARG002
        found = self._library.list_with_delimiter(self.fs, path or None)
        directories: list[Child] = [(_last_of(one), DIRECTORY) for one in found["common_prefixes"]]
        # The marker of a directory is listed in it, under the directory's own name.
        objects = [one for one in found["objects"] if one["path"] != path]
        return directories + [(_last_of(one["path"]), _of_object(one)) for one in objects]

    def _is_above_others(self, path: str) -> bool:
        if self._is_directory_of_disk(path):
            return True
        try:
            return any(True for _ in self._below(path, chunk_size=1))
        except Exception as error:
            if type(error).__name__ == "InvalidPathError":  # of a key, which is there
                return True
            # Most web servers list nothing, so that nothing is known to be a directory.
            if type(self.fs).__name__ == "HTTPStore":
                return False
            raise

    def _is_directory_of_disk(self, path: str) -> bool:
        return self._root is not None and os.path.isdir(self._on_disk(path))

    def _below(self, path: str, chunk_size: int = 1000) -> Iterator[dict[str, Any]]:
        """Return the objects below a name, and the marker of the directory itself."""
        for chunk in self._library.list(self.fs, path or None, chunk_size=chunk_size):
            yield from chunk

    # -- opening ------------------------------------------------------------------------------

    def _reader(self, path: str, uri: str) -> RangeReader:
        found = self._statistics(path)
        if found.is_directory:
            raise IsADirectoryError(f"{path!r} is a directory")

        def fetch(start: int, end: int) -> Buffer:
            data: Buffer = self._library.get_range(self.fs, path, start=start, end=end)
            return data

        return RangeReader(uri, found.length, fetch)

    def _writer(self, path: str, uri: str, *, appends: bool) -> WritableFile:
        if not path:
            raise IsADirectoryError("the root of a store is a directory")

        def put(source: str, size: int) -> None:
            part = max(_LEAST_PART, size // _MOST_PARTS)
            self._library.put(self.fs, path, Path(source), chunk_size=part)

        def fill(write: Callable[[Buffer], None]) -> int:
            found = self._library.get(self.fs, path)
            for block in found.stream():
                write(block)
            return int(found.meta["size"])

        return put_when_closed(uri, put, fill if appends and self._has_file(path) else None)

    # -- changes ------------------------------------------------------------------------------

    def _make_directory(self, path: str, *, parents: bool) -> None:
        if self._root is not None and parents:
            os.makedirs(self._on_disk(path), exist_ok=True)
        elif self._root is not None:
            os.mkdir(self._on_disk(path))

    def _remove_file(self, path: str) -> None:
        self._library.delete(self.fs, path)

    def _remove_empty(self, path: str) -> None:
        if self._root is not None:
            os.rmdir(self._on_disk(path))
        elif self._is_above_others(path):
            raise _marked(path)

    def _remove_tree(self, path: str) -> None:
        if self._root is not None:  # obstore follows links
            on_disk = self._on_disk(path)
            is_entered = os.path.isdir(on_disk) and not os.path.islink(on_disk)
            (shutil.rmtree if is_entered else os.unlink)(on_disk)
            return
        found = [one["path"] for one in self._below(path)]
        if path and not self._is_directory(path):
            found.append(path)
        # The stores delete a thousand by one request.
        if found:
            self._library.delete(self.fs, found)
        if self._is_above_others(path):
            raise _marked(path)

    def _copy(self, old: str, new: str) -> None:
        self._library.copy(self.fs, old, new)

    def _move_file(self, old: str, new: str) -> None:
        self._library.rename(self.fs, old, new)

    def _move_whole_directory(self, old: str, new: str) -> bool:
        if self._root is not None:
            os.rename(self._on_disk(old), self._on_disk(new))
        return self._root is not None

    def _move_entries(self, source: str, target: str) -> None:
        path = self.translate_name(source)
        for one in self._below(path):
            key = one["path"]
            if key == path or (not one["size"] and not self._is_object(key)):
                raise _marked(key)
        super()._move_entries(source, target)

    def _is_object(self, path: str) -> bool:
        try:
            self._library.head(self.fs, path)
        except FileNotFoundError:
            return False
        return True


def _of_object(found: dict[str, Any]) -> FileStatistics:
    when = int(found["last_modified"].timestamp() * 1e9)
    return FileStatistics(int(found["size"]), when, is_directory=False)


def _last_of(path: str) -> str:
    return path.rpartition("/")[2]


def _marked(path: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"{path!r}: the key that marks this directory ends with '/', and obstore names no such key;"
        " delete it with another client, such as s3fs",
        path=path,
    )
