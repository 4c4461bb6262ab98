"""A filesystem as checks call it: one row for each slot, and one method for each operation.

`slots.RawFilesystem` calls the plugin's own slots, `hosted.HostFilesystem` this package on top of
them, in the same way, so that one check tries both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from modular_tf.abi.layouts import (
    FILESYSTEM_OPS,
    RANDOM_ACCESS_FILE_OPS,
    READ_ONLY_MEMORY_REGION_OPS,
    WRITABLE_FILE_OPS,
)
from modular_tf.check.calls import shown
from modular_tf.check.native.raw_filesystem import copy_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from modular_tf.check.answers import Answer
    from modular_tf.filesystem.configuration import Option
    from modular_tf.loading.filesystem_tables import FilesystemTables

FILESYSTEM = FILESYSTEM_OPS.name
_READER, _WRITER = RANDOM_ACCESS_FILE_OPS.name, WRITABLE_FILE_OPS.name
_REGION = READ_ONLY_MEMORY_REGION_OPS.name


class Op(NamedTuple):
    """One slot.

    Attributes:
        takes: A word for each argument after the struct: `path` is a URI that `translate_name`
            translates, `uri`, `pattern` and `key` are texts as they are, `&` is in front of what
            the plugin fills.
        returns: The C type.
        effect: `makes`, `removes`, `moves` or `sets` something in the store; "" asks.
        default: What the host's default asks for where the slot is NULL, which may have a default
            in turn (`modular_tf.filesystem.filesystem`); None where there is no default.
    """

    takes: str = ""
    returns: str = "void"
    effect: str = ""
    default: tuple[str, ...] | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """What a caller gives, and what the plugin fills."""
        return tuple(word for word in self.takes.split() if word != "status")

    @property
    def inputs(self) -> tuple[str, ...]:
        """What a caller gives."""
        return tuple(word for word in self.words if not word.startswith("&"))

    @property
    def type(self) -> str:
        """The C type of the slot's function."""
        words = ", ".join(_C_TYPES.get(word, "void *") for word in self.takes.split())
        return f"{self.returns}(*)(void *{', ' if words else ''}{words})"


_C_TYPES = {
    **dict.fromkeys(("path", "uri", "pattern", "key"), "char const *"),
    "bytes": "char const *, size_t",
    "options": "void *, int",
    "paths": "void *, int",
    "offset": "uint64_t",
    "n": "size_t",
}

_DELETE_ALL = ("path_exists", "is_directory", "get_children", "delete_file", "delete_dir")
_COPY = ("new_random_access_file", "read", "new_writable_file", "append", "is_directory")

OPERATIONS: Mapping[str, Op] = {
    "init": Op("status"),
    "cleanup": Op(),
    "new_random_access_file": Op("path &file status"),
    "new_writable_file": Op("path &writer status", effect="makes"),
    "new_appendable_file": Op("path &writer status", effect="makes"),
    "new_read_only_memory_region_from_file": Op("path &region status"),
    "create_dir": Op("path status", effect="makes"),
    "recursively_create_dir": Op(
        "path status", effect="makes", default=("path_exists", "is_directory", "create_dir")
    ),
    "delete_file": Op("path status", effect="removes"),
    "delete_dir": Op("path status", effect="removes"),
    "delete_recursively": Op(
        "path &files &directories status", effect="removes", default=_DELETE_ALL
    ),
    "rename_file": Op("path path status", effect="moves", default=("copy_file", "delete_file")),
    "copy_file": Op("path path status", effect="moves", default=_COPY),
    "path_exists": Op("path status"),
    "paths_exist": Op("paths statuses", "uint8_t", default=("path_exists",)),
    "stat": Op("path &stat status"),
    "is_directory": Op("path status", "uint8_t", default=("stat",)),
    "get_file_size": Op("path status", "int64_t", default=("stat",)),
    "translate_name": Op("uri", "char *", default=()),
    "get_children": Op("path &names status", "int"),
    "get_matching_paths": Op(
        "pattern &names status", "int", default=("path_exists", "get_children", "is_directory")
    ),
    "flush_caches": Op(default=()),
    "start_transaction": Op("&token status", "int", effect="sets"),
    "end_transaction": Op("token status", "int"),
    "add_to_transaction": Op("path token status", "int"),
    "get_transaction_for_path": Op("path &token status", "int"),
    "get_or_start_transaction_for_path": Op("path &token status", "int"),
    "decode_transaction_token": Op("token", "char *"),
    "get_filesystem_configuration": Op("&options &num_options status", default=()),
    "set_filesystem_configuration": Op("options status", effect="sets"),
    "get_filesystem_configuration_option": Op("key &option status", default=()),
    "set_filesystem_configuration_option": Op("option status", effect="sets"),
}
"""The slots of `TF_FilesystemOps` in its order. `get_filesystem_configuration_keys` is not among
them: what it takes is ambiguous, so no host calls it. Booleans are bytes: a plugin's may be neither
0 nor 1."""

TABLES: Mapping[str, Mapping[str, Op]] = {
    FILESYSTEM: OPERATIONS,
    _READER: {"cleanup": Op(), "read": Op("offset n &buffer status", "int64_t")},
    _WRITER: {
        "cleanup": Op(),
        "append": Op("bytes status"),
        "tell": Op("status", "int64_t"),
        "flush": Op("status", default=()),
        "sync": Op("status", default=()),
        "close": Op("status"),
    },
    _REGION: {"cleanup": Op(), "data": Op(returns="void *"), "length": Op(returns="uint64_t")},
}
"""The slots of each table, by its C name."""

_OF_ONE_PATH = {name: op for name, op in OPERATIONS.items() if op.inputs == ("path",)}
QUESTIONS = tuple(
    name for name, op in _OF_ONE_PATH.items() if not op.effect and "&token" not in op.words
)
"""The operations that ask about one path, and open what is there."""

REMOVALS = tuple(name for name, op in _OF_ONE_PATH.items() if op.effect == "removes")
MOVES = tuple(name for name, op in OPERATIONS.items() if op.effect == "moves")
CHANGES = frozenset(name for name, op in OPERATIONS.items() if op.effect)
"""The operations that change something in the store."""


def has_slot(tables: FilesystemTables, name: str) -> bool:
    """Return whether a plugin has a slot: `SLOT`, or `TABLE.SLOT` where several tables have it."""
    table, dot, slot = name.rpartition(".")
    if dot:
        return table in tables.tables and tables.tables[table].has(slot)
    return any(one.has(slot) for one in tables.tables.values())


def host_offers(has: Callable[[str], bool], slot: str) -> bool:
    """Return whether an operation works through the host: by the slot, or by a default.

    Args:
        has: Returns whether the plugin has a slot.
        slot: The operation.
    """
    rows = (table[slot] for table in TABLES.values() if slot in table)
    default = next((op.default for op in rows if op.default is not None), None)
    return has(slot) or (
        default is not None and all(host_offers(has, helper) for helper in default)
    )


def shown_arguments(op: Op, arguments: Sequence[Any], **outputs: str) -> str:
    """Return what a call is given as reports show it.

    Args:
        op: The slot.
        arguments: What the caller gives.
        **outputs: What is shown for outputs, by their words, instead of these.
    """
    values = iter(arguments)
    return ", ".join(
        f"&{outputs.get(word[1:], word[1:])}" if word[0] == "&" else _shown(word, next(values))
        for word in op.words
    )


def _shown(word: str, value: Any) -> str:
    match word:
        case "offset" | "n":
            return f"{word}={value}"
        case "token":
            return f"token {value:#x}" if isinstance(value, int) else "token"
        case "options":
            return shown([option.name for option in value])
        case "option":
            return shown(value.name)
        case "paths":
            return f"[{len(value)} paths], {len(value)}"
        case "statuses":
            return "statuses" if value else "NULL"
    return shown(value)


@dataclass(frozen=True, slots=True)
class Stat:
    """What `stat` gave: length in bytes, time in nanoseconds since 1970, kind.

    Attributes:
        directory_byte: The byte of the flag as the plugin left it.
    """

    length: int
    mtime_ns: int
    is_directory: bool
    directory_byte: int = 0


class OpenFile:
    """A file or region that a plugin has opened, until its `cleanup`. [any thread]

    Attributes:
        opened: The struct that the plugin filled, or the host's object.
        name: What reports call it, such as `file1`.
        is_open: Whether `cleanup` has not been called yet.
    """

    table: ClassVar[str]

    def __init__(self, caller: FileCaller, opened: Any, name: str) -> None:
        self.opened = opened
        self.name = name
        self.is_open = True
        self._caller = caller

    def call(self, slot: str, *arguments: Any) -> Answer:
        """Call a slot of its table."""
        return self._caller.call_file(self, slot, *arguments)

    @property
    def handle(self) -> int:
        """The plugin's pointer in the struct, where it was opened by its slot."""
        return int(self.opened.word())

    def cleanup(self) -> None:
        """Call `cleanup`; a second call does nothing. The host closes first what is open."""
        if self.is_open:
            self.is_open = False
            self.call("cleanup")


class FileCaller(ABC):
    """Calls the slots of open files."""

    @abstractmethod
    def call_file(self, file: OpenFile, slot: str, *arguments: Any) -> Answer:
        """Call a slot of a file's table."""


class Reader(OpenFile):
    """An open `TF_RandomAccessFile`."""

    table = _READER

    def read(self, offset: int, n: int) -> Answer:
        """Value: the bytes that came, at most n. Returned (raw): the C function's count.

        A write past the n bytes is a breach of FS-163, whichever check sees it.
        """
        return self.call("read", offset, n)

    def close(self) -> None:
        """Call `cleanup`; a second call does nothing."""
        self.cleanup()


class Writer(OpenFile):
    """An open `TF_WritableFile`."""

    table = _WRITER

    def append(self, data: bytes) -> Answer:
        """Append all of these bytes; the memory that the plugin sees is overwritten afterwards."""
        return self.call("append", data)

    def tell(self) -> Answer:
        """Value and returned: the position."""
        return self.call("tell")

    def flush(self) -> Answer:
        """Call `flush`."""
        return self.call("flush")

    def sync(self) -> Answer:
        """Call `sync`."""
        return self.call("sync")

    def close(self) -> Answer:
        """Call `close` alone; the host cleans up too."""
        return self.call("close")


class Region(OpenFile):
    """An open `TF_ReadOnlyMemoryRegion`."""

    table = _REGION

    def address(self) -> int:
        """Return the address that `data` gives."""
        return int(self.call("data").value)

    def length(self) -> int:
        """Return the bytes that `length` gives."""
        return int(self.call("length").value)

    def content(self) -> bytes:
        """Return a copy of the bytes."""
        length = self.length()
        return copy_memory(self.address(), length) if length else b""

    def close(self) -> None:
        """Call `cleanup`; a second call does nothing."""
        self.cleanup()


OPENED: Mapping[str, type[OpenFile]] = {"&file": Reader, "&writer": Writer, "&region": Region}
"""What an operation opens, by the word of its output."""


class Operations(ABC):
    """A filesystem whose operations can be called, each by a method of the slot's name.

    Paths are URIs, in `str` with surrogateescape. Each method raises `Unsupported` where the slot
    is NULL and nothing stands in for it, and `Blocked` where `translate_name` fails. [any thread]
    """

    @abstractmethod
    def call(self, slot: str, *arguments: Any) -> Answer:
        """Call one of `OPERATIONS` with the inputs of its row."""

    @abstractmethod
    def has(self, slot: str) -> bool:
        """Return whether the plugin itself has a slot, of any of the four tables.

        Names are those of the C header; where two tables have the name, `TABLE.slot` with the
        table's C name, such as `TF_WritableFileOps.cleanup`.
        """

    @abstractmethod
    def offers(self, slot: str) -> bool:
        """Return whether the operation can be called here: the plugin has it, or a default."""

    @abstractmethod
    def is_in_worker(self) -> bool:
        """Return whether the plugin runs in another process, with its own rights and memory."""

    def translate_name(self, uri: str) -> Answer:
        """Value: the name (`str`), None where the plugin returned NULL."""
        return self.call("translate_name", uri)

    def new_random_access_file(self, uri: str) -> Answer:
        """Value: a `Reader`, where the code is OK or a handle was left."""
        return self.call("new_random_access_file", uri)

    def new_writable_file(self, uri: str) -> Answer:
        """Value: a `Writer`, likewise."""
        return self.call("new_writable_file", uri)

    def new_appendable_file(self, uri: str) -> Answer:
        """Value: a `Writer`, likewise."""
        return self.call("new_appendable_file", uri)

    def new_read_only_memory_region_from_file(self, uri: str) -> Answer:
        """Value: a `Region`, likewise."""
        return self.call("new_read_only_memory_region_from_file", uri)

    def create_dir(self, uri: str) -> Answer:
        """Make one directory."""
        return self.call("create_dir", uri)

    def recursively_create_dir(self, uri: str) -> Answer:
        """Make a directory and its parents."""
        return self.call("recursively_create_dir", uri)

    def delete_file(self, uri: str) -> Answer:
        """Delete one file."""
        return self.call("delete_file", uri)

    def delete_dir(self, uri: str) -> Answer:
        """Delete one empty directory."""
        return self.call("delete_dir", uri)

    def delete_recursively(self, uri: str) -> Answer:
        """Value: (files, directories) left, as the plugin wrote them over 2^64-1 each.

        Through the host: (0, 0), or what the error says.
        """
        return self.call("delete_recursively", uri)

    def rename_file(self, source: str, target: str) -> Answer:
        """Move a file."""
        return self.call("rename_file", source, target)

    def copy_file(self, source: str, target: str) -> Answer:
        """Copy a file."""
        return self.call("copy_file", source, target)

    def path_exists(self, uri: str) -> Answer:
        """Code OK where it exists, NOT_FOUND where not."""
        return self.call("path_exists", uri)

    def paths_exist(self, uris: Sequence[str], *, with_statuses: bool = True) -> Answer:
        """Value: a code per path, None without statuses. Returned: whether all exist."""
        return self.call("paths_exist", uris, with_statuses)

    def stat(self, uri: str) -> Answer:
        """Value: a `Stat`, None where the plugin left the struct alone."""
        return self.call("stat", uri)

    def is_directory(self, uri: str) -> Answer:
        """Value: the flag; the byte where it is neither 0 nor 1."""
        return self.call("is_directory", uri)

    def get_file_size(self, uri: str) -> Answer:
        """Value and returned: the size in bytes."""
        return self.call("get_file_size", uri)

    def get_children(self, uri: str) -> Answer:
        """Value: the names in the plugin's order (None for a NULL entry). Returned: the count."""
        return self.call("get_children", uri)

    def get_matching_paths(self, pattern: str) -> Answer:
        """Value: the paths in the plugin's order. Returned: the count."""
        return self.call("get_matching_paths", pattern)

    def flush_caches(self) -> Answer:
        """The answer is OK: the slot has no status."""
        return self.call("flush_caches")

    # A token is the address of a plugin's `TF_TransactionToken`, or the host's `Transaction`.

    def start_transaction(self) -> Answer:
        """Value: the token, 0 where none was left. Returned: the int, -1 for a failure."""
        return self.call("start_transaction")

    def end_transaction(self, token: Any) -> Answer:
        """Returned: likewise."""
        return self.call("end_transaction", token)

    def add_to_transaction(self, uri: str, token: Any) -> Answer:
        """Returned: likewise."""
        return self.call("add_to_transaction", uri, token)

    def get_transaction_for_path(self, uri: str) -> Answer:
        """Value and returned: as of `start_transaction`."""
        return self.call("get_transaction_for_path", uri)

    def get_or_start_transaction_for_path(self, uri: str) -> Answer:
        """Value and returned: as of `start_transaction`."""
        return self.call("get_or_start_transaction_for_path", uri)

    def decode_transaction_token(self, token: Any) -> str | None:
        """Return the description, None for NULL."""
        text: str | None = self.call("decode_transaction_token", token).value
        return text

    def get_filesystem_configuration(self) -> Answer:
        """Value: a list of `Option`. Returned (raw): the count that was written.

        Raises:
            Deviation: An option is malformed.
        """
        return self.call("get_filesystem_configuration")

    def set_filesystem_configuration(self, options: Sequence[Option]) -> Answer:
        """Set options; the memory that the plugin sees is overwritten afterwards."""
        return self.call("set_filesystem_configuration", options)

    def get_filesystem_configuration_option(self, key: str) -> Answer:
        """Value: an `Option`, None where none was left."""
        return self.call("get_filesystem_configuration_option", key)

    def set_filesystem_configuration_option(self, option: Option) -> Answer:
        """Set one option, likewise."""
        return self.call("set_filesystem_configuration_option", option)
