"""Files of a service for a TensorBoard that runs without TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from tensorboard.compat.tensorflow_stub import (  # type: ignore[import-not-found,unused-ignore]
    errors,
)
from tensorboard.compat.tensorflow_stub.io.gfile import (  # type: ignore[import-not-found,unused-ignore]
    StatData,
    get_filesystem,
    register_filesystem,
)

from modular_tf.errors import NotFoundError
from modular_tf.filesystem.scheme import scheme_of

if TYPE_CHECKING:
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.service.service import PluginService

_Method = TypeVar("_Method", bound=Callable[..., Any])


def can_read(scheme: str) -> bool:
    """Return whether TensorBoard reads a scheme already, by itself or by fsspec. [any thread]"""
    try:
        get_filesystem(f"{scheme}://")
    except (ImportError, ValueError):  # fsspec lacks a client, or does not know the scheme
        return False
    return True


def serve(scheme: str, service: PluginService) -> None:
    """Let TensorBoard's own file functions read a scheme by a service. [any thread]"""
    register_filesystem(scheme, ServiceFiles(service))


def _in_their_terms(method: _Method) -> _Method:
    """Return a method whose path may be bytes, with TensorBoard's error for nothing there."""

    @wraps(method)
    def call(self: ServiceFiles, path: str | bytes, *arguments: Any, **options: Any) -> Any:
        try:
            return method(self, os.fsdecode(path), *arguments, **options)
        except NotFoundError as error:
            raise errors.NotFoundError(None, None, str(error)) from error

    return call  # type: ignore[return-value]


class ServiceFiles:
    """What TensorBoard asks of a filesystem, answered by a service. [any thread]

    TensorBoard only reads. It keeps no file open: a read goes on where the last one ended, which
    the last one told.
    """

    def __init__(self, service: PluginService) -> None:
        self._service = service

    def _filesystem(self, uri: str) -> Filesystem:
        return self._service.filesystem(scheme_of(uri))

    @_in_their_terms
    def exists(self, filename: str) -> bool:
        """Return whether there is something."""
        return self._filesystem(filename).path_exists(filename)

    def join(self, path: str, *paths: str) -> str:
        """Return a path below a directory."""
        return "/".join([path.rstrip("/"), *(part.strip("/") for part in paths)])

    @_in_their_terms
    def read(
        self,
        filename: str,
        binary_mode: bool = False,  # noqa: FBT001, FBT002  (TensorBoard's signature)
        size: int | None = None,
        continue_from: int | None = None,
    ) -> tuple[bytes | str, int]:
        """Return what comes next in a file, and where that ends.

        Args:
            filename: The file.
            binary_mode: False for text.
            size: The most bytes; None for all that is left.
            continue_from: Where the last read ended; None for the file's beginning.
        """
        at = continue_from or 0
        filesystem = self._filesystem(filename)
        wanted = max(0, filesystem.get_file_size(filename) - at)
        if size is not None:
            wanted = min(size, wanted)
        data = filesystem.read_range(filename, at, wanted)
        return (data if binary_mode else data.decode()), at + len(data)

    @_in_their_terms
    def glob(self, filename: str) -> list[str]:
        """Return the paths that match a pattern."""
        return list(self._filesystem(filename).get_matching_paths(filename))

    @_in_their_terms
    def isdir(self, dirname: str) -> bool:
        """Return whether there is a directory."""
        try:
            return self._filesystem(dirname).is_directory(dirname)
        except NotFoundError:
            return False

    @_in_their_terms
    def listdir(self, dirname: str) -> list[str]:
        """Return the names in a directory."""
        return [name.rstrip("/") for name in self._filesystem(dirname).get_children(dirname)]

    @_in_their_terms
    def stat(self, filename: str) -> Any:
        """Return a file's length, as TensorBoard's record."""
        return StatData(self._filesystem(filename).stat(filename).length)
