"""The Azure filesystem of tensorflow-io."""

from __future__ import annotations

import os
import re
import resource
from contextlib import suppress
from fcntl import F_GETFL, fcntl
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import AbortedError, ModularTFError, NotFoundError
from modular_tf.filesystem.files import DIRECTORY, RandomAccessFile
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.plugin_filesystem import fresh_bytes
from modular_tf.filesystem.store_files import PiecewiseReader
from modular_tf.filesystem.workarounds.endpoints import Server, named_server
from modular_tf.filesystem.workarounds.object_store import ObjectStore, StoreWriter
from modular_tf.filesystem.workarounds.store import Store
from modular_tf.native.ffi import lib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from typing_extensions import Buffer

    from modular_tf.filesystem.files import FileStatistics, WritableFile

_YEAR_ONE_NSEC = 62_135_596_800 * 10**9  # from the start of the year 1 to that of 1970
_DESCRIPTORS = Path("/proc/self/fd")
_MAX_DESCRIPTORS = 1 << 16


class AzureWriter(StoreWriter):
    """The plugin deletes each temporary file, and leaves its first descriptor open: closed here."""

    __slots__ = ()

    def close(self) -> None:
        try:
            super().close()
        except ModularTFError:
            self._close_leaked()
            raise
        self._close_leaked()  # not after an interrupt: the plugin may still be at work

    def discard(self) -> None:
        try:
            super().discard()
        finally:
            self._close_leaked()

    def _close_leaked(self) -> None:
        if not self._filesystem.is_in_worker:
            close_leaked(r"/.*/az_blob_filesystem_\w{6}")


class Azure(ObjectStore):
    """Azure Blob Storage: az://account/container/path. [any thread]

    To the plugin every missing path is a directory; only a listing shows which exist. `copy_file`
    never ends, opening for append empties the file, and the cleanup of a writer stores what was
    written: so all that is written is held until it is closed. Refusals stall for ten seconds to a
    minute, which the look-ups of `ObjectStore` avoid.
    """

    writer_type = AzureWriter
    root_depth = 1
    length_by_size = True  # `stat` is four requests
    has_cheap_stat = False
    not_found_message = r"\b404\b"
    denied_message = r"\b403 "
    credential_variables = ("TF_AZURE_STORAGE_KEY", "TF_AZURE_STORAGE_SAS")
    other_credentials = "nothing is signed"
    variables = (
        "TF_AZURE_STORAGE_BLOB_ENDPOINT",
        "TF_AZURE_USE_DEV_STORAGE",
        *credential_variables,
    )
    remedies: ClassVar[Mapping[str, str]] = {
        r"\b403 ": (
            "the key is not that of the account: correct TF_AZURE_STORAGE_KEY, or the variable with"
            " the shared access signature"
        )
    }

    @classmethod
    def server(cls, uri: str, environment: Mapping[str, str]) -> Server | None:  # noqa: ARG003
        """Return the server that a variable names.

        With a dead endpoint every call retries for half a minute, and throws a C++ exception.
        """
        if named := named_server(environment, "TF_AZURE_STORAGE_BLOB_ENDPOINT"):
            return named
        if "TF_AZURE_USE_DEV_STORAGE" in environment:
            return Server("http://127.0.0.1:10000", "TF_AZURE_USE_DEV_STORAGE")
        return None

    def _find(self, uri: str, operation: str, *, is_root: bool) -> FileStatistics | None:  # noqa: ARG002
        if not is_root:
            with suppress(NotFoundError):
                found = Store.stat(self, uri)
                if not found.is_directory:
                    # It counts from the year 1, and overflows.
                    mtime = (found.mtime_nsec - _YEAR_ONE_NSEC) % 2**64 if found.mtime_nsec else 0
                    return found._replace(mtime_nsec=mtime)
        return self._find_directory(uri, is_root=is_root)

    def _find_kind(self, uri: str, operation: str, *, is_root: bool) -> FileStatistics | None:  # noqa: ARG002
        if not is_root:
            with suppress(NotFoundError):
                if Store.path_exists(self, uri):
                    return DIRECTORY._replace(is_directory=False)
        return self._find_directory(uri, is_root=is_root)

    def _find_directory(self, uri: str, *, is_root: bool) -> FileStatistics | None:
        with suppress(NotFoundError):
            if self.listed_names(uri) or is_root:
                return DIRECTORY
        return None

    def _copy(self, source: str, target: str, length: int) -> None:
        if not length:
            super()._copy(source, target, length)
        elif source != target:
            Filesystem.copy_file(self, source, target)

    def _open(self, uri: str, length: int | None = None, tail: bytes = b"") -> PiecewiseReader:
        file = Store.new_random_access_file(self, uri)
        counted = CountedReader(file, lambda: self.get_file_size(uri))
        return PiecewiseReader(counted, self.most_read, length=length, tail=tail)

    def new_writable_file(self, uri: str) -> WritableFile:
        """Create a file, or empty an existing one, when it is closed."""
        uri = self._writable(uri)
        self.require("new_writable_file", uri)
        return self._held_writer(uri)

    def after_fork_in_child(self, *, reinitialise: bool = False) -> None:
        """Leave the parent's files; the child will exit without the plugin's destructors.

        One of those waits for a thread that stayed in the parent.
        """
        if not self.is_in_worker:
            lib.mtf_exit_without_inherited_destructors()
        super().after_fork_in_child(reinitialise=reinitialise)


class CountedReader(RandomAccessFile):
    """Finds out where a read returned more bytes than came, or the beginning of a longer file.

    The plugin asks for the length, then for the bytes, and returns the number that the length
    promised. So the last byte of the memory is set before the read. If it has that value
    afterwards, or the read ends at the end of the file, `length` is called for the present length;
    if the read does not fit it, that is an `AbortedError`. [any thread]
    """

    __slots__ = ("_file", "_length")

    def __init__(self, file: RandomAccessFile, length: Callable[[], int]) -> None:
        self.uri = file.uri
        self._file = file
        self._length = length

    def read(self, offset: int, n: int) -> bytes:
        try:
            data, target = fresh_bytes(max(n, 2))
        except (MemoryError, OverflowError):
            return self._file.read(offset, n)  # which raises an error that says so
        if n <= 0:
            return self._file.read(offset, n)
        count = self.readinto(offset, target[:n])
        return data if count == len(data) else data[:count]

    def readinto(self, offset: int, buffer: Buffer) -> int:
        target = memoryview(buffer).cast("B")
        untouched = os.urandom(1)
        target[-1:] = untouched[: len(target)]
        count = self._file.readinto(offset, target)
        is_end = 0 < count < len(target)
        if is_end or (count and target[-1:] == untouched):
            end, length = offset + count, self._length()
            if length < end or (is_end and length != end):
                raise AbortedError.of("read", self.uri, "it changed while it was read; try again")
        return count

    def close(self) -> None:
        self._file.close()


# A descriptor that one thread closes between another's check and close may be reused.
_closing_leaked = ForkLock()


def close_leaked(files: str) -> None:
    """Close the descriptors of deleted temporary files that are open now. [any thread]

    `files` is a regular expression for their whole paths. Only a descriptor that is open for
    reading and writing counts, as `mkstemp` opens it.
    """
    deleted = re.compile(rf"(?:{files}) \(deleted\)")
    with _closing_leaked:
        for descriptor in _may_be_open():
            # The descriptor of the listing itself, or one that another thread has closed.
            with suppress(OSError):
                is_deleted = deleted.fullmatch(os.readlink(_DESCRIPTORS / str(descriptor)))
                if is_deleted and fcntl(descriptor, F_GETFL) & os.O_ACCMODE == os.O_RDWR:
                    os.close(descriptor)


def _may_be_open() -> Iterable[int]:
    try:
        return [int(entry.name) for entry in _DESCRIPTORS.iterdir()]
    except OSError:  # as where none is left to list them with
        return range(min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], _MAX_DESCRIPTORS))
