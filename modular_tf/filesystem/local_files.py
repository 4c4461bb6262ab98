"""The files of this machine as a filesystem, for one end of a copy, without a plugin."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from modular_tf.errors import ModularTFError
from modular_tf.filesystem.files import FileStatistics, RandomAccessFile, WritableFile
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.location import Location
from modular_tf.filesystem.python_errors import error_for

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined,unused-ignore]
    from collections.abc import Callable as Function

_Result = TypeVar("_Result")


def _call(operation: str, path: str, function: Function[..., _Result], *arguments: Any) -> _Result:
    try:
        return function(*arguments)
    except (OSError, ValueError) as error:
        raise error_for(error, path=path, operation=operation) from error


class LocalFiles(Filesystem):
    """Paths as the system resolves them, links and `..` included. [any thread]"""

    def __init__(self) -> None:
        super().__init__("", "this machine")

    def disk_path(self, uri: str) -> str:
        return uri

    translate_name = disk_path

    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        flags = os.O_RDONLY | os.O_CLOEXEC
        return _Reader(uri, _call("new_random_access_file", uri, os.open, uri, flags))

    def new_writable_file(self, uri: str) -> WritableFile:
        """Create a file, or empty an existing one; one that is new has the modes of the umask."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        return _Writer(uri, _call("new_writable_file", uri, os.open, uri, flags, 0o666))

    def delete_file(self, uri: str) -> None:
        _call("delete_file", uri, os.unlink, uri)

    def rename_file(self, source: str, target: str) -> None:
        _call("rename_file", source, os.replace, source, target)

    def create_dir(self, uri: str) -> None:
        _call("create_dir", uri, os.mkdir, uri)

    def path_exists(self, uri: str) -> bool:
        return os.path.exists(uri)

    def is_directory(self, uri: str) -> bool:
        """Return whether it is a directory; False for nothing as well."""
        return os.path.isdir(uri)

    def get_children(self, uri: str) -> list[str]:
        return sorted(_call("get_children", uri, os.listdir, uri))

    def stat(self, uri: str) -> FileStatistics:
        """Return length, modification time and kind; a device or a pipe has no length."""
        found = _call("stat", uri, os.stat, uri)
        is_directory = stat.S_ISDIR(found.st_mode)
        length = found.st_size if stat.S_ISREG(found.st_mode) else 0
        return FileStatistics(length, found.st_mtime_ns, is_directory=is_directory)


class _Descriptor:
    """An open file of the system, which its finalizer closes if an interrupt loses it."""

    __slots__ = ()
    uri: str
    _fd: int

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1  # type: ignore[misc]  # a slot of the subclasses
            _call("close", self.uri, os.close, fd)

    def __del__(self) -> None:
        with suppress(AttributeError, ModularTFError):
            self.close()


class _Reader(_Descriptor, RandomAccessFile):
    __slots__ = ("_fd",)

    def __init__(self, uri: str, fd: int) -> None:
        self.uri, self._fd = uri, fd

    def readinto(self, offset: int, buffer: Buffer) -> int:
        left = memoryview(buffer)
        while left and (count := _call("read", self.uri, os.preadv, self._fd, [left], offset)):
            left, offset = left[count:], offset + count
        return memoryview(buffer).nbytes - len(left)


class _Writer(_Descriptor, WritableFile):
    __slots__ = ("_fd", "_written")

    def __init__(self, uri: str, fd: int) -> None:
        self.uri, self._fd, self._written = uri, fd, 0

    def append(self, data: Buffer) -> None:
        left = memoryview(data).cast("B")
        while left:
            count = _call("append", self.uri, os.write, self._fd, left)
            left, self._written = left[count:], self._written + count

    def tell(self) -> int:
        return self._written


_LOCAL_FILES = LocalFiles()


def local(path: str | os.PathLike[str]) -> Location:
    """Return the location of a path of this machine; a link stands for its target."""
    return Location(_LOCAL_FILES, os.path.realpath(os.fsdecode(path)))
