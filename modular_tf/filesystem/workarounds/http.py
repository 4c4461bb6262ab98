"""The HTTP filesystem of tensorflow-io, which reads only."""

from __future__ import annotations

import errno
import re
import resource
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import (
    ClosedError,
    InvalidArgumentError,
    ModularTFError,
    NotFoundError,
    ResourceExhaustedError,
)
from modular_tf.filesystem.files import FileStatistics, RandomAccessFile
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.readahead import ReadaheadFile
from modular_tf.filesystem.stat_cache import StatCache
from modular_tf.filesystem.store_files import region_of
from modular_tf.filesystem.uri import parse_uri
from modular_tf.filesystem.workarounds.endpoints import Server
from modular_tf.filesystem.workarounds.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from typing_extensions import Buffer

    from modular_tf.filesystem.files import ReadOnlyMemoryRegion

_FIRST_READ = 1 << 20
_BLOCK = 1 << 23
_GROWTH, _MAX_LENGTH = 4, 1 << 32  # of reads from a server that ignores ranges
_STATISTICS_FOR_S = 5.0
_FREE_DESCRIPTORS = 64  # that a call may lose
_DESCRIPTORS = Path("/proc/self/fd")


class Http(Store):
    """Files of web servers, http and https. [any thread]

    Every question about a file fetches all of it, and every request leaks three file descriptors:
    so statistics are kept for some seconds, reads are long, and calls are refused before none is
    left. The plugin opens missing files too. A server may ignore ranges; see `HttpFile`.
    """

    not_found_message = r"\b404\b|\(3\): "
    unknown_length_message = "Content-Length"

    is_directory = Filesystem.is_directory
    get_file_size = Filesystem.get_file_size

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.honours_ranges: dict[str, bool] = {}
        self._statistics = StatCache[FileStatistics](_STATISTICS_FOR_S)

    @classmethod
    def server(cls, uri: str, environment: Mapping[str, str]) -> Server | None:  # noqa: ARG003
        """Return the server in a URI; to the plugin, one that cannot be reached is INTERNAL."""
        found = re.search("(https?)://([^/?#]+)", uri)
        return Server(f"{found[1]}://{found[2]}") if found else None

    def require(self, operation: str, uri: str) -> None:
        """Reject a call for which too few descriptors are free, or whose server is dead."""
        if not self.is_in_worker:
            require_descriptors(_FREE_DESCRIPTORS, operation, uri, self.plugin)
        super().require(operation, uri)

    def path_exists(self, uri: str) -> bool:
        """Return whether a file exists, by `stat`, whose results are kept."""
        try:
            return self.stat(uri) is not None
        except NotFoundError:
            return False

    def stat(self, uri: str) -> FileStatistics:
        """Return the length of a file; the bytes are counted where the server does not report it.

        The plugin sees no other spelling of the header than "Content-Length".
        """
        version = self._statistics.version
        if (found := self._statistics.get(uri)) is not None:
            return found
        try:
            found = Store.stat(self, uri)
        except InvalidArgumentError as error:
            if self.unknown_length_message not in error.message:
                raise
            length = sum(map(len, self._blocks(uri)))
            found = FileStatistics(length, 0, is_directory=False)
        self._statistics.put(uri, found, version)
        return found

    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        """Open an existing file for reading, in blocks."""
        file = HttpFile(self, Store.new_random_access_file(self, uri))
        return file if file.known_length() is not None else _Blocks(file, None, _BLOCK, _BLOCK)

    def read_file(self, uri: str) -> bytes:
        """Return the bytes of a whole file, without its length."""
        return b"".join(self._blocks(uri))

    def _blocks(self, uri: str) -> Iterator[bytes]:
        with HttpFile(self, Store.new_random_access_file(self, uri)) as file:
            offset = 0
            while offset != file.known_length() and (block := file.read(offset, _BLOCK)):
                yield block
                offset += len(block)

    def new_read_only_memory_region_from_file(self, uri: str) -> ReadOnlyMemoryRegion:
        """Return a whole file as memory, which the host reads."""
        return region_of(uri, self.read_file(uri))

    def flush_caches(self) -> None:
        self._statistics.clear()
        super().flush_caches()


class _Blocks(ReadaheadFile):
    """Reads long blocks from any place on, since each request leaks descriptors."""

    holds_bytes = True


class _OverflowError(Exception):
    """A server sent more bytes than were requested."""


class HttpFile(RandomAccessFile):
    """Reads a file from a server that may ignore ranges. [any thread]; one read at a time

    The first bytes are read when the file is opened, which detects a missing file. Of a longer one,
    one byte is requested from inside, once per host: a server that sends the whole file instead
    makes the plugin fail, and its files are then read whole.
    """

    __slots__ = ("_end", "_file", "_held", "_lock", "_store")
    holds_bytes = True

    def __init__(self, store: Http, file: RandomAccessFile, first: int = _FIRST_READ) -> None:
        self.uri = file.uri
        self._store = store
        self._file = file
        self._lock = ForkLock()
        self._held: bytes | None = b""  # from the start of the file
        self._end: int | None = None  # of the file, once a read came to it
        try:
            self._held = self._read(0, first)
        except _OverflowError:
            self._hold_all(first)

    def known_length(self) -> int | None:
        return self._end

    def readinto(self, offset: int, buffer: Buffer) -> int:
        target = memoryview(buffer).cast("B")
        with self._lock:
            done = self._copy_held(offset, target)
            is_more = self._end is None or offset + done < self._end
            if done == len(target) or not is_more:
                return done
            if not self._is_range_honoured():
                self._hold_all(_FIRST_READ)
                return self._copy_held(offset, target)
            rest = target[done:]
            read = partial(self._file.readinto, offset + done, rest)
            count = self._store.checked_call("read", self.uri, read)
            self._note_end(offset + done, len(rest), count)
            return done + count

    def _copy_held(self, offset: int, target: memoryview) -> int:
        if self._held is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        piece = self._held[offset : offset + len(target)]
        target[: len(piece)] = piece
        return len(piece)

    def _read(self, offset: int, n: int) -> bytes:
        try:
            data = self._store.checked_call("read", self.uri, partial(self._file.read, offset, n))
        except ModularTFError as error:
            raise (_OverflowError() if "(23)" in error.message else error) from error
        self._note_end(offset, n, len(data))
        return data

    def _note_end(self, offset: int, n: int, count: int) -> None:
        if 0 < count < n or (count == 0 and offset == 0):
            self._end = offset + count

    def _is_range_honoured(self) -> bool:
        honours, host = self._store.honours_ranges, parse_uri(self.uri).host
        if host not in honours:
            try:
                honours[host] = len(self._read(1, 1)) == 1
            except _OverflowError:
                honours[host] = False
        return honours[host]

    def _hold_all(self, n: int) -> None:
        """Read and keep the whole file, which has more than `n` bytes, by reads that grow.

        The plugin would fetch all of it to report its length.
        """
        while (n := _GROWTH * n) <= _MAX_LENGTH:
            with suppress(_OverflowError):
                self._held = self._read(0, n)
                if len(self._held) < n:
                    self._end = len(self._held)
                    return
        endless = (
            f"the server does not honour ranges, and the file has more than {_MAX_LENGTH} bytes"
        )
        raise ResourceExhaustedError.of("read", self.uri, endless)

    def close(self) -> None:
        self._held = None
        self._file.close()


def require_descriptors(free: int, operation: str, uri: str, plugin: str) -> None:
    """Raise `ResourceExhaustedError` if fewer file descriptors are `free` in this process.

    The plugin has leaked too many then, or none is left.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        used = sum(1 for _ in _DESCRIPTORS.iterdir())
    except OSError as error:
        if error.errno not in {errno.EMFILE, errno.ENFILE}:  # the system does not list them
            return
        used = limit
    if limit in {-1, resource.RLIM_INFINITY} or used + free <= limit:
        return
    lost = f"{used} of {limit} file descriptors are open, and {plugin} loses some at every call"
    remedy = "raise the limit (ulimit -n) or do this in another process"
    raise ResourceExhaustedError.of(operation, uri, f"{lost}; {remedy}", plugin=plugin)
