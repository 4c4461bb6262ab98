"""Copying a file, within one filesystem or between two."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.errors import (
    DataLossError,
    InternalError,
    ModularTFError,
    NotFoundError,
)
from modular_tf.filesystem.copy_watch import CopyWatch
from modular_tf.filesystem.files import give_up, known_length
from modular_tf.filesystem.overlap import Overlap, overlap
from modular_tf.filesystem.python_errors import error_for
from modular_tf.filesystem.readahead import LARGEST_BLOCK
from modular_tf.filesystem.scheme import is_of_this_machine
from modular_tf.filesystem.unchanged import UnchangedSource
from modular_tf.filesystem.uri import basename, join_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.filesystem.files import RandomAccessFile, WritableFile
    from modular_tf.filesystem.filesystem import Filesystem

    _WayOfWriting = Callable[[Filesystem, str, "_Contents"], None]

COPY_BLOCK = 1 << 20
"""Bytes in memory at a time, where nothing else is said and the source is of this machine."""

_UNFINISHED = ".mtf-copy-"


_NOBODY = CopyWatch()


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
        copy_through(source_fs, source, target_fs, target, is_landing=True)


def copy_through(
    source_fs: Filesystem,
    source: str,
    target_fs: Filesystem,
    target: str,
    watch: CopyWatch = _NOBODY,
    block: int | None = None,
    *,
    is_landing: bool = False,
) -> bool:
    """Copy the bytes through this process.

    A target directory is copied into. After a failure nothing is left of a new target. A file that
    was there before keeps its content in a store that keeps a file when it is closed, and where
    files are renamed: there the copy has a name of its own beside it until it is whole. Elsewhere a
    torn target is deleted.

    Args:
        source_fs: Where the source is.
        source: A file.
        target_fs: Where the target shall be.
        target: Its name.
        watch: Told of what is done.
        block: Bytes in memory at a time; by default `COPY_BLOCK`, or what a reader of the source's
            store reads ahead at most, of which it brings parts at once.
        is_landing: The target is known to be no directory; it is not asked about.

    Returns:
        False where nothing was done, because both are one file, or may be: they are of one plugin
        and hold the same bytes.

    Raises:
        AbortedError: The source changed meanwhile.
        DataLossError: The source gave fewer bytes than it said it has.
    """
    with source_fs.new_random_access_file(source) as reader:
        if not is_landing:
            target = inside_directory(target_fs, target, source)
        if _may_be_one_file(source_fs, source, target_fs, target):
            return False
        blocks = _Blocks(reader, block or _block_of(source_fs))
        unchanged = UnchangedSource(source_fs, source, blocks.length)
        watch.begun(blocks.length)
        # Read first: a source that cannot be read must not cost the target its content.
        blocks.read_next()
        write_to = _way_of_writing(target_fs, source, target)
        write_to(target_fs, target, _Contents(blocks, unchanged, watch))
    return True


def append_contents(fs: Filesystem, source: str, writer: WritableFile, block: int) -> None:
    """Append all bytes of a file to an open one.

    Args:
        fs: Where the source is.
        source: A file.
        writer: Gets its bytes.
        block: Bytes in memory at a time.

    Raises:
        AbortedError: The source changed meanwhile.
        DataLossError: The source gave fewer bytes than it said it has.
    """
    with fs.new_random_access_file(source) as reader:
        blocks = _Blocks(reader, block)
        unchanged = UnchangedSource(fs, source, blocks.length)
        blocks.read_next()
        _Contents(blocks, unchanged, _NOBODY).append_all(writer)


def _block_of(fs: Filesystem) -> int:
    return COPY_BLOCK if is_of_this_machine(fs.scheme) else LARGEST_BLOCK


class _Blocks:
    """The contents of a file, one block after the other in the same memory."""

    def __init__(self, reader: RandomAccessFile, block: int) -> None:
        self._reader = reader
        self.length = known_length(reader)
        size = block if self.length is None else max(1, min(block, self.length))
        self._buffer = memoryview(bytearray(size))
        self.done = 0
        self._is_over = False
        self.current = self._buffer[:0]

    def read_next(self) -> None:
        """Read the next block into `current`, which is empty behind the end."""
        if self._is_over or self.done == self.length:
            self.current = self._buffer[:0]
            return
        count = self._reader.readinto(self.done, self._buffer)
        if not 0 <= count <= len(self._buffer):  # it would copy for ever, or garbage
            raise InternalError(
                f"read gave {count} bytes where {len(self._buffer)} were asked for",
                operation="read",
            )
        self.done += count
        self._is_over = count < len(self._buffer)  # a short read is the end
        if self._is_over and self.length is not None and self.done < self.length:
            raise DataLossError(
                f"read {self._reader.uri!r}: it ended after {self.done} of {self.length} bytes;"
                " try again",
                path=self._reader.uri,
                operation="read",
            )
        self.current = self._buffer[:count]


class _Contents:
    """What is written to a target, and who is told of it."""

    def __init__(self, blocks: _Blocks, unchanged: UnchangedSource, watch: CopyWatch) -> None:
        self._blocks = blocks
        self._unchanged = unchanged
        self.watch = watch

    def write_to(self, writer: WritableFile) -> None:
        """Write all and close the writer; a failure before that stores nothing."""
        try:
            self.append_all(writer)
            self.watch.storing()
        except BaseException:
            give_up(writer)
            raise
        writer.close()

    def append_all(self, writer: WritableFile) -> None:
        """Write all; raise if the source is no longer what it was."""
        while self._blocks.current:
            writer.append(self._blocks.current)
            self.watch.advance(len(self._blocks.current))
            self._blocks.read_next()
        self._unchanged.check(self._blocks.done)


def write_whole(
    fs: Filesystem,
    target: str,
    write: Callable[[WritableFile], None],
    watch: CopyWatch = _NOBODY,
) -> None:
    """Create or replace a file by what `write` appends to it.

    After a failure the target is what `copy_through` leaves of one.

    Args:
        fs: Where the target shall be.
        target: Its name.
        write: Called with the file; once more where the directory takes no file beside the target.
        watch: Told when the file is being stored, and of what is to be deleted.
    """
    _way_of_writing(fs, target, target)(fs, target, _Written(write, watch))


class _Written(_Contents):
    """What a function appends to a target."""

    def __init__(self, write: Callable[[WritableFile], None], watch: CopyWatch) -> None:
        self._write = write
        self.watch = watch

    def append_all(self, writer: WritableFile) -> None:
        """Have the function write."""
        self._write(writer)


def _way_of_writing(fs: Filesystem, source: str, target: str) -> _WayOfWriting:
    """Return how to write a file so that a failure leaves what is there now, if anything is."""
    if fs.is_object_store:
        return _write_whole
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


def _write_whole(fs: Filesystem, target: str, contents: _Contents) -> None:
    """Write a file of a store that keeps nothing of one that is discarded."""
    contents.write_to(fs.new_writable_file(target))


def _write_new(fs: Filesystem, target: str, contents: _Contents) -> None:
    """Write a file that is not there yet, or cannot be kept; a failure leaves none."""
    _write(fs, target, contents, fs.delete_file, is_new=True)


def _write_empty(fs: Filesystem, target: str, contents: _Contents) -> None:
    """Write to an empty file, which a failure leaves empty; it may be a device or a pipe."""

    def empty(uri: str) -> None:
        if fs.stat(uri).length:  # a pipe has none, and opening it would wait for a reader
            fs.new_writable_file(uri).close()

    _write(fs, target, contents, empty, is_new=False)


def _replace(fs: Filesystem, target: str, contents: _Contents) -> None:
    """Write a file beside the target and rename it; a failure leaves the target as it was.

    Where the directory takes no new file the target itself is written.
    """
    # Not by `dirname`: the last part may be the first one too, as in ram://file.
    beside = "".join(target.rstrip("/").rpartition("/")[:2])
    unfinished = f"{beside}{_UNFINISHED}{os.urandom(8).hex()}"
    contents.watch.unfinished(unfinished)
    paths = _local_paths(fs, unfinished, target)
    try:  # begins before the file exists: an interrupt may come between any two steps
        try:
            if paths is not None:  # its mode stays; until then nobody else reads what arrives
                _create_private(paths[0], unfinished)
            writer = fs.new_writable_file(unfinished)
        except PermissionError:
            return _write_new(fs, target, contents)
        contents.write_to(writer)
        if paths is not None:
            with suppress(FileNotFoundError):
                shutil.copymode(paths[1], paths[0])
        fs.rename_file(unfinished, target)
    except BaseException:
        with suppress(ModularTFError):
            fs.delete_file(unfinished)
        raise
    finally:
        contents.watch.unfinished(None)


def _create_private(path: str, uri: str) -> None:
    """Create a file that nobody else reads.

    Raises:
        ModularTFError: The system does not, as where no descriptor is left.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise error_for(error, path=uri, operation="new_writable_file") from error


def _local_paths(fs: Filesystem, *uris: str) -> list[str] | None:
    """Return the paths of files that the system knows; None of others. The last one is there."""
    if fs.scheme not in {"", "file"}:
        return None
    paths = [fs.translate_name(uri) for uri in uris]
    return paths if os.path.isfile(paths[-1]) else None


def _write(
    fs: Filesystem,
    target: str,
    contents: _Contents,
    undo: Callable[[str], None],
    *,
    is_new: bool,
) -> None:
    """Write a file; call `undo(target)` after a failure, and raise that whatever comes of it."""
    writer = fs.new_writable_file(target)
    contents.watch.unfinished(target, is_new=is_new)
    try:
        contents.write_to(writer)
    except BaseException:
        with suppress(ModularTFError):
            undo(target)
        raise
    finally:
        contents.watch.unfinished(None)


def inside_directory(fs: Filesystem, target: str, source: str) -> str:
    """Return where a copy arrives: a directory takes it in under the source's name."""
    with suppress(ModularTFError):
        if fs.is_directory(target):
            return join_path(target, basename(source))
    return target


def _may_be_one_file(source_fs: Filesystem, a: str, target_fs: Filesystem, b: str) -> bool:
    if overlap((source_fs, a), (target_fs, b)) is Overlap.SAME:
        return True
    if source_fs is target_fs or None not in (source_fs.disk_path(a), target_fs.disk_path(b)):
        return False
    # Two schemes of one plugin may reach one file by two names, or by a link.
    return source_fs.plugin == target_fs.plugin and _are_equal(source_fs, a, target_fs, b)


def _are_equal(a_fs: Filesystem, a: str, b_fs: Filesystem, b: str) -> bool:
    """Compare the bytes of two files; a file that cannot be read has none."""
    try:
        if a_fs.stat(a).length != b_fs.stat(b).length:
            return False
        with a_fs.new_random_access_file(a) as left, b_fs.new_random_access_file(b) as right:
            return _hold_equal_bytes(left, right, max(_block_of(a_fs), _block_of(b_fs)))
    except ModularTFError:
        return False


def _hold_equal_bytes(left: RandomAccessFile, right: RandomAccessFile, size: int) -> bool:
    offset = 0
    while block := left.read(offset, size):
        if block != right.read(offset, size):
            return False
        offset += len(block)
    return not right.read(offset, 1)
