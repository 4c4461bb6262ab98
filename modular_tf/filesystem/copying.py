"""Copying a file, within one filesystem or between two."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.errors import InternalError, ModularTFError
from modular_tf.filesystem.uri import basename, join_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.filesystem.files import RandomAccessFile, WritableFile
    from modular_tf.filesystem.filesystem import Filesystem

COPY_BLOCK = 1 << 20
"""Bytes in memory at a time, where nothing else is said."""


def copy(source_fs: Filesystem, source: str, target_fs: Filesystem, target: str) -> None:
    """Copy a file within a filesystem or between two, replacing the target.

    A target directory of another filesystem is copied into.

    Raises:
        FailedPreconditionError: The source is a directory.
        NotFoundError: The source, or the directory of the target, does not exist.
    """
    if source_fs is not target_fs:
        target = inside_directory(target_fs, target, source)
    if source_fs.shares_store_with(target_fs):
        source_fs.copy_file(source, target)
    else:
        copy_through(source_fs, source, target_fs, target)


def copy_through(
    source_fs: Filesystem,
    source: str,
    target_fs: Filesystem,
    target: str,
    advance: Callable[[int], object] = lambda _: None,
    block: int = COPY_BLOCK,
) -> bool:
    """Copy the bytes through this process.

    A target directory is copied into. After a failure the torn target is deleted where the
    filesystem can.

    Args:
        source_fs: Where the source is.
        source: A file.
        target_fs: Where the target shall be.
        target: Its name.
        advance: Told the number of bytes of each piece that has arrived.
        block: Bytes in memory at a time.

    Returns:
        False where nothing was done, because both may be one file: its names are the same, or
        they are of one plugin and hold the same bytes.
    """
    with source_fs.new_random_access_file(source) as reader:
        target = inside_directory(target_fs, target, source)
        if _may_be_one_file(source_fs, source, target_fs, target):
            return False
        buffer = memoryview(bytearray(block))
        # Read first: a source that cannot be read must not cost the target its content.
        count = _read_block(reader, 0, buffer)
        writer = target_fs.new_writable_file(target)
        try:
            with writer:
                _write_all(reader, writer, buffer, count, advance)
        except BaseException:
            with suppress(ModularTFError):
                target_fs.delete_file(target)
            raise
    return True


def _write_all(
    reader: RandomAccessFile,
    writer: WritableFile,
    buffer: memoryview,
    count: int,
    advance: Callable[[int], object],
) -> None:
    """Write the first `count` bytes of `buffer`, and what the reader has behind them."""
    offset = count
    while count:
        writer.append(buffer[:count])
        advance(count)
        count = _read_block(reader, offset, buffer)
        offset += count


def _read_block(reader: RandomAccessFile, offset: int, buffer: memoryview) -> int:
    """Read into `buffer`; a count that no reader can give would copy for ever, or garbage."""
    count = reader.readinto(offset, buffer)
    if not 0 <= count <= len(buffer):
        raise InternalError(
            f"read gave {count} bytes where {len(buffer)} were asked for", operation="read"
        )
    return count


def inside_directory(fs: Filesystem, target: str, source: str) -> str:
    """Return where a copy arrives: a directory takes it in under the source's name."""
    with suppress(ModularTFError):
        if fs.is_directory(target):
            return join_path(target, basename(source))
    return target


def _may_be_one_file(source_fs: Filesystem, a: str, target_fs: Filesystem, b: str) -> bool:
    if source_fs is target_fs:
        return source_fs.is_same_name(a, b)
    # Two schemes of one plugin may reach one file by two names, or by a link.
    return source_fs.plugin == target_fs.plugin and _are_equal(source_fs, a, target_fs, b)


def _are_equal(a_fs: Filesystem, a: str, b_fs: Filesystem, b: str) -> bool:
    """Compare the bytes of two files; a file that cannot be read has none."""
    try:
        if a_fs.stat(a).length != b_fs.stat(b).length:
            return False
        with a_fs.new_random_access_file(a) as left, b_fs.new_random_access_file(b) as right:
            return _hold_equal_bytes(left, right)
    except ModularTFError:
        return False


def _hold_equal_bytes(left: RandomAccessFile, right: RandomAccessFile) -> bool:
    offset = 0
    while block := left.read(offset, COPY_BLOCK):
        if block != right.read(offset, COPY_BLOCK):
            return False
        offset += len(block)
    return not right.read(offset, 1)
