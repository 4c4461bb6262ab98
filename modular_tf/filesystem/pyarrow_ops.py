"""Filesystems of `pyarrow.fs` with the operations of `TF_FilesystemOps`."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.filesystem.client_ops import ClientOps, ClientWriter, put_when_closed
from modular_tf.filesystem.files import DIRECTORY, FileStatistics
from modular_tf.filesystem.store_files import RangeReader
from modular_tf.filesystem.uri import clean_path, parse_uri

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

    from modular_tf.filesystem.client_ops import Child
    from modular_tf.filesystem.files import WritableFile

_WITH_APPENDED_FILES = {"local", "hdfs", "mock"}
"""The kinds that have files which grow and directories which are renamed; others are stores."""
_WITH_IMPLIED_DIRECTORIES = {"gcs"}
"""The kinds that list no directory but those that pyarrow has marked."""
_BLOCK = 1 << 20


class PyarrowOps(ClientOps):
    """A filesystem of pyarrow. [any thread]

    Its paths are `bucket/key` for `scheme://bucket/key`, and the path alone for local files and
    HDFS.
    """

    def __init__(self, fs: Any, scheme: str = "", plugin: str | None = None) -> None:
        super().__init__(fs, scheme, plugin)
        import pyarrow.fs  # type: ignore[import-untyped]  # noqa: PLC0415  (imported already)

        self._library = pyarrow.fs
        bottom = fs
        while hasattr(bottom, "base_fs"):
            bottom = bottom.base_fs
        self._kind_of_store = bottom.type_name
        self._is_below_another = bottom is not fs
        self._has_implied_directories = self._kind_of_store in _WITH_IMPLIED_DIRECTORIES
        self.is_distant = self._kind_of_store not in _WITH_APPENDED_FILES

    def translate_name(self, uri: str) -> str:
        scheme, host, path = parse_uri(uri)
        path = clean_path(path) if path else ""
        if self._kind_of_store == "hdfs" and scheme:
            return path or "/"
        whole = f"{host}{path}"
        return whole.strip("/") if self._is_below_another else whole.rstrip("/") or whole

    def disk_path(self, uri: str) -> str | None:
        is_of_disk = self._kind_of_store == "local"
        return self._on_disk(self.translate_name(uri)) if is_of_disk else None

    def _on_disk(self, path: str) -> str:
        fs = self.fs
        while hasattr(fs, "base_fs"):
            path, fs = f"{fs.base_path.rstrip('/')}/{path}", fs.base_fs
        return os.path.abspath(path)

    # -- questions ----------------------------------------------------------------------------

    def _statistics(self, path: str) -> FileStatistics:
        if not path and self.is_distant:  # it would be asked for all buckets
            return DIRECTORY
        info = self.fs.get_file_info(path)
        if info.type != self._library.FileType.NotFound:
            return self._of_info(info)
        if self._has_implied_directories and self._below(path):
            return DIRECTORY
        raise FileNotFoundError(f"{path!r} does not exist")

    def _of_info(self, info: Any) -> FileStatistics:
        is_directory = info.type == self._library.FileType.Directory
        length = 0 if is_directory else info.size or 0
        return FileStatistics(length, info.mtime_ns or 0, is_directory=is_directory)

    def _children(self, path: str, *, may_request: bool = True) -> list[Child]:  # noqa: ARG002
        if self._has_implied_directories:
            return self._children_by_paths(path)
        found = self.fs.get_file_info(self._library.FileSelector(path))
        own = path.rstrip("/")
        # A directory in itself is how keys with a doubled slash are listed.
        return [
            ("" if one.path.rstrip("/") == own else one.base_name, self._of_info(one))
            for one in found
        ]

    def _children_by_paths(self, path: str) -> list[Child]:
        """Return the entries of a directory, some of which only paths below them show."""
        found = self._below(path)
        if not found and self.fs.get_file_info(path).type != self._library.FileType.Directory:
            raise FileNotFoundError(f"{path!r} does not exist")
        children: dict[tuple[str, bool], Child] = {}
        for info in found:
            name, _, rest = info.path[len(path) :].strip("/").partition("/")
            statistics = DIRECTORY if rest else self._of_info(info)
            children[name, statistics.is_directory] = name, statistics
        return [*children.values()]

    def _below(self, path: str) -> list[Any]:
        selector = self._library.FileSelector(path, allow_not_found=True, recursive=True)
        found: list[Any] = self.fs.get_file_info(selector)
        return found

    def _is_above_others(self, path: str) -> bool:
        try:
            return bool(self._children(path))
        except OSError:
            return False

    # -- opening ------------------------------------------------------------------------------

    def _reader(self, path: str, uri: str) -> RangeReader:
        try:
            file = self.fs.open_input_file(path)
        except Exception as error:
            with suppress(FileNotFoundError):
                if self._is_directory(path):
                    raise IsADirectoryError(f"{path!r} is a directory") from error
            raise
        return RangeReader(uri, file.size(), lambda start, end: file.read_at(end - start, start))

    def _writer(self, path: str, uri: str, *, appends: bool) -> WritableFile:
        # By default a name ending in .gz would have it compressed.
        if not self.is_distant:
            opener = self.fs.open_append_stream if appends else self.fs.open_output_stream
            return ClientWriter(opener(path, compression=None), uri)

        def put(source: str, _size: int) -> None:
            # One call without Python: an interrupt cannot leave a stream whose end stores a part.
            here = self._library.LocalFileSystem()
            self._library.copy_files(
                source, path, source_filesystem=here, destination_filesystem=self.fs
            )

        def fill(write: Callable[[Buffer], None]) -> int:
            with self.fs.open_input_file(path) as file:
                while block := file.read(_BLOCK):
                    write(block)
                return int(file.size())

        return put_when_closed(uri, put, fill if appends and self._has_file(path) else None)

    # -- changes ------------------------------------------------------------------------------

    def _make_directory(self, path: str, *, parents: bool) -> None:
        self.fs.create_dir(path, recursive=parents)

    def _remove_file(self, path: str) -> None:
        self.fs.delete_file(path)

    def _remove_empty(self, path: str) -> None:
        if self._kind_of_store == "local":
            os.rmdir(self._on_disk(path))
        elif self._below(path):  # its removal would take all of that with it
            raise OSError(errno.ENOTEMPTY, "it is not empty", path)
        else:
            self.fs.delete_dir(path)

    def _remove_tree(self, path: str) -> None:
        is_directory = self._is_directory(path)
        if not is_directory:  # first: pyarrow refuses to remove what lies below a file
            self.fs.delete_file(path)
        if is_directory or self._is_above_others(path):
            self.fs.delete_dir(path)

    def _copy(self, old: str, new: str) -> None:
        self.fs.copy_file(old, new)

    def _move_file(self, old: str, new: str) -> None:
        self.fs.move(old, new)

    def _move_whole_directory(self, old: str, new: str) -> bool:
        if not self.is_distant:
            self.fs.move(old, new)
        return not self.is_distant
