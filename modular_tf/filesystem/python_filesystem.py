"""Python objects as filesystems: what an object lacks is like a NULL slot of a plugin."""

from __future__ import annotations

import os
from types import MethodType
from typing import TYPE_CHECKING, Any

from modular_tf.abi.layouts import FILESYSTEM_SLOTS
from modular_tf.errors import InternalError
from modular_tf.filesystem.files import COMPLETED, FileStatistics
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.fsspec_bridge import FsspecOps, is_of_fsspec
from modular_tf.filesystem.location import (
    TWO_PATH_OPERATIONS,
    checked_listing,
    clean_names,
    skip_same_file,
)
from modular_tf.filesystem.python_errors import translated_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.errors import NotFoundError
    from modular_tf.filesystem.location import Listing

OPERATIONS = (
    *(slot for slot in FILESYSTEM_SLOTS if slot not in {"init", "cleanup"}),
    "get_children_statistics",
)
"""The operations that are asked of an object: those of the C interface, and one that it lacks."""


class PythonFilesystem(Filesystem):
    """A filesystem whose operations are methods of some Python object. [any thread]

    The object may be a `Filesystem` of another scheme. It stays the caller's: closing a service
    does not close it.
    """

    def __init__(self, scheme: str, implementation: Any, plugin: str | None = None) -> None:
        super().__init__(scheme, plugin or type(implementation).__name__)
        self.implementation = implementation
        self._inner = implementation if isinstance(implementation, Filesystem) else None
        for name in _offered_by(implementation):
            forward = _forwarder(name)
            guarded = skip_same_file(forward) if name in TWO_PATH_OPERATIONS else forward
            setattr(self, name, MethodType(guarded, self))

    def disk_path(self, uri: str) -> str | None:
        return super().disk_path(uri) if self._inner is None else self._inner.disk_path(uri)

    def does_itself(self, operation: str) -> bool:
        if self._inner is None:
            return super().does_itself(operation)
        return self._inner.does_itself(operation)

    def listing(
        self, uri: str, *, is_thorough: bool = True, with_statistics: bool = False
    ) -> Listing:
        if self._inner is None:
            return super().listing(uri, with_statistics=with_statistics)
        with translated_errors("get_children", uri, self.plugin):
            return checked_listing(
                self._inner, uri, is_thorough=is_thorough, with_statistics=with_statistics
            )

    def is_file_and_directory(self, uri: str) -> bool:
        return self._inner is not None and self._inner.is_file_and_directory(uri)

    def is_missing_bucket(self, error: NotFoundError) -> bool:
        return self._inner is not None and self._inner.is_missing_bucket(error)

    @property
    def store(self) -> object:
        """The object that stores the files, which may serve other schemes as well."""
        return self.implementation if self._inner is None else self._inner.store


def _forwarder(name: str) -> Callable[..., Any]:
    """Return a method that calls the implementation and turns its errors into ours."""

    def forward(self: PythonFilesystem, *arguments: Any) -> Any:
        path = arguments[0] if arguments and isinstance(arguments[0], str) else None
        with translated_errors(name, path, self.plugin):
            result = getattr(self.implementation, name)(*arguments)
            if name == "get_children_statistics":
                result = dict(result)
        if name == "get_children":
            return clean_names(result, plugin=self.plugin, uri=path or "")
        if name == "get_children_statistics":
            return _clean_statistics(result, plugin=self.plugin, uri=path or "")
        if name in COMPLETED:
            return COMPLETED[name](result, path or "")
        return sorted(result) if name == "get_matching_paths" else result

    forward.__name__ = name
    forward.__doc__ = getattr(Filesystem, name).__doc__
    return forward


def _clean_statistics(found: dict[str, Any], *, plugin: str, uri: str) -> dict[str, FileStatistics]:
    """Return the statistics of the names in a directory, whose names are cleaned.

    `InternalError` if a name cannot be that of a child, or has no statistics.
    """
    names = clean_names(found, plugin=plugin, uri=uri)
    statistics = {one: found[one if one in found else f"{one}/"] for one in names}
    for name, given in statistics.items():
        if not isinstance(given, FileStatistics):
            wrong = f"{plugin} gave no FileStatistics of {name!r}, but {given!r:.200}"
            raise InternalError.of("get_children_statistics", uri, wrong, plugin=plugin)
    return statistics


_ACCEPTED = (
    "a filesystem of fsspec, a pyarrow.fs.FileSystem, a store of obstore, or an object with"
    f" operations of modular_tf.Filesystem, such as {OPERATIONS[0]} or stat"
)


def as_filesystem(scheme: str, given: Any) -> Filesystem:
    """Return a `Filesystem` for an object that a user registers under a scheme.

    `TypeError` if it is none of `_ACCEPTED`. No library is imported to recognise a client of it.
    """
    if isinstance(given, Filesystem):
        return given if given.scheme == scheme else PythonFilesystem(scheme, given)
    name = type(given).__name__
    if is_of_fsspec(given, "AbstractFileSystem"):
        return FsspecOps(given, scheme, f"fsspec.{name}")
    classes = {(cls.__module__.partition(".")[0], cls.__name__) for cls in type(given).__mro__}
    if ("pyarrow", "FileSystem") in classes:
        from modular_tf.filesystem.pyarrow_ops import PyarrowOps  # noqa: PLC0415  (rarely used)

        return PyarrowOps(given, scheme, f"pyarrow.{name}")
    if any(library == "obstore" and theirs.endswith("Store") for library, theirs in classes):
        from modular_tf.filesystem.obstore_ops import ObstoreOps  # noqa: PLC0415  (rarely used)

        return ObstoreOps(given, scheme, f"obstore.{name}")
    is_class = isinstance(given, type)
    if is_class or isinstance(given, os.PathLike) or not _offered_by(given):
        found = f"the class {given.__qualname__} itself" if is_class else name
        raise TypeError(f"scheme {scheme!r}: expected {_ACCEPTED}; found {found}")
    return PythonFilesystem(scheme, given)


def _offered_by(implementation: object) -> list[str]:
    return [name for name in OPERATIONS if callable(getattr(implementation, name, None))]
