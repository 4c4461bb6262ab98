"""A file of a plugin opened for writing, as fsspec and its users expect one."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.filesystem.files import WritableFile
    from modular_tf.fsspec.filesystem import ModularFileSystem


class _Appends(io.RawIOBase):
    """The appends of a plugin's file with a position that only grows."""

    def __init__(self, file: WritableFile, position: int, on_close: Callable[[], None]) -> None:
        super().__init__()
        self._file = file
        self._position = position
        self._on_close = on_close

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        self._checkClosed()
        return self._position

    def write(self, data: Any) -> int:
        self._file.append(data)
        n_written = memoryview(data).nbytes
        self._position += n_written
        return n_written

    def deliver(self) -> None:
        """Ask the plugin to pass on what it has been given so far."""
        self._file.flush()

    def close(self) -> None:
        if self.closed:
            return
        try:
            self._file.close()
        finally:
            super().close()
            self._on_close()


class ModularWriter(io.BufferedWriter):
    """A buffered writer; large writes go to the plugin's `append` without another copy.

    The file is complete when `close()` returned without an error. [creating thread]

    Attributes:
        fs: The filesystem that opened it.
        path: The path within `fs`, without protocol.
        blocksize: Bytes that the buffer holds at most.
    """

    def __init__(
        self,
        fs: ModularFileSystem,
        path: str,
        file: WritableFile,
        position: int,
        block_size: int,
    ) -> None:
        self.fs = fs
        self.path = path
        self.blocksize = block_size
        self._appends = _Appends(file, position, lambda: fs.forget_listing(path))
        self._closing = False
        super().__init__(self._appends, block_size)

    @property
    def full_name(self) -> str:
        """The path with its protocol."""
        return str(self.fs.unstrip_protocol(self.path))

    def flush(self) -> None:
        """Hand what is buffered to the plugin and ask it to flush."""
        super().flush()
        if not self._closing:
            self._appends.deliver()

    def close(self) -> None:
        """Hand over the rest and close the plugin's file; closing twice is harmless.

        A plugin's close delivers everything by itself, and a cloud store may upload at each
        flush, so none is asked for here.
        """
        self._closing = True
        super().close()
