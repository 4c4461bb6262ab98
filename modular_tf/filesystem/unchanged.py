"""Finding out that a file of a store changed while it was read in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.errors import AbortedError

if TYPE_CHECKING:
    from modular_tf.filesystem.filesystem import Filesystem

_ONE_REQUEST = 1 << 17  # bytes that every plugin reads by one request, so of one version


class UnchangedSource:
    """A file that is the same at the end of a reading as at its begin. [creating thread]

    A file of this machine stays the one that was opened. In an object store each request gets the
    version of its moment: pieces of two versions would be joined. A file that is short, or whose
    length is not known, is not looked at.

    Args:
        filesystem: Where the file is.
        uri: Its name.
        length: Its length in bytes when it was opened; None where it is not known.
    """

    def __init__(self, filesystem: Filesystem, uri: str, length: int | None) -> None:
        self._filesystem = filesystem
        self._uri = uri
        is_long = length is not None and length > _ONE_REQUEST
        self._before = filesystem.stat(uri) if is_long and filesystem.is_object_store else None
        if self._before is not None and self._before.length != length:
            raise self._changed()

    def check(self) -> None:
        """Return if the file is what it was.

        Raises:
            AbortedError: It changed.
            NotFoundError: It is gone.
        """
        if self._before is not None and self._filesystem.stat(self._uri) != self._before:
            raise self._changed()

    def _changed(self) -> AbortedError:
        return AbortedError(
            f"read {self._uri!r}: it changed while it was read; try again",
            path=self._uri,
            operation="read",
        )
