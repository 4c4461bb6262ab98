"""Copying one file: within a filesystem, between two, to and from this machine.

`read_all` passes on the bytes of one version of a file, and `write_whole` creates or replaces one;
`copy_through` is both together, and `copy_file` has a store copy by itself where it can. A local
path is `modular_tf.filesystem.local_files.local(path)`, as source or as target.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import closing, suppress
from itertools import chain, islice
from queue import Empty, SimpleQueue
from typing import IO, TYPE_CHECKING

from modular_tf.concurrency.crew import Crew
from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    InternalError,
    ModularTFError,
    NotFoundError,
)
from modular_tf.filesystem.location import Location, Overlap, overlap
from modular_tf.filesystem.python_errors import translated_errors
from modular_tf.filesystem.uri import basename, create_uri, is_of_this_machine, join_path

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from modular_tf.filesystem.files import FileStatistics, RandomAccessFile, WritableFile
    from modular_tf.filesystem.filesystem import Filesystem

COPY_BLOCK = 1 << 22
"""Bytes of a block. Up to 16 are in memory at a time, where a long file comes from a network."""

UNFINISHED = ".mtf-copy-"
"""How the names of files begin that hold a copy until it is whole."""

_SHORT = 1 << 20  # bytes of a file that a store's reader has when it is opened
_ONE_REQUEST = 1 << 17  # bytes that every plugin reads by one request, so of one version
_MOST_AHEAD = 16  # blocks of a file that are read or wait to be written
_crews: LiveObjects[Crew] = LiveObjects()  # of copies that are under way


class CopyWatch:
    """Callbacks that follow one copy, by the thread that makes it. This base class ignores them.

    What a method raises ends the copy, and leaves the target as a failure does.
    """

    def begun(self, length: int | None) -> None:
        """Take the length of the source in bytes; None where it is not known."""

    def advance(self, n_bytes: int) -> None:
        """Take the number of bytes of a piece that the target's plugin has accepted."""

    def storing(self) -> None:
        """Note that all bytes were accepted: now the target is closed, which may upload it."""

    def unfinished(self, uri: str | None, *, is_new: bool = True) -> None:
        """Take the name of a file that is not whole; None: there is none any more.

        One that `is_new` is to be deleted; another may be a device or a pipe.
        """


_NOBODY = CopyWatch()


def copy_file(
    source: Location,
    target: Location,
    watch: CopyWatch = _NOBODY,
    *,
    length: int | None = None,
    is_new: bool = False,
) -> bool:
    """Copy one file to where no directory is known to be; an existing target file is replaced.

    A store that serves both copies by itself, but for a file so short that its reader has all of it
    when it is opened. `length` is that of the source in bytes, if known; `is_new` says that nothing
    has the target's name, so that it is not looked up. Return False where both may be one file, and
    nothing was done. `FailedPreconditionError` if the target is a directory after all.
    """
    fs, uri = source
    if not source.shares_store_with(target):
        return copy_through(fs, uri, *target, watch, is_landing=True)

    def refuse_directory() -> None:
        if not is_new and target.is_directory():
            raise FailedPreconditionError(
                f"{target.uri} is a directory, which no file replaces", path=target.uri
            )

    if not fs.is_object_store:
        refuse_directory()
        fs.copy_file(uri, target.uri)
    else:
        with fs.new_random_access_file(uri) as reader:
            refuse_directory()
            known = reader.known_length()
            if known is not None and known < _SHORT:
                return _copy_opened(reader, source, target, watch, COPY_BLOCK)
            try:
                fs.copy_file(uri, target.uri)
            except FailedPreconditionError:  # its name is that of a directory too
                return _copy_opened(reader, source, target, watch, COPY_BLOCK)
    if length is not None:
        watch.advance(length)
    return True


def copy_through(
    source_fs: Filesystem,
    source: str,
    target_fs: Filesystem,
    target: str,
    watch: CopyWatch = _NOBODY,
    block: int = COPY_BLOCK,
    *,
    is_landing: bool = False,
) -> bool:
    """Copy the bytes through this process; a target directory is copied into.

    `is_landing` says that the target is known to be no directory, so that it is not looked up.
    Return False where nothing was done, because both are one file, or may be: they are of one
    plugin and hold the same bytes. Errors are those of `read_all`.
    """
    with source_fs.open_to_copy(source) as reader:
        if not is_landing:
            target = inside_directory(target_fs, target, source)
        places = Location(source_fs, source), Location(target_fs, target)
        return _copy_opened(reader, *places, watch, block)


def inside_directory(fs: Filesystem, target: str, source: str) -> str:
    """Return where a copy arrives: in a target that is a directory, under the source's name."""
    with suppress(ModularTFError):
        if fs.is_directory(target):
            return join_path(target, basename(source))
    return target


def _copy_opened(
    reader: RandomAccessFile, source: Location, target: Location, watch: CopyWatch, block: int
) -> bool:
    if _may_be_one_file(*source, *target):
        return False
    with closing(_OneVersion(source, reader, watch, block).blocks()) as blocks:
        # Read first: a source that cannot be read must not cost the target its content.
        first = list(islice(blocks, 1))

        def write(writer: WritableFile) -> None:
            for data in chain(first, blocks):
                writer.append(data)

        # The source is such a file where renaming it has come to a copy after all.
        is_unfinished = basename(source.uri).startswith(UNFINISHED)
        write_whole(*target, write, watch, may_rename=not is_unfinished)
    return True


def read_all(
    source: Location,
    write: Callable[[memoryview], object],
    watch: CopyWatch = _NOBODY,
    block: int = COPY_BLOCK,
) -> None:
    """Pass all bytes of a file on, in blocks of which each is valid until `write` returns.

    `AbortedError` if the file changes meanwhile, `DataLossError` if it ends before its length.
    """
    with (
        source.filesystem.open_to_copy(source.uri) as reader,
        closing(_OneVersion(source, reader, watch, block).blocks()) as blocks,
    ):
        for data in blocks:
            write(data)


class _OneVersion:
    """The blocks of a file, all of one version of it. [one thread]

    A file of this machine stays the one that was opened, and may lose its end meanwhile, as a log
    that is rotated. In an object store each request gets the version of its moment: pieces of two
    versions would be joined. There the statistics from `before` the first piece are compared with
    those from `after` the last one, except for a file that was read whole or by one request.

    Statistics of an `earlier` look-up serve too: a long file is looked up again beside its first
    pieces, and opened anew if it is another by now. Of a long file of a network, threads read the
    next blocks while one is passed on, as many at once as a whole read takes, within the memory of
    `_MOST_AHEAD` blocks; all such copies share that number.
    """

    def __init__(
        self, source: Location, reader: RandomAccessFile, watch: CopyWatch, block: int
    ) -> None:
        # They import this module.
        from modular_tf.filesystem.store_files import PiecewiseReader, WholeFile  # noqa: PLC0415

        self._source, self._reader, self._watch, self._block = source, reader, watch, block
        self._length = length = reader.known_length()
        self._size = block if length is None else max(1, min(block, length))
        self._before: FileStatistics | None = None
        self._earlier: FileStatistics | None = None
        self._after: FileStatistics | None = None
        is_here = is_of_this_machine(source.filesystem.scheme)
        self._is_long = length is not None and length > block and not is_here
        self._at_once, is_found_now = 2, False
        if isinstance(reader, PiecewiseReader):
            self._at_once = reader.blocks_at_once(self._size)
            if reader.found is not None and reader.found.length == length:
                self._earlier, is_found_now = reader.found, reader.is_found_now
        if length is None:
            with suppress(ModularTFError):
                self._before = source.stat() if is_here else None
        elif length <= _ONE_REQUEST or not source.filesystem.is_object_store:
            self._earlier = None
        elif is_found_now:
            self._before = self._earlier
        elif not (isinstance(reader, WholeFile) or (self._earlier and self._is_long)):
            found = self._look_up()
            if found.length != length and self._earlier is None:
                raise _changed(source.uri)

    def _look_up(self) -> FileStatistics:
        self._before = found = self._source.stat()
        return found

    @property
    def _is_replaced(self) -> bool:
        """Whether it is another file than the one of the earlier look-up."""
        return None not in (self._earlier, self._before) and self._earlier != self._before

    def blocks(self) -> Generator[memoryview]:
        """Yield the blocks, each valid until the next one; raise if the file changes meanwhile."""
        done = 0
        with closing(self._read_ahead() if self._is_long else self._read_in_turn()) as blocks:
            for data in blocks:
                yield data
                done += len(data)
                self._watch.advance(len(data))
        if self._is_replaced:
            fs, uri = self._source
            with fs.new_random_access_file(uri) as anew:
                yield from _OneVersion(self._source, anew, self._watch, self._block).blocks()
            return
        # The system gives lengths of some files that cannot be read, and these do not change.
        is_whole = self._before is None or (self._length is None and done >= self._before.length)
        if not is_whole and (self._after or self._source.stat()) != self._before:
            raise _changed(self._source.uri)

    def _read_in_turn(self) -> Generator[memoryview]:
        if self._is_replaced:
            return
        self._watch.begun(self._length)
        offset, buffer = 0, memoryview(bytearray(self._size))
        while offset != self._length and (data := self._read(offset, buffer)):
            yield data
            offset += len(data)
            if len(data) < self._size:  # the end
                break

    def _read_ahead(self) -> Generator[memoryview]:
        from modular_tf.filesystem.plugin_filesystem import fresh_bytes  # noqa: PLC0415  (likewise)

        length, starts = self._length or 0, range(0, self._length or 0, self._size)
        free: SimpleQueue[memoryview] = SimpleQueue()
        ended: SimpleQueue[int] = SimpleQueue()

        def read(offset: int) -> memoryview:
            if offset == length:  # beside the use of the last blocks
                left = len(starts)
                while left:
                    crew.check()
                    with suppress(Empty):
                        ended.get(timeout=1)
                        left -= 1
                self._after = self._source.stat()
                return memoryview(b"")
            try:
                buffer = free.get_nowait()  # else two threads may wait for the last one
            except Empty:
                buffer = fresh_bytes(self._size)[1][: self._size]
            try:
                return self._read(offset, buffer)
            finally:
                ended.put(offset)

        at_once = max(2, min(self._at_once, _MOST_AHEAD) // (1 + len(_crews.all())))
        crew = Crew(at_once, ahead=-(-_MOST_AHEAD // at_once))
        _crews.add(crew)
        items = chain(starts, [length] if self._earlier else [])
        beside = self._look_up if self._earlier and self._before is None else None
        with closing(crew.run(read, items, meanwhile=beside)) as outcomes:
            for outcome in outcomes:
                if self._is_replaced:
                    return
                if not outcome.item:
                    self._watch.begun(length)
                if data := outcome.get():
                    yield data
                    free.put(data)

    def _read(self, offset: int, buffer: memoryview) -> memoryview:
        length = self._length
        wanted = buffer if length is None else buffer[: length - offset]
        n = self._reader.readinto(offset, wanted)
        if not 0 <= n <= len(wanted):  # it would copy for ever, or garbage
            asked = f"read gave {n} bytes where {len(wanted)} were asked for"
            raise InternalError(asked, operation="read")
        if n < len(wanted) and length is not None:
            ended = f"it ended after {offset + n} of {length} bytes; try again"
            raise DataLossError.of("read", self._reader.uri, ended)
        return buffer[:n]


def require_all_read(file: IO[bytes], before: os.stat_result, n_read: int) -> None:
    """Raise `AbortedError` if an open file of this machine has lost its end while it was read.

    It gave fewer bytes than it had before, and has changed.
    """
    if n_read >= before.st_size or not stat.S_ISREG(before.st_mode):
        return
    now = os.fstat(file.fileno())
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise _changed(str(file.name))


def _changed(uri: str) -> AbortedError:
    return AbortedError.of("read", uri, "it changed while it was read; try again")


def write_whole(
    fs: Filesystem,
    target: str,
    write: Callable[[WritableFile], None],
    watch: CopyWatch = _NOBODY,
    *,
    may_rename: bool = True,
) -> None:
    """Create or replace a file by what `write` appends to it.

    After a failure nothing is left of a new target. A file that was there before keeps its content
    in a store that keeps a file when it is closed, and where files are renamed: there the new one
    has a name of its own beside it until it is whole. Elsewhere a torn target is deleted. An empty
    file, which may be a device or a pipe, is written to and left empty. A link of the disk stays,
    and its target is written, as an empty file where no URI of the filesystem names it.
    """

    def fill(writer: WritableFile) -> None:
        """Write all and close; a failure before the close stores nothing."""
        try:
            write(writer)
            watch.storing()
        except BaseException:
            writer.give_up()
            raise
        writer.close()

    if fs.is_object_store:
        fill(fs.new_writable_file(target))
        return
    length: int | None
    behind = _behind_link(fs, target)
    is_named, target = behind is not None, behind or target
    try:
        length = fs.stat(target).length
    except NotFoundError:
        length = None
    except ModularTFError:
        length = -1
    may_rename = may_rename and is_named and fs.does_itself("rename_file")
    if not (length and may_rename and _replace(fs, target, fill, watch)):
        is_new = is_named and length is None
        is_empty = length == 0 or not is_named  # to delete that would delete the link
        _write_in_place(fs, target, fill, watch, is_empty=is_empty, is_new=is_new)


def _write_in_place(
    fs: Filesystem,
    target: str,
    fill: Callable[[WritableFile], None],
    watch: CopyWatch,
    *,
    is_empty: bool,
    is_new: bool = False,
) -> None:
    """Write a file by its own name; a failure leaves none, or it empty as it was."""
    try:
        writer = fs.new_writable_file(target)
        is_stored_by_close = writer.is_stored_by_close
        if not is_stored_by_close:
            watch.unfinished(target, is_new=not is_empty)
    except Exception:
        raise
    except BaseException:  # an interrupt, which may come when it is made
        with suppress(ModularTFError):
            if is_new:
                fs.delete_file(target)
        watch.unfinished(None)
        raise
    if is_stored_by_close:
        fill(writer)
        return
    try:
        fill(writer)
    except BaseException:
        with suppress(ModularTFError):
            if not is_empty:
                fs.delete_file(target)
            elif fs.stat(target).length:  # a pipe has none, and opening it waits for a reader
                fs.new_writable_file(target).close()
        raise
    finally:
        watch.unfinished(None)


def _replace(
    fs: Filesystem, target: str, fill: Callable[[WritableFile], None], watch: CopyWatch
) -> bool:
    """Write a file beside the target and rename it; a failure leaves the target as it was.

    Return False, with nothing written, where the directory takes no new file, and where a file is
    stored when it is closed, which only an open one of a client knows.
    """
    # Not by `dirname`: the last part may be the first one too, as in ram://file.
    beside = "".join(target.rstrip("/").rpartition("/")[:2])
    unfinished = f"{beside}{UNFINISHED}{os.urandom(8).hex()}"
    watch.unfinished(unfinished)
    new_path, path = fs.disk_path(unfinished), fs.disk_path(target)
    if path is None or not os.path.isfile(path):
        new_path = None
    try:  # begins before the file exists: an interrupt may come between any two steps
        try:
            if new_path is not None:  # its mode stays; until then nobody else reads what arrives
                with translated_errors("new_writable_file", unfinished):
                    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
                    os.close(os.open(new_path, flags, 0o600))
            writer = fs.new_writable_file(unfinished)
        except PermissionError:
            return False
        if new_path is None and writer.is_stored_by_close:
            writer.give_up()
            return False
        fill(writer)
        if new_path is not None and path is not None:
            with suppress(FileNotFoundError):
                shutil.copymode(path, new_path)
        fs.rename_file(unfinished, target)
    except BaseException:
        with suppress(ModularTFError):
            fs.delete_file(unfinished)
        raise
    finally:
        watch.unfinished(None)
    return True


def _behind_link(fs: Filesystem, target: str) -> str | None:
    """Return the URI of the file that a link leads to, there or not; others stay as they are.

    None where no URI of the filesystem names that file.
    """
    path = fs.disk_path(target)
    if path is None or not os.path.islink(path):
        return target
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe
        return target
    real = os.path.realpath(path)
    behind = create_uri(fs.scheme, "", real)
    if fs.disk_path(behind) != real:  # the filesystem of a client may begin at a directory
        root = fs.disk_path(create_uri(fs.scheme, "", "/")) or ""
        behind = create_uri(fs.scheme, "", real.removeprefix(root.rstrip("/")))
    return behind if fs.disk_path(behind) == real else None


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
            offset = 0
            while block := left.read(offset, COPY_BLOCK):
                if block != right.read(offset, COPY_BLOCK):
                    return False
                offset += len(block)
            return not right.read(offset, 1)
    except ModularTFError:
        return False
