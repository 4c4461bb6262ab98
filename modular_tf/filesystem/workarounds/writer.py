"""The writer of plugins with known defects; it stacks on the plugin's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.errors import ModularTFError, UnimplementedError
from modular_tf.filesystem.files import WritableFile

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined,unused-ignore]

    from modular_tf.filesystem.workarounds.forgotten_descriptors import ForgottenDescriptors


class AnsweredWriter(WritableFile):
    """A writer that counts its own position, and touches a file that nothing is written to.

    Args:
        file: The plugin's own file.
        position: Bytes that the file has already; None to ask the plugin for `tell`.
        touch: Append no bytes before closing an untouched file.
        needs_bytes: Say so where the plugin's close fails since the file got none.
        forgotten: What the plugin leaves open then; None for nothing.
    """

    __slots__ = (
        "__weakref__",
        "_file",
        "_forgotten",
        "_is_empty",
        "_needs_bytes",
        "_position",
        "_touch",
    )

    def __init__(
        self,
        file: WritableFile,
        *,
        position: int | None,
        touch: bool,
        needs_bytes: bool,
        forgotten: ForgottenDescriptors | None,
    ) -> None:
        self.uri = file.uri
        self._file = file
        self._position = position
        self._touch = touch
        self._needs_bytes = needs_bytes
        self._is_empty = not position
        self._forgotten = forgotten

    def append(self, data: Buffer) -> None:
        """Add all of `data` at the end."""
        appended = memoryview(data).nbytes
        self._file.append(data)
        self._touch = False
        self._is_empty = self._is_empty and not appended
        if self._position is not None:
            self._position += appended

    def appended(self) -> int | None:
        """Return how many bytes the plugin has taken since it was opened."""
        return self._file.appended()

    def tell(self) -> int:
        """Return the position at which the next byte will be written."""
        return self._file.tell() if self._position is None else self._position

    def flush(self) -> None:
        """Call the plugin's flush, once there is something to flush."""
        if not self._touch:
            self._file.flush()

    def sync(self) -> None:
        """Call the plugin's sync."""
        self._touch_now()
        self._file.sync()

    def close(self) -> None:
        """Close the plugin's file."""
        try:
            self._touch_now()
        finally:
            self._position = None  # from now on the file is asked, which refuses
            self._close()

    def _close(self) -> None:
        try:
            self._file.close()
        except ModularTFError as error:
            if self._needs_bytes and self._is_empty:
                raise self._refused(error.plugin) from error
            raise
        finally:
            if self._forgotten is not None:
                self._forgotten.close()

    def _refused(self, plugin: str | None) -> UnimplementedError:
        return UnimplementedError(
            f"close {self.uri!r}: {plugin} cannot write a file of no bytes, and left what was"
            " there; write at least one",
            plugin=plugin,
            path=self.uri,
            operation="close",
        )

    def _touch_now(self) -> None:
        if self._touch:
            self._file.append(b"")
            self._touch = False
