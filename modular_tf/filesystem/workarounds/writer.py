"""A writer for plugins with known defects, around the plugin's own writer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.errors import ModularTFError, UnimplementedError
from modular_tf.filesystem.files import WritableFile, give_up

if TYPE_CHECKING:
    from collections.abc import Buffer, Callable  # type: ignore[attr-defined,unused-ignore]

    from modular_tf.filesystem.workarounds.descriptors import LeakedDescriptors


class WorkaroundWriter(WritableFile):
    """A writer that counts its position, creates empty files, and closes leaked descriptors.

    Args:
        file: The plugin's own file.
        position: The file's length in bytes, to count from; None to use the plugin's `tell`.
        touch: Append zero bytes before closing a file that nothing was written to.
        needs_bytes: Whether the plugin's close fails for an empty file, which is then explained.
        leaked: The descriptors to close after the file; None for none.
        checked_close: Calls the plugin's close, and explains its errors.
    """

    __slots__ = (
        "__weakref__",
        "_checked_close",
        "_file",
        "_is_closed",
        "_is_empty",
        "_leaked",
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
        leaked: LeakedDescriptors | None,
        checked_close: Callable[[Callable[[], None]], None],
    ) -> None:
        self.uri = file.uri
        self._file = file
        self._position = position
        self._touch = touch
        self._needs_bytes = needs_bytes
        self._is_empty = not position
        self._is_closed = False
        self._leaked = leaked
        self._checked_close = checked_close

    @property
    def is_stored_by_close(self) -> bool:  # type: ignore[override]
        """What the plugin's file says."""
        return self._file.is_stored_by_close

    @property
    def is_torn(self) -> bool:  # type: ignore[override]
        """What the plugin's file says."""
        return self._file.is_torn

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
        """Close the plugin's file; once it is closed the server is not asked for again."""
        if self._is_closed:
            return
        try:
            self._touch_now()
        finally:
            self._position = None  # from now on `tell` asks the plugin's file, which is closed
            self._close()

    def _close(self) -> None:
        try:
            self._checked_close(self._file.close)
        except ModularTFError as error:
            self._is_closed = True
            # Where a check failed before the close: what is told to be lost must not be stored
            # later, over what others may have written by then.
            give_up(self._file)
            self._close_leaked()
            if self._needs_bytes and self._is_empty:
                raise self._refused(error.plugin) from error
            raise
        self._is_closed = True
        self._close_leaked()  # not after an interrupt: the plugin may still be at work

    def require_uninterrupted(self, operation: str) -> None:
        """Leave it to the plugin's file, whose calls may be interrupted."""
        self._file.require_uninterrupted(operation)

    def discard(self) -> None:
        """Clean up without the plugin's close, which would keep what was written."""
        self._touch = False
        self._position = None
        self._is_closed = True
        try:
            self._file.discard()
        finally:
            self._close_leaked()

    def _close_leaked(self) -> None:
        if self._leaked is not None:
            self._leaked.close()

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
