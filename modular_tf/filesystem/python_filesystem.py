"""Python objects as filesystems: what an object lacks is like a NULL slot of a plugin."""

from __future__ import annotations

import os
from types import MethodType
from typing import TYPE_CHECKING, Any

from modular_tf.errors import InternalError
from modular_tf.filesystem.child_names import IncompleteListingWarning, clean_names
from modular_tf.filesystem.client_ops import ClientOps
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.fsspec_bridge import FsspecOps, is_fsspec_filesystem
from modular_tf.filesystem.location import TWO_PATH_OPERATIONS, skip_same_file
from modular_tf.filesystem.python_errors import error_for
from modular_tf.filesystem.statistics import FileStatistics
from modular_tf.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.errors import NotFoundError
    from modular_tf.filesystem.child_names import Listing

OPERATIONS = (
    "new_random_access_file",
    "new_writable_file",
    "new_appendable_file",
    "new_read_only_memory_region_from_file",
    "create_dir",
    "recursively_create_dir",
    "delete_file",
    "delete_dir",
    "delete_recursively",
    "rename_file",
    "copy_file",
    "path_exists",
    "paths_exist",
    "stat",
    "is_directory",
    "get_file_size",
    "get_children",
    "get_children_statistics",
    "get_matching_paths",
    "translate_name",
    "flush_caches",
    "start_transaction",
    "end_transaction",
    "add_to_transaction",
    "get_transaction_for_path",
    "get_or_start_transaction_for_path",
    "decode_transaction_token",
    "get_filesystem_configuration",
    "set_filesystem_configuration",
    "get_filesystem_configuration_option",
    "set_filesystem_configuration_option",
    "get_filesystem_configuration_keys",
)


class PythonFilesystem(Filesystem):
    """A filesystem whose operations are methods of some Python object. [any thread]

    Args:
        scheme: The scheme it serves.
        implementation: The object; it must be as thread-safe as its users need it. It stays the
            caller's: closing a service does not close it.
        plugin: Its name for users; by default that of its class.
    """

    def __init__(self, scheme: str, implementation: Any, plugin: str | None = None) -> None:
        super().__init__(scheme, plugin or type(implementation).__name__)
        self.implementation = implementation
        for name in _offered_by(implementation):
            forward = _forwarder(name)
            guarded = skip_same_file(forward) if name in TWO_PATH_OPERATIONS else forward
            setattr(self, name, MethodType(guarded, self))

    def disk_path(self, uri: str) -> str | None:
        """Return the path on this machine's disk that a URI names; None where it names none."""
        if isinstance(self.implementation, (ClientOps, Filesystem)):
            return self.implementation.disk_path(uri)
        return super().disk_path(uri)

    def listing(
        self, uri: str, *, is_thorough: bool = True, with_statistics: bool = False
    ) -> Listing:
        """Return the names in a directory, and what else is there that no path leads to."""
        if not isinstance(self.implementation, (ClientOps, Filesystem)):
            return super().listing(uri, with_statistics=with_statistics)
        try:
            found = self.implementation.listing(
                uri, is_thorough=is_thorough, with_statistics=with_statistics
            )
        except Exception as error:
            known = error_for(error, plugin=self.plugin, path=uri, operation="get_children")
            if known is error:
                raise
            raise known from without_secrets(error)
        return found._replace(names=clean_names(found.names, plugin=self.plugin, uri=uri))

    def is_file_and_directory(self, uri: str) -> bool:
        """Return whether a name is that of a file and of a directory, as stores allow it."""
        is_known = isinstance(self.implementation, (ClientOps, Filesystem))
        return is_known and self.implementation.is_file_and_directory(uri)

    def is_missing_store(self, error: NotFoundError) -> bool:
        """Return whether an error means that the whole bucket or container is not there."""
        is_ours = isinstance(self.implementation, Filesystem)
        return is_ours and self.implementation.is_missing_store(error)

    @property
    def store(self) -> object:
        """What keeps the files: the object, which may serve other schemes as well."""
        if isinstance(self.implementation, Filesystem):
            return self.implementation.store
        is_bridge = isinstance(self.implementation, ClientOps)
        return self.implementation.fs if is_bridge else self.implementation


def _forwarder(name: str) -> Callable[..., Any]:
    """Return a method that calls the implementation and turns its errors into ours."""

    def forward(self: PythonFilesystem, *arguments: Any) -> Any:
        path = arguments[0] if arguments and isinstance(arguments[0], str) else None
        try:
            result = getattr(self.implementation, name)(*arguments)
            if name == "get_children_statistics":
                result = dict(result)
        except IncompleteListingWarning:  # an error by the user's filter of warnings
            raise
        except Exception as error:
            known = error_for(error, plugin=self.plugin, path=path, operation=name)
            if known is error:
                raise
            raise known from without_secrets(error)
        if name == "get_children":
            return clean_names(result, plugin=self.plugin, uri=path or "")
        if name == "get_children_statistics":
            return _clean_statistics(result, plugin=self.plugin, uri=path or "")
        return sorted(result) if name == "get_matching_paths" else result

    forward.__name__ = name
    forward.__doc__ = getattr(Filesystem, name).__doc__
    return forward


def _clean_statistics(found: dict[str, Any], *, plugin: str, uri: str) -> dict[str, FileStatistics]:
    """Return the statistics of the names in a directory, whose names are cleaned.

    Raises:
        InternalError: A name cannot be that of a child, or there are no statistics of it.
    """
    names = clean_names(found, plugin=plugin, uri=uri)
    statistics = {one: found[one if one in found else f"{one}/"] for one in names}
    for name, given in statistics.items():
        if not isinstance(given, FileStatistics):
            raise InternalError.of(
                "get_children_statistics",
                uri,
                f"{plugin} gave no FileStatistics of {name!r}, but {given!r:.200}",
                plugin=plugin,
            )
    return statistics


_ACCEPTED = (
    "a filesystem of fsspec, a pyarrow.fs.FileSystem, a store of obstore, or an object with"
    f" operations of modular_tf.Filesystem, such as {OPERATIONS[0]} or stat"
)


def as_filesystem(scheme: str, given: Any) -> Filesystem:
    """Return a `Filesystem` for whatever the user registers under a scheme.

    Args:
        scheme: The scheme to serve.
        given: A `Filesystem` of this package, a filesystem of fsspec or `pyarrow.fs`, a store of
            obstore, or an object with some of the operations.

    Raises:
        TypeError: It is none of these.
    """
    if isinstance(given, Filesystem) and given.scheme == scheme:
        return given
    if (adapted := _adapted(given)) is not None:
        library, operations = adapted
        return PythonFilesystem(scheme, operations, f"{library}.{type(given).__name__}")
    if isinstance(given, (type, os.PathLike)) or not _offered_by(given):
        is_class = isinstance(given, type)
        found = f"the class {given.__qualname__} itself" if is_class else type(given).__name__
        raise TypeError(f"scheme {scheme!r}: expected {_ACCEPTED}; found {found}")
    return PythonFilesystem(scheme, given)


def _adapted(given: Any) -> tuple[str, ClientOps] | None:
    """Return the library of a client, and its adapter; no library is imported for it."""
    if is_fsspec_filesystem(given):
        return "fsspec", FsspecOps(given)
    classes = {(cls.__module__.partition(".")[0], cls.__name__) for cls in type(given).__mro__}
    if ("pyarrow", "FileSystem") in classes:
        from modular_tf.filesystem.pyarrow_ops import PyarrowOps  # noqa: PLC0415  (rarely used)

        return "pyarrow", PyarrowOps(given)
    if any(library == "obstore" and name.endswith("Store") for library, name in classes):
        from modular_tf.filesystem.obstore_ops import ObstoreOps  # noqa: PLC0415  (rarely used)

        return "obstore", ObstoreOps(given)
    return None


def _offered_by(implementation: object) -> list[str]:
    """Return the operations that an object has."""
    return [name for name in OPERATIONS if callable(getattr(implementation, name, None))]
