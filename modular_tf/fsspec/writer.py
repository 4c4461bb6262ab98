"""A file of a plugin opened for writing, as fsspec and its users expect one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.filesystem.writer_streams import StreamWriter

if TYPE_CHECKING:
    from modular_tf.filesystem.files import WritableFile
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.fsspec.filesystem import ModularFileSystem


class ModularWriter(StreamWriter):
    """A buffered writer with what fsspec's users ask of one. [creating thread]

    As with other filesystems of fsspec, `flush` stores nothing in a store: libraries flush what
    they give up.

    Attributes:
        fs: The filesystem that opened it.
        path: The path within `fs`, without protocol.
        blocksize: Bytes that the buffer holds at most.
    """

    stores_at_flush = False

    def __init__(
        self,
        fs: ModularFileSystem,
        path: str,
        filesystem: Filesystem,
        file: WritableFile,
        *,
        position: int,
        mode: str,
        block_size: int,
    ) -> None:
        self.fs = fs
        self.path = path
        self.blocksize = block_size
        super().__init__(filesystem, file, position, mode, block_size)

    @property
    def full_name(self) -> str:
        """The path with its protocol."""
        return str(self.fs.unstrip_protocol(self.path))

    def close(self) -> None:
        """Hand over the rest and close the plugin's file; closing twice is harmless."""
        try:
            super().close()
        finally:
            self.fs.forget_listing(self.path)
