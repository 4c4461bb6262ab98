"""Copying a file, within one filesystem or between two."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.errors import InternalError, ModularTFError, NotFoundError, PermissionDeniedError
from modular_tf.filesystem.uri import basename, dirname, join_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.filesystem.files import RandomAccessFile, WritableFile
    from modular_tf.filesystem.filesystem import Filesystem

    _Write = Callable[[WritableFile], None]
    _WayOfWriting = Callable[[Filesystem, str, _Write], None]

COPY_BLOCK = 1 << 20
"""Bytes in memory at a time, where nothing else is said."""

_UNFINISHED = ".mtf-copy-"


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

    A target directory is copied into. After a failure nothing is left of a new target. A file that
    was there before keeps its content within one filesystem that can rename: the copy has a name
    of its own beside it until it is whole. Elsewhere a torn target is deleted.

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
        is_one_store = source_fs is target_fs
        write_to = _way_of_writing(target_fs, source, target) if is_one_store else _write_new
        write_to(
            target_fs, target, lambda writer: _write_all(reader, writer, buffer, count, advance)
        )
    return True


def _way_of_writing(fs: Filesystem, source: str, target: str) -> _WayOfWriting:
    """Return how to write a file so that a failure leaves what is there now, if anything is."""
    try:
        length = fs.stat(target).length
    except NotFoundError:
        return _write_new
    except ModularTFError:
        length = -1
    if length == 0:
        return _write_empty
    # The source is such a file where renaming it has come to a copy after all.
    is_unfinished = basename(source).startswith(_UNFINISHED)
    return _replace if fs.renames_files() and not is_unfinished else _write_new


def _write_new(fs: Filesystem, target: str, write: _Write) -> None:
    """Write a file that is not there yet, or cannot be kept; a failure leaves none."""
    _write(fs, target, write, fs.delete_file)


def _write_empty(fs: Filesystem, target: str, write: _Write) -> None:
    """Write to an empty file, which a failure leaves empty; it may be a device or a pipe."""
    _write(fs, target, write, lambda uri: fs.new_writable_file(uri).close())


def _replace(fs: Filesystem, target: str, write: _Write) -> None:
    """Write a file beside the target and rename it; a failure leaves the target as it was.

    Where the directory takes no new file the target itself is written.
    """
    directory = dirname(target.rstrip("/"))
    unfinished = join_path(directory, f"{_UNFINISHED}{os.urandom(8).hex()}")
    try:  # begins before the file exists: an interrupt may come between any two steps
        try:
            writer = fs.new_writable_file(unfinished)
        except PermissionDeniedError:
            return _write_new(fs, target, write)
        with writer:
            write(writer)
        fs.rename_file(unfinished, target)
    except BaseException:
        with suppress(ModularTFError):
            fs.delete_file(unfinished)
        raise


def _write(fs: Filesystem, target: str, write: _Write, undo: Callable[[str], None]) -> None:
    """Write a file; call `undo(target)` after a failure, and raise that whatever comes of it."""
    writer = fs.new_writable_file(target)
    try:
        with writer:
            write(writer)
    except BaseException:
        with suppress(ModularTFError):
            undo(target)
        raise


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
