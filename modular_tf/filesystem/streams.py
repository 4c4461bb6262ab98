"""Files as `io` objects: what `open`, `zipfile`, `pickle` and pandas understand."""

from __future__ import annotations

import io
import sys
from typing import IO, TYPE_CHECKING, Any

from modular_tf.errors import AlreadyExistsError
from modular_tf.filesystem.files import known_length, read_rest
from modular_tf.filesystem.scheme import is_of_this_machine
from modular_tf.filesystem.writer_streams import StreamWriter, TextWriter, WriterStream
from modular_tf.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Buffer, Callable  # type: ignore[attr-defined,unused-ignore]

    from modular_tf.filesystem.files import RandomAccessFile
    from modular_tf.filesystem.filesystem import Filesystem

DEFAULT_BUFFER = 1 << 16
_FIRST_BLOCK = 1 << 13


class ReaderStream(io.RawIOBase):
    """A position over a `RandomAccessFile`, which it closes. One thread at a time.

    Args:
        file: What to read.
        length: The length of the file in bytes, past which nothing is read; or a function that
            returns it, for a file that may grow, which is called when the file does not know it.
    """

    mode = "rb"

    def __init__(self, file: RandomAccessFile, length: int | Callable[[], int]) -> None:
        super().__init__()
        self._file = file
        self._length = length
        self._end = length if isinstance(length, int) else None
        self._position = 0

    @property
    def name(self) -> str:
        """The URI, without secrets."""
        return redacted(self._file.uri)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Fill `buffer` from the position, without a copy."""
        self._check_open()
        if self._end is not None:  # no request only finds the end
            buffer = memoryview(buffer).cast("B")[: max(0, self._end - self._position)]
        count = self._file.readinto(self._position, buffer)
        self._position += count
        return count

    def write(self, data: Buffer) -> int:  # noqa: ARG002  (io's signature)
        """Raise: the stream is read-only."""
        self._check_open()
        raise io.UnsupportedOperation("not writable")

    def readall(self) -> bytes:
        """Return all that is left, read in one call where the length is known."""
        self._check_open()
        start = self._position
        if self._end is not None:
            data = self.piece(start, self._end)
        else:
            data = read_rest(self._file, start, self._size, _FIRST_BLOCK)
        self._position = start + len(data)  # last: what fails before can be tried again
        return data

    def piece(self, start: int, n: int) -> bytes:
        """Return up to `n` bytes from `start`, wherever the position is."""
        if self._end is not None:
            n = min(n, self._end - start)
        return self._file.read(start, n) if n > 0 else b""

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to `offset` from the start, the position or the end."""
        self._check_open()
        if whence == io.SEEK_CUR:
            offset += self._position
        elif whence == io.SEEK_END:
            offset += self._size()
        elif whence != io.SEEK_SET:
            raise ValueError(f"whence is {whence}; 0, 1 and 2 are known")
        if offset < 0:
            raise ValueError(f"cannot seek to {offset}, before the start of {self.name!r}")
        self._position = offset
        return offset

    def _size(self) -> int:
        if isinstance(self._length, int):
            return self._length
        known = known_length(self._file)
        return self._length() if known is None else known

    def tell(self) -> int:
        self._check_open()
        return self._position

    def close(self) -> None:
        """Close the file too; one whose making was interrupted has none."""
        if not self.closed and hasattr(self, "_file"):
            try:
                self._file.close()
            finally:
                super().close()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")


def buffered(
    filesystem: Filesystem,
    file: RandomAccessFile,
    length: int | Callable[[], int],
    buffer_size: int = DEFAULT_BUFFER,
) -> io.BufferedReader:
    """Return a buffered reader of a file that `filesystem.open_input` has opened."""
    if is_of_this_machine(filesystem.scheme):  # in C alone
        return io.BufferedReader(ReaderStream(file, length), buffer_size)
    return FileReader(file, length, buffer_size)


class FileReader(io.BufferedReader):
    """A buffered reader of a `RandomAccessFile`, which it closes. [creating thread]

    A long read goes straight into the memory of the caller, and by one read of the file: io would
    read the last part of it on its own.
    """

    raw: ReaderStream

    def __init__(
        self,
        file: RandomAccessFile,
        length: int | Callable[[], int],
        buffer_size: int = DEFAULT_BUFFER,
    ) -> None:
        super().__init__(ReaderStream(file, length), buffer_size)

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to `size` bytes, all that is left without one."""
        if size is None or size < DEFAULT_BUFFER:
            return super().read(size)
        start = self.tell()
        data = self.raw.piece(start, size)
        self.seek(start + len(data))
        return data


def reset(reader: io.BufferedReader, position: int) -> None:
    """Discard a buffer that may be out of date, and move to a position."""
    reader.seek(sys.maxsize)  # within its buffer, io would not move the stream below
    reader.seek(position)


def open_stream(
    filesystem: Filesystem,
    uri: str,
    mode: str,
    buffering: int,
    encoding: str | None,
    errors: str | None,
    newline: str | None,
) -> IO[Any]:
    """Open a file as `Filesystem.open` documents."""
    action, binary = _parse_mode(mode)
    if binary and (encoding or errors or newline):
        raise ValueError("a binary file takes no encoding, errors or newline")
    if buffering == 0 and not binary:
        raise ValueError("a text file cannot be unbuffered")
    size = buffering if buffering > 1 or buffering == 0 else DEFAULT_BUFFER
    options: dict[str, Any] = {
        "encoding": encoding or "utf-8",
        "errors": errors,
        "newline": newline,
        "line_buffering": buffering == 1,
    }
    if not binary:  # what is refused must not have emptied the file
        io.TextIOWrapper(io.BytesIO(), **options)
    opened = _open_binary(filesystem, uri, action, size)
    if binary:
        return opened  # type: ignore[no-any-return]
    if action == "r":
        return io.TextIOWrapper(opened, **options)
    return TextWriter(filesystem, opened, **options)


def _parse_mode(mode: str) -> tuple[str, bool]:
    """Return the action, one of `r`, `w`, `a`, `x`, and whether the file is binary."""
    actions = [letter for letter in mode if letter in "rwax"]
    if set(mode) - set("rwaxbt") or len(actions) != 1 or len(mode) != len(set(mode)):
        raise ValueError(
            f"mode {mode!r}: expected one of r, w, a, x, and b or t; no plugin can update in place"
        )
    if "b" in mode and "t" in mode:
        raise ValueError(f"mode {mode!r}: a file is binary or text, not both")
    return actions[0], "b" in mode


def _open_binary(filesystem: Filesystem, uri: str, action: str, buffer_size: int) -> Any:
    if action == "r":

        def length() -> int:
            return filesystem.get_file_size(uri)

        if not buffer_size:
            return ReaderStream(filesystem.new_random_access_file(uri), length)
        return buffered(filesystem, filesystem.open_input(uri), length, buffer_size)
    position = 0
    if action == "a":
        position = filesystem.get_file_size(uri) if filesystem.path_exists(uri) else 0
        writer = filesystem.new_appendable_file(uri)
    else:
        if action == "x" and filesystem.path_exists(uri):
            raise AlreadyExistsError.of("open", uri, "it exists", plugin=filesystem.plugin)
        writer = filesystem.new_writable_file(uri)
    if not buffer_size:
        return WriterStream(writer, position, f"{action}b")
    return StreamWriter(filesystem, writer, position, f"{action}b", buffer_size)
