"""A filesystem as checks see it: the plugin's own slots, or this package on top of them.

Both are asked in the same way, so that one check tries both. Paths are URIs, in `str` with
surrogateescape; the raw subject has the plugin's `translate_name` translate them first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.check.answers import Answer


@dataclass(frozen=True, slots=True)
class Stat:
    """What `stat` said: length in bytes, time in nanoseconds since 1970, kind.

    Attributes:
        directory_byte: The byte of the flag as the plugin left it.
    """

    length: int
    mtime_ns: int
    is_directory: bool
    directory_byte: int = 0


class Reader(Protocol):
    """An open `TF_RandomAccessFile`."""

    def read(self, offset: int, n: int) -> Answer:
        """Value: the bytes that came, at most n. Returned (raw): the C function's count.

        A write behind the n bytes is a breach of FS-163, whichever check sees it.
        """

    def close(self) -> None:
        """`cleanup`; a second call does nothing."""


class Writer(Protocol):
    """An open `TF_WritableFile`."""

    def append(self, data: bytes) -> Answer:
        """Append all of these bytes."""

    def tell(self) -> Answer:
        """Value and returned: the position."""

    def flush(self) -> Answer:
        """Return the answer of `flush`."""

    def sync(self) -> Answer:
        """Return the answer of `sync`."""

    def close(self) -> Answer:
        """`close` alone; through the host also `cleanup`."""

    def cleanup(self) -> None:
        """`cleanup` alone; through the host `close` where it is open. Twice does nothing."""


class Region(Protocol):
    """An open `TF_ReadOnlyMemoryRegion`."""

    def address(self) -> int:
        """Return the address that `data` gives."""

    def length(self) -> int:
        """`length`, in bytes."""

    def content(self) -> bytes:
        """A copy of the bytes."""

    def close(self) -> None:
        """`cleanup`; a second call does nothing."""


class FilesystemSubject(Protocol):
    """One initialised filesystem; each method is one slot of `TF_FilesystemOps`.

    Every method raises `Unsupported` where the slot is NULL and nothing stands in for it, and
    `Blocked` where `translate_name` fails. [any thread]
    """

    def has(self, slot: str) -> bool:
        """Return whether the plugin itself has a slot, of any of the four tables.

        Names are those of the C header; where two tables have the name, `TABLE.slot` with the
        table's C name, such as `TF_WritableFileOps.cleanup`.
        """

    def offers(self, slot: str) -> bool:
        """Return whether the operation can be called here: the plugin has it, or a default."""

    def is_in_worker(self) -> bool:
        """Return whether the plugin runs in another process, with its own rights and memory."""

    def translate_name(self, uri: str) -> Answer:
        """Value: the name (`str`), None where the plugin returned NULL."""

    def new_random_access_file(self, uri: str) -> Answer:
        """Value: a `Reader`, where the code is OK or a handle was left."""

    def new_writable_file(self, uri: str) -> Answer:
        """Value: a `Writer`, likewise."""

    def new_appendable_file(self, uri: str) -> Answer:
        """Value: a `Writer`, likewise."""

    def new_read_only_memory_region_from_file(self, uri: str) -> Answer:
        """Value: a `Region`, likewise."""

    def create_dir(self, uri: str) -> Answer:
        """Return the answer of `create_dir`."""

    def recursively_create_dir(self, uri: str) -> Answer:
        """Return the answer of `recursively_create_dir`."""

    def delete_file(self, uri: str) -> Answer:
        """Return the answer of `delete_file`."""

    def delete_dir(self, uri: str) -> Answer:
        """Return the answer of `delete_dir`."""

    def delete_recursively(self, uri: str) -> Answer:
        """Value: (files, directories) left, as the plugin wrote them over 2^64-1 each.

        Through the host: (0, 0), or what the error says.
        """

    def rename_file(self, source: str, target: str) -> Answer:
        """Return the answer of `rename_file`."""

    def copy_file(self, source: str, target: str) -> Answer:
        """Return the answer of `copy_file`."""

    def path_exists(self, uri: str) -> Answer:
        """Code OK where it exists, NOT_FOUND where not; through the host likewise."""

    def paths_exist(self, uris: Sequence[str], *, with_statuses: bool = True) -> Answer:
        """Value: a code per path, None without statuses. Returned: whether all exist."""

    def stat(self, uri: str) -> Answer:
        """Value: a `Stat`, None where the plugin left the struct alone."""

    def is_directory(self, uri: str) -> Answer:
        """Value: the flag."""

    def get_file_size(self, uri: str) -> Answer:
        """Value and returned: the size in bytes."""

    def get_children(self, uri: str) -> Answer:
        """Value: the names in the plugin's order (None for a NULL entry). Returned: the count."""

    def get_matching_paths(self, pattern: str) -> Answer:
        """Value: the paths in the plugin's order. Returned: the count."""

    def flush_caches(self) -> Answer:
        """`flush_caches`; it has no status."""
