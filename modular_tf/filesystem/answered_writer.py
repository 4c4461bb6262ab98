"""The writer of plugins with known defects; it stacks on the plugin's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.filesystem.files import WritableFile

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined,unused-ignore]


class AnsweredWriter(WritableFile):
    """A writer that counts its own position, and touches a file that nothing is written to.

    Args:
        file: The plugin's own file.
        position: Bytes that the file has already; None to ask the plugin for `tell`.
        touch: Append no bytes before closing an untouched file.
    """

    __slots__ = ("__weakref__", "_file", "_position", "_touch")

    def __init__(self, file: WritableFile, *, position: int | None, touch: bool) -> None:
        self.uri = file.uri
        self._file = file
        self._position = position
        self._touch = touch

    def append(self, data: Buffer) -> None:
        """Add all of `data` at the end."""
        self._file.append(data)
        self._touch = False
        if self._position is not None:
            self._position += memoryview(data).nbytes

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
            self._file.close()

    def _touch_now(self) -> None:
        touch, self._touch = self._touch, False
        if touch:
            self._file.append(b"")
