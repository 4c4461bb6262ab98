"""The OSS filesystem of tensorflow-io."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from modular_tf.errors import ModularTFError, NotFoundError, UnimplementedError
from modular_tf.filesystem.files import DIRECTORY
from modular_tf.filesystem.uri import dirname
from modular_tf.filesystem.workarounds.endpoints import Server
from modular_tf.filesystem.workarounds.object_store import (
    ObjectStore,
    StoreWriter,
    depth_of,
)
from modular_tf.filesystem.workarounds.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.filesystem.files import FileStatistics


class OssWriter(StoreWriter):
    """The plugin knows no position, and cannot close a file of no bytes: what was there stays."""

    __slots__ = ()

    def tell(self) -> int:
        self._open_writer()
        return self.appended() or 0

    def close(self) -> None:
        """Close the plugin's file; `UnimplementedError` for an empty one."""
        is_empty = self.appended() == 0
        try:
            super().close()
        except ModularTFError as error:
            if not is_empty:
                raise
            why = "cannot write a file of no bytes, and left what was there; write at least one"
            message = f"{error.plugin} {why}"
            raise UnimplementedError.of("close", self.uri, message, plugin=error.plugin) from error


class Oss(ObjectStore):
    r"""Alibaba Cloud OSS, whose URIs hold the server and the keys. [any thread]

    To the plugin every beginning of a name exists and no directory does, and what is missing can be
    deleted: so files are opened to find them, and directories by their names with a slash. It has
    no append and no time of change.
    """

    writer_type = OssWriter
    length_by_size = True  # opening is a request of its own
    not_found_message = r"\b404\b|parent does not exist"
    denied_message = r"errMsg: *40[13]"
    remedies: ClassVar[Mapping[str, str]] = {
        denied_message: "correct the id and the key in the URI, or have them allowed to"
    }

    @classmethod
    def server(cls, uri: str, environment: Mapping[str, str]) -> Server | None:  # noqa: ARG003
        """Return the server in a URI; to a plugin whose server is dead every path is NOT_FOUND."""
        host = re.search("\x02host=([^\x02/]+)", uri)
        return Server(f"http://{host[1]}") if host else None

    def _find(self, uri: str, operation: str, *, is_root: bool) -> FileStatistics | None:  # noqa: ARG002
        if is_root:
            return DIRECTORY
        with suppress(NotFoundError):
            Store.new_random_access_file(self, uri).close()
            return Store.stat(self, uri)._replace(mtime_nsec=0)
        with suppress(NotFoundError):
            Store.stat(self, f"{uri}/")
            return DIRECTORY
        return None

    def _create_directory(self, uri: str) -> None:
        """Create a directory and its parents: as a prefix of names it does not exist."""
        directories = [uri]
        while depth_of(directories[0]) > 1:
            directories.insert(0, dirname(directories[0]))
        for directory in directories:
            Store.create_dir(self, directory)

    def _copy(self, source: str, target: str, length: int) -> None:  # noqa: ARG002
        """Copy a file in the store, also an empty one, which the plugin cannot write."""
        self._forget(target)
        if source != target:
            Store.copy_file(self, source, target)

    def _read_long_file(self, uri: str) -> bytes:
        """Return the bytes of a file, which are of one version: one read is one request."""
        length = self._length("read_file", uri)
        with self._open(uri, length) as file:
            return file.read(0, length)
