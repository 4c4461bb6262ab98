"""`Filesystem`: every operation of `TF_FilesystemOps` as a method, with the host's defaults.

A filesystem of a C plugin, of a Python object and of fsspec are subclasses. An operation that a
subclass does not have is what a NULL slot is to TensorFlow: some have a default built from
others, the rest raise `UnimplementedError`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from modular_tf.errors import (
    FailedPreconditionError,
    ModularTFError,
    NotFoundError,
    UnimplementedError,
)
from modular_tf.filesystem import trees
from modular_tf.filesystem.copying import copy_through
from modular_tf.filesystem.files import COMPLETED, completing, read_rest
from modular_tf.filesystem.location import (
    TWO_PATH_OPERATIONS,
    Listing,
    Overlap,
    is_link,
    overlap,
    skip_same_file,
)
from modular_tf.filesystem.readahead import FIRST_BLOCK, FetchTimes, read_ahead
from modular_tf.filesystem.uri import clean_path, parse_uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from typing_extensions import Self

    from modular_tf.filesystem.configuration import Option, Transaction
    from modular_tf.filesystem.files import (
        DeletedCounts,
        FileStatistics,
        RandomAccessFile,
        ReadOnlyMemoryRegion,
        WritableFile,
    )
    from modular_tf.filesystem.streams import StreamWriter, TextWriter


class Filesystem:
    """One scheme's filesystem. [any thread]

    Paths are URIs of the scheme, `str` with surrogateescape for bytes that are not UTF-8. Every
    method may raise the `ModularTFError` that fits the status of the operation.

    Attributes:
        scheme: The URI scheme it serves; "" for plain local paths.
        plugin: Name of the plugin or package it comes from.
        is_object_store: Whether every file is stored when it is closed
            (`WritableFile.is_stored_by_close`; of a client each file decides), and opening a
            directory as a file is an error without another look.
        has_cheap_stat: Whether `stat` takes no more requests than the questions for less:
            `path_exists`, `is_directory`, `get_file_size`.
        fetch_times: What those who read ahead have found out about its reads.
    """

    is_object_store = False
    has_cheap_stat = False

    def __init__(self, scheme: str, plugin: str) -> None:
        self.scheme = scheme
        self.plugin = plugin
        self.fetch_times = FetchTimes()

    def __init_subclass__(cls, **options: Any) -> None:
        """Wrap operations: on two paths they skip a file that is its own target.

        Files that a user's class opens may be of any class.
        """
        super().__init_subclass__(**options)
        for name in TWO_PATH_OPERATIONS:
            if name in cls.__dict__:
                setattr(cls, name, skip_same_file(cls.__dict__[name]))
        if not cls.__module__.startswith("modular_tf."):
            for name in COMPLETED.keys() & cls.__dict__:
                setattr(cls, name, completing(name, cls.__dict__[name]))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.scheme!r} of {self.plugin}>"

    def _unimplemented(self, operation: str, path: str | None = None) -> UnimplementedError:
        where = f" {path!r}" if path is not None else ""
        text = f"{operation}{where}: {self.plugin} does not offer it for {self.scheme!r}"
        return UnimplementedError(text, plugin=self.plugin, path=path, operation=operation)

    # -- opening ------------------------------------------------------------------------------

    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        """Open an existing file for reading."""
        raise self._unimplemented("new_random_access_file", uri)

    def open_input(
        self, uri: str, first_block: int = FIRST_BLOCK, size: int | None = None
    ) -> RandomAccessFile:
        """Open an existing file for reading, read ahead where its bytes come by a network.

        Args:
            uri: The file.
            first_block: Bytes that are read ahead at first.
            size: Bytes that the file is known to have, past which nothing is read ahead; by default
                what the file knows when it was opened.
        """
        return read_ahead(self, self.new_random_access_file(uri), first_block, size)

    def read_first(self, uri: str, n: int) -> tuple[bytes, RandomAccessFile | None]:
        """Return up to `n` bytes from the start of a file, and the file, open as by `open_input`.

        None stands for a file that has no more bytes and is closed again.
        """
        file = self.open_input(uri)
        try:
            return file.read(0, n), file
        except BaseException:
            file.close()
            raise

    def new_writable_file(self, uri: str) -> WritableFile:
        """Create a file, or empty an existing one, for writing."""
        raise self._unimplemented("new_writable_file", uri)

    def new_appendable_file(self, uri: str) -> WritableFile:
        """Open a file, created where missing, for writing at its end."""
        raise self._unimplemented("new_appendable_file", uri)

    def new_read_only_memory_region_from_file(self, uri: str) -> ReadOnlyMemoryRegion:
        """Return a whole file as a memory region."""
        raise self._unimplemented("new_read_only_memory_region_from_file", uri)

    def read_file(self, uri: str) -> bytes:
        """Return the bytes of a whole file, by as few calls as the filesystem allows."""
        with self.new_random_access_file(uri) as file:
            return read_rest(file, 0, lambda: self.get_file_size(uri))

    def read_range(self, uri: str, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`, by as few calls as the filesystem allows.

        They are fewer only where the file ends.
        """
        with self.new_random_access_file(uri) as file:
            return file.read(offset, size)

    def open(
        self,
        uri: str,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """Open a file as Python's own `open` does, on top of the objects above.

        Args:
            uri: What to open.
            mode: `r`, `w`, `a` or `x`, with `b` or `t`. No filesystem plugin can read and write
                through one handle, so `+` is refused.
            buffering: -1 for a fitting buffer, 0 for none (binary only), else its size in bytes.
                With a buffer, a file of a network is also read ahead.
            encoding: As for `open`.
            errors: As for `open`.
            newline: As for `open`.

        A file that is written is complete when `close` has returned, where a store's plugin may
        upload it. An interrupt (Ctrl-C) ends that wait in the main thread at once, while the
        upload goes on in another one: a second `close` waits for it and raises its error, and so do
        the filesystem's `close` and the end of the process. The store's file is whole or as it was.

        Raises:
            ValueError: The mode does not make sense.
        """
        from modular_tf.filesystem.streams import open_stream  # noqa: PLC0415  (imports io)

        return open_stream(self, uri, mode, buffering, encoding, errors, newline)

    def remember_writer(self, stream: StreamWriter | TextWriter) -> None:
        """Record a buffered stream, which `close` may have to write out."""

    # -- directories and files ----------------------------------------------------------------

    def create_dir(self, uri: str) -> None:
        """Create one directory; its parent must exist."""
        raise self._unimplemented("create_dir", uri)

    def recursively_create_dir(self, uri: str) -> None:
        """Create a directory and whatever parents are missing; fine where it exists."""
        trees.create_dirs(self, uri)

    def delete_file(self, uri: str) -> None:
        """Delete one file."""
        raise self._unimplemented("delete_file", uri)

    def delete_dir(self, uri: str) -> None:
        """Delete one empty directory."""
        raise self._unimplemented("delete_dir", uri)

    def delete_recursively(self, uri: str) -> DeletedCounts:
        """Delete a directory with all that is in it; return how much could not be deleted."""
        return trees.remove_entries(self, uri)

    @skip_same_file
    def rename_file(self, source: str, target: str) -> None:
        """Move a file, replacing an existing target file; under its own name it stays.

        The default refuses a directory as target (`FailedPreconditionError`).
        """
        text = None
        with suppress(ModularTFError):
            if self.is_directory(target):
                text = f"the target {target!r} is a directory; name the file within it"
        if is_link(self, target) and overlap((self, source), (self, target)) is Overlap.SAME:
            text = f"{target!r} is a link to it; remove the link first"
        if text is not None:
            raise FailedPreconditionError.of("rename_file", source, text, plugin=self.plugin)
        self.copy_file(source, target)  # not atomic: a failure after it leaves both
        self.delete_file(source)

    @skip_same_file
    def copy_file(self, source: str, target: str) -> None:
        """Copy a file; an existing target file is replaced, a target directory copied into.

        Where the filesystem renames files itself, a failure leaves an existing target as it was.
        A file that is copied onto itself, by whatever name or link, stays as it is.
        """
        copy_through(self, source, self, target)

    def does_itself(self, operation: str) -> bool:
        """Return whether it has an operation itself, rather than a default made of others."""
        own = getattr(type(self), operation) is not getattr(Filesystem, operation)
        return own or operation in vars(self)

    # -- questions ----------------------------------------------------------------------------

    def path_exists(self, uri: str) -> bool:
        """Return whether a file or directory exists; only NOT_FOUND means no, other errors rise."""
        raise self._unimplemented("path_exists", uri)

    def paths_exist(self, uris: Sequence[str]) -> list[bool]:
        """Return `path_exists` of each URI, in order."""
        return [self.path_exists(uri) for uri in uris]

    def stat(self, uri: str) -> FileStatistics:
        """Return length, modification time and kind."""
        raise self._unimplemented("stat", uri)

    def is_directory(self, uri: str) -> bool:
        """Return whether it is a directory; False for a file, `NotFoundError` for nothing."""
        return self.stat(uri).is_directory

    def was_file_just_now(self, uri: str) -> bool:
        """Return whether a path is known to have been a file within the last second."""
        return False

    def open_to_copy(self, uri: str) -> RandomAccessFile:
        """Open a file for `copying`, which looks it up again where it was found earlier."""
        return self.new_random_access_file(uri)

    def get_file_size(self, uri: str) -> int:
        """Return a file's length in bytes; a directory has none (`FailedPreconditionError`)."""
        statistics = self.stat(uri)
        if statistics.is_directory:
            text = "it is a directory"
            raise FailedPreconditionError.of("get_file_size", uri, text, plugin=self.plugin)
        return statistics.length

    def get_children(self, uri: str) -> list[str]:
        """Return the names in a directory, sorted, without `/`.

        A store may list keys there that no path leads to, which are left out with an
        `IncompleteListingWarning`. Keys with a doubled slash are seen by a few stores only.
        """
        raise self._unimplemented("get_children", uri)

    def get_children_statistics(self, uri: str) -> dict[str, FileStatistics]:
        """Return the names in a directory as `get_children` does, each with what `stat` returns.

        A filesystem offers this only if one listing has both, without a request for each name;
        others raise `UnimplementedError`. No plugin offers it: the C interface has no such slot.
        """
        raise self._unimplemented("get_children_statistics", uri)

    def listing(
        self, uri: str, *, is_thorough: bool = True, with_statistics: bool = False
    ) -> Listing:
        """Return the names in a directory, and what else is there that no path leads to.

        What copies, moves or removes a tree uses this, and reports what it leaves out. The name of
        the directory may be that of a file too.

        Args:
            uri: The directory.
            is_thorough: Make a request for what a listing of the store does not show.
            with_statistics: Include statistics as far as they come with the names
                (`get_children_statistics`). A filesystem whose listings always have them may give
                them always.
        """
        if with_statistics:
            with suppress(UnimplementedError):
                found = self.get_children_statistics(uri)
                return Listing(sorted(found), statistics=found)
        return Listing(self.get_children(uri))

    def is_file_and_directory(self, uri: str) -> bool:
        """Return whether a name is that of a file and of a directory, as stores allow it."""
        return False

    def get_matching_paths(self, pattern: str) -> list[str]:
        r"""Return the URIs that match a glob pattern, sorted.

        `*` and `?` stay within one level, `[...]` is a set, `\` escapes; there is no `**`.
        """
        from modular_tf.filesystem.glob import matching_paths  # noqa: PLC0415  (rarely used)

        return matching_paths(self, pattern)

    def translate_name(self, uri: str) -> str:
        """Return the name by which the plugin knows the URI."""
        scheme, _, path = parse_uri(uri)
        if not path:
            return "/" if scheme else ""
        return clean_path(path)

    def name_in_store(self, uri: str) -> str:
        """Return what all spellings of a name have in common, such as `a//b` and `a/./b`.

        It is the translated name. A subclass that does not translate names is given the URIs as
        they are, so their hosts are part of the name: they may be buckets.
        """
        name = self.translate_name(uri)
        if getattr(self.translate_name, "__func__", None) is not _DEFAULT_TRANSLATION:
            return name
        return f"//{parse_uri(uri).host}{name}"

    def is_same_name(self, one: str, other: str) -> bool:
        """Return whether two URIs are spellings of one name."""
        return one == other or self.name_in_store(one) == self.name_in_store(other)

    def disk_path(self, uri: str) -> str | None:
        """Return the path on this machine's disk that a URI names; None where it names none."""
        return self.translate_name(uri) if self.scheme in _OF_THE_DISK else None

    @property
    def store(self) -> object:
        """What keeps the files: one object for all schemes of one store, where that is known."""
        return self

    def shares_store_with(self, other: Filesystem) -> bool:
        """Return whether this filesystem may work on the files of `other` by their URIs.

        Two schemes of one plugin may be two names for one store, as plain paths and `file://` are.
        """
        return other is self

    def is_missing_bucket(self, error: NotFoundError) -> bool:
        """Return whether an error means that the whole bucket or container is not there.

        Nothing can be written there, so that is another thing than a directory without files.
        """
        return False

    # -- caches, transactions, configuration --------------------------------------------------

    def flush_caches(self) -> None:
        """Clear the filesystem's caches, if it has any."""

    def start_transaction(self) -> Transaction:
        """Start a transaction (experimental: no known plugin has them)."""
        raise self._unimplemented("start_transaction")

    def end_transaction(self, transaction: Transaction) -> None:
        """End a transaction; its token is of no use afterwards."""
        raise self._unimplemented("end_transaction")

    def add_to_transaction(self, uri: str, transaction: Transaction) -> None:
        """Add a path to a transaction."""
        raise self._unimplemented("add_to_transaction", uri)

    def get_transaction_for_path(self, uri: str) -> Transaction:
        """Return the transaction that a path is part of."""
        raise self._unimplemented("get_transaction_for_path", uri)

    def get_or_start_transaction_for_path(self, uri: str) -> Transaction:
        """Return the transaction that a path is part of, a new one where there is none."""
        raise self._unimplemented("get_or_start_transaction_for_path", uri)

    def decode_transaction_token(self, transaction: Transaction) -> str:
        """Return a description of a transaction; by default its token and its owner."""
        return f"token {transaction.token!r}, owner {transaction.filesystem!r}"

    def get_filesystem_configuration(self) -> list[Option]:
        """Return the options that can be set; none by default (header's default)."""
        return []

    def set_filesystem_configuration(self, options: Iterable[Option]) -> None:
        """Set the given options; `NotFoundError` where none can be set, as by default."""
        raise self._no_options("set_filesystem_configuration", options)

    def get_filesystem_configuration_option(self, key: str) -> Option:
        """Return the option with a key."""
        for option in self.get_filesystem_configuration():
            if option.name == key:
                return option
        operation = "get_filesystem_configuration_option"
        text = f"{operation}: {self.plugin} has no option {key!r}"
        raise NotFoundError(text, plugin=self.plugin, operation=operation)

    def set_filesystem_configuration_option(self, option: Option) -> None:
        """Set the given option; `NotFoundError` where none can be set, as by default."""
        raise self._no_options("set_filesystem_configuration_option", [option])

    def _no_options(self, operation: str, options: Iterable[Option]) -> NotFoundError:
        asked = ", ".join(repr(option.name) for option in options) or "none"
        text = f"{self.plugin} has no options that can be set for {self.scheme!r}"
        full = f"{operation}: {text} (asked for: {asked})"
        return NotFoundError(full, plugin=self.plugin, operation=operation)

    def get_filesystem_configuration_keys(self) -> list[str]:
        """Return the names of the options.

        The C slot of this name cannot return an array (its type is wrong in the header), so the
        names are taken from `get_filesystem_configuration`.
        """
        return [option.name for option in self.get_filesystem_configuration()]

    # -- life ---------------------------------------------------------------------------------

    def close(self, *, at_exit: bool = False) -> None:
        """Close open files and release the filesystem; a second call does nothing.

        Args:
            at_exit: The process ends: do not wait for memory regions that are still viewed.
        """

    def after_fork_in_child(self) -> None:
        """Make the filesystem usable in a forked child."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_DEFAULT_TRANSLATION = Filesystem.translate_name
_OF_THE_DISK = ("", "file")
