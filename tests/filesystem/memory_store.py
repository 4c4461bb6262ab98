"""A filesystem in Python that has as many operations as a test wants, and notes its calls."""

from __future__ import annotations

from typing import Any

from modular_tf.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    ModularTFError,
    NotFoundError,
)
from modular_tf.filesystem.files import FileStatistics, RandomAccessFile, WritableFile
from modular_tf.filesystem.python_filesystem import PythonFilesystem
from modular_tf.filesystem.uri import clean_path, parse_uri, split_last

# All that has no default: from these the host makes the rest.
ESSENTIAL = (
    *("new_random_access_file", "new_writable_file", "create_dir", "delete_file", "delete_dir"),
    *("path_exists", "stat", "get_children"),
)


class MemoryStore:
    """Files and `dirs` by path; `calls` are noted, `faults` raised, `children` listed instead."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.dirs = {"/"}
        self.calls: list[tuple[Any, ...]] = []
        self.faults: dict[tuple[str, str], ModularTFError] = {}
        self.children: dict[str, list[str]] = {}

    def enter(self, operation: str, uri: str) -> str:
        """Note a call; return the path it is about."""
        path = clean_path(parse_uri(uri).path or "/")
        self.calls.append((operation, uri))
        if (operation, path) in self.faults:
            raise self.faults[operation, path]
        return path

    def _enter_file(self, operation: str, uri: str) -> str:
        path = self.enter(operation, uri)
        if path in self.dirs:
            raise FailedPreconditionError(f"{path} is a directory")
        if path not in self.files and operation != "new_writable_file":
            raise NotFoundError(f"{path} is not there")
        return path

    def _enter_directory(self, operation: str, uri: str) -> str:
        path = self.enter(operation, uri)
        if path in self.files:
            raise FailedPreconditionError(f"{path} is a file")
        if path not in self.dirs and (operation != "get_children" or path not in self.children):
            raise NotFoundError(f"{path} is not there")
        return path

    def _check_parent(self, path: str) -> None:
        parent = split_last(path)[0]
        if parent in self.files:
            raise FailedPreconditionError(f"{parent} is a file")
        if parent not in self.dirs:
            raise NotFoundError(f"{parent} is not there")

    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        return _Reader(self, self._enter_file("new_random_access_file", uri))

    def new_writable_file(self, uri: str) -> WritableFile:
        path = self._enter_file("new_writable_file", uri)
        self._check_parent(path)
        self.files[path] = b""
        return _Writer(self, path)

    def create_dir(self, uri: str) -> None:
        path = self.enter("create_dir", uri)
        if path in self.dirs or path in self.files:
            raise AlreadyExistsError(f"{path} is there")
        self._check_parent(path)
        self.dirs.add(path)

    def delete_file(self, uri: str) -> None:
        del self.files[self._enter_file("delete_file", uri)]

    def rename_file(self, source: str, target: str) -> None:
        old = self.enter("rename_file", source)
        if old not in self.files:
            raise NotFoundError(f"{old} is not there")
        self.files[clean_path(parse_uri(target).path)] = self.files.pop(old)

    def delete_dir(self, uri: str) -> None:
        path = self._enter_directory("delete_dir", uri)
        if self.names_in(path):
            raise FailedPreconditionError(f"{path} is no empty directory")
        self.dirs.remove(path)

    def path_exists(self, uri: str) -> bool:
        path = self.enter("path_exists", uri)
        if any(path.startswith(f"{file}/") for file in self.files):
            raise FailedPreconditionError(f"{path} lies under a file")
        return path in self.files or path in self.dirs

    def stat(self, uri: str) -> FileStatistics:
        return self.statistics_of(self.enter("stat", uri))

    def statistics_of(self, path: str) -> FileStatistics:
        if path in self.dirs:
            return FileStatistics(0, 1, is_directory=True)
        if path in self.files:
            return FileStatistics(len(self.files[path]), 1, is_directory=False)
        raise NotFoundError(f"{path} is not there")

    def get_children(self, uri: str) -> list[str]:
        path = self._enter_directory("get_children", uri)
        return self.children[path] if path in self.children else self.names_in(path)

    def get_children_statistics(self, uri: str) -> dict[str, FileStatistics]:
        path = self._enter_directory("get_children_statistics", uri)
        prefix = path.rstrip("/")
        return {name: self.statistics_of(f"{prefix}/{name}") for name in self.names_in(path)}

    def names_in(self, path: str) -> list[str]:
        prefix = path if path == "/" else f"{path}/"
        below = [p[len(prefix) :] for p in (*self.files, *self.dirs) if p.startswith(prefix)]
        return [name for name in below if name and "/" not in name]


class _Reader(RandomAccessFile):
    def __init__(self, store: MemoryStore, path: str) -> None:
        self.uri, self._store, self._path = path, store, path

    def readinto(self, offset: int, buffer: Any) -> int:
        self._store.enter("read", self._path)
        data = self._store.files[self._path][offset : offset + len(buffer)]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._store.calls.append(("close_reader", self._path))


class _Writer(WritableFile):
    def __init__(self, store: MemoryStore, path: str) -> None:
        self.uri, self._store, self._path = path, store, path

    def append(self, data: Any) -> None:
        self._store.enter("append", self._path)
        self._store.files[self._path] += bytes(data)

    def tell(self) -> int:
        return len(self._store.files[self._path])

    def close(self) -> None:
        self._store.enter("close_writer", self._path)


class Only:
    """Some operations of an object, as if it had no others."""

    def __init__(self, store: object, operations: tuple[str, ...]) -> None:
        for name in operations:
            setattr(self, name, getattr(store, name))


def filesystem_of(
    store: MemoryStore, *left_out: str, also: tuple[str, ...] = ()
) -> PythonFilesystem:
    """Make a filesystem for scheme `mem` of the essential operations, some left out or added."""
    operations = tuple(name for name in (*ESSENTIAL, *also) if name not in left_out)
    return PythonFilesystem("mem", Only(store, operations), "memory")


def as_object_store(filesystem: Any) -> Any:
    """Have a filesystem follow object stores, whose files know their length; return it."""
    opened = filesystem.new_random_access_file

    def with_known_length(uri: str) -> RandomAccessFile:
        file, length = opened(uri), filesystem.stat(uri).length
        file.known_length = lambda: length
        return file

    filesystem.is_object_store = True
    filesystem.new_random_access_file = with_known_length
    return filesystem
