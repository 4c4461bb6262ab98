"""The operations of a filesystem: each is said once, by a method of `Operations`.

The method's name is the slot's, its row says what the slot takes and what it changes. From that,
`by_slots` makes the call of the plugin's slot, and `through_host` the call of this package on top
of it, so that one check tries both.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, NamedTuple, ParamSpec

from modular_tf.abi.layouts import (
    FILESYSTEM_OPS,
    RANDOM_ACCESS_FILE_OPS,
    READ_ONLY_MEMORY_REGION_OPS,
    WRITABLE_FILE_OPS,
)
from modular_tf.check.calls import shown
from modular_tf.check.expectation import Deviation
from modular_tf.native.readonly_memory import try_read

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from modular_tf.check.answers import Answer
    from modular_tf.filesystem.configuration import Option
    from modular_tf.loading.filesystem_tables import FilesystemTables

P = ParamSpec("P")

FILESYSTEM = FILESYSTEM_OPS.name
_READER, _WRITER = RANDOM_ACCESS_FILE_OPS.name, WRITABLE_FILE_OPS.name
_REGION = READ_ONLY_MEMORY_REGION_OPS.name


class Op(NamedTuple):
    """One slot, and how it is called.

    Attributes:
        takes: A word for each argument after the struct: `path` is a URI that `translate_name`
            translates, `uri`, `pattern` and `key` are texts as they are, `&` is in front of what
            the plugin fills.
        returns: The C type.
        effect: `makes`, `removes`, `moves` or `sets` something in the store; "" asks.
        default: What the host's default asks for where the slot is NULL, which may have a default
            in turn (`modular_tf.filesystem.filesystem`); None where there is no default.
        about: The check that is about the operation, "" for none.
    """

    takes: str = ""
    returns: str = "void"
    effect: str = ""
    default: tuple[str, ...] | None = None
    about: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """What a caller gives, and what the plugin fills."""
        return tuple(word for word in self.takes.split() if word != "status")

    @property
    def inputs(self) -> tuple[str, ...]:
        """What a caller gives."""
        return tuple(word for word in self.words if not word.startswith("&"))

    @property
    def opens(self) -> str:
        """The word of what it opens, "" for nothing."""
        return next((word for word in self.words if word in OPENED), "")

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

OPERATIONS: dict[str, Op] = {"init": Op("status"), "cleanup": Op()}
"""The slots of `TF_FilesystemOps` in its order. `get_filesystem_configuration_keys` is not among
them: what it takes is ambiguous, so no host calls it. Booleans are bytes: a plugin's may be neither
0 nor 1."""

TABLES: Mapping[str, dict[str, Op]] = {
    FILESYSTEM: OPERATIONS,
    _READER: {"cleanup": Op()},
    _WRITER: {"cleanup": Op()},
    _REGION: {"cleanup": Op(), "data": Op(returns="void *"), "length": Op(returns="uint64_t")},
}
"""The slots of each table, by its C name."""

_COPIED = frozenset({"&buffer", "&stat", "&names", "&files", "&directories"})
"""Outputs that reports do not show: they are the value of the answer."""


def has_slot(tables: FilesystemTables, name: str) -> bool:
    """Return whether a plugin has a slot: `SLOT`, or `TABLE.SLOT` where several tables have it."""
    table, dot, slot = name.rpartition(".")
    if dot:
        return table in tables.tables and tables.tables[table].has(slot)
    return any(one.has(slot) for one in tables.tables.values())


def host_offers(has: Callable[[str], bool], slot: str) -> bool:
    """Return whether an operation works through the host: by the plugin's slot, or by a default."""
    rows = (table[slot] for table in TABLES.values() if slot in table)
    default = next((op.default for op in rows if op.default is not None), None)
    return has(slot) or (
        default is not None and all(host_offers(has, helper) for helper in default)
    )


def shown_arguments(op: Op, arguments: Sequence[Any], opened: str = "") -> str:
    """Return what a caller gives as reports show it, with the name of what is opened."""
    values = iter(arguments)
    shown_words = (
        (f"&{opened}" if word in OPENED else word) if word[0] == "&" else _shown(word, next(values))
        for word in op.words
        if word not in _COPIED
    )
    return ", ".join(shown_words)


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


def operation(
    takes: str = "",
    returns: str = "void",
    effect: str = "",
    *,
    default: tuple[str, ...] | None = None,
    about: str = "",
    table: str = FILESYSTEM,
) -> Callable[[Callable[Concatenate[Any, P], None]], Callable[Concatenate[Any, P], Answer]]:
    """Make a method an operation, and its call that of the slot with its name; see `Op`."""

    def define(
        stub: Callable[Concatenate[Any, P], None],
    ) -> Callable[Concatenate[Any, P], Answer]:
        name = stub.__name__
        TABLES[table][name] = Op(takes, returns, effect, default, about)
        defaults = stub.__kwdefaults__ or {}

        def call(self: Any, /, *arguments: P.args, **named: P.kwargs) -> Answer:
            answer: Answer = self.call(name, *arguments, *{**defaults, **named}.values())
            return answer

        update_wrapper(call, stub)
        return call

    return define


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

    def __init__(self, caller: Callable[..., Answer], opened: Any, name: str) -> None:
        self.opened = opened
        self.name = name
        self.is_open = True
        self._caller = caller

    def call(self, slot: str, *arguments: Any) -> Answer:
        """Call a slot of its table."""
        return self._caller(self, slot, *arguments)

    @property
    def handle(self) -> int:
        """The plugin's pointer in the struct, where it was opened by its slot."""
        return int(self.opened.word())

    def cleanup(self) -> None:
        """Call `cleanup`; a second call does nothing. The host closes first what is open."""
        if self.is_open:
            self.is_open = False
            self.call("cleanup")


class Reader(OpenFile):
    """An open `TF_RandomAccessFile`."""

    table = _READER

    @operation("offset n &buffer status", "int64_t", about="FS-156", table=_READER)
    def read(self, offset: int, n: int) -> None:
        """Value: the bytes that came, at most n. Returned (raw): the C function's count.

        A write past the n bytes is a breach of FS-163, whichever check sees it.
        """

    def close(self) -> None:
        """Call `cleanup`; a second call does nothing."""
        self.cleanup()


class Writer(OpenFile):
    """An open `TF_WritableFile`."""

    table = _WRITER

    @operation("bytes status", about="FS-176", table=_WRITER)
    def append(self, data: bytes) -> None:
        """Append all of these bytes; the memory that the plugin sees is overwritten afterwards."""

    @operation("status", "int64_t", table=_WRITER)
    def tell(self) -> None:
        """Value and returned: the position."""

    @operation("status", default=(), table=_WRITER)
    def flush(self) -> None:
        """Pass what is buffered on."""

    @operation("status", default=(), table=_WRITER)
    def sync(self) -> None:
        """Write what is buffered to the store."""

    @operation("status", about="FS-170", table=_WRITER)
    def close(self) -> None:
        """Close alone; the host cleans up too."""


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
        """Return a copy of the bytes.

        Raises:
            Deviation: There is no such memory.
        """
        length = self.length()
        address = self.address() if length else 0
        with suppress(MemoryError, OverflowError):
            if (found := try_read(address, length) if length else b"") is not None:
                return found
        what = f"{length} bytes at {address:#x}"
        raise Deviation("the memory of a region cannot be read", found=what)

    def close(self) -> None:
        """Call `cleanup`; a second call does nothing."""
        self.cleanup()


OPENED: Mapping[str, type[OpenFile]] = {"&file": Reader, "&writer": Writer, "&region": Region}
"""What an operation opens, by the word of its output."""


class Operations:
    """A filesystem; each public method with a row is one slot of `TF_FilesystemOps`. [any thread]

    Paths are URIs, in `str` with surrogateescape. Each method raises `Unsupported` where the slot
    is NULL and nothing stands in for it, and `Blocked` where `translate_name` fails.
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

    # -- files ------------------------------------------------------------------------------------

    @operation("path &file status", about="FS-150")
    def new_random_access_file(self, uri: str) -> None:
        """Value: a `Reader`, where the code is OK or a handle was left."""

    @operation("path &writer status", effect="makes", about="FS-170")
    def new_writable_file(self, uri: str) -> None:
        """Value: a `Writer`, likewise."""

    @operation("path &writer status", effect="makes", about="FS-192")
    def new_appendable_file(self, uri: str) -> None:
        """Value: a `Writer`, likewise."""

    @operation("path &region status", about="FS-199")
    def new_read_only_memory_region_from_file(self, uri: str) -> None:
        """Value: a `Region`, likewise."""

    # -- directories and names --------------------------------------------------------------------

    @operation("path status", effect="makes", about="FS-206")
    def create_dir(self, uri: str) -> None:
        """Make one directory."""

    @operation(
        "path status",
        effect="makes",
        default=("path_exists", "is_directory", "create_dir"),
        about="FS-212",
    )
    def recursively_create_dir(self, uri: str) -> None:
        """Make a directory and its parents."""

    @operation("path status", effect="removes", about="FS-220")
    def delete_file(self, uri: str) -> None:
        """Delete one file."""

    @operation("path status", effect="removes", about="FS-224")
    def delete_dir(self, uri: str) -> None:
        """Delete one empty directory."""

    @operation(
        "path &files &directories status",
        effect="removes",
        default=("path_exists", "is_directory", "get_children", "delete_file", "delete_dir"),
        about="FS-228",
    )
    def delete_recursively(self, uri: str) -> None:
        """Value: (files, directories) left, as the plugin wrote them over 2^64-1 each.

        Through the host: (0, 0), or what the error says.
        """

    @operation(
        "path path status", effect="moves", default=("copy_file", "delete_file"), about="FS-235"
    )
    def rename_file(self, source: str, target: str) -> None:
        """Move a file."""

    @operation(
        "path path status",
        effect="moves",
        default=(
            "new_random_access_file",
            "read",
            "new_writable_file",
            "append",
            "is_directory",
        ),
        about="FS-244",
    )
    def copy_file(self, source: str, target: str) -> None:
        """Copy a file."""

    # -- questions --------------------------------------------------------------------------------

    @operation("path status", about="FS-256")
    def path_exists(self, uri: str) -> None:
        """Code OK where it exists, NOT_FOUND where not."""

    @operation("paths statuses", "uint8_t", default=("path_exists",), about="FS-261")
    def paths_exist(self, uris: Sequence[str], *, with_statuses: bool = True) -> None:
        """Value: a code per path, None without statuses. Returned: whether all exist."""

    @operation("path &stat status", about="FS-266")
    def stat(self, uri: str) -> None:
        """Value: a `Stat`, None where the plugin left the struct alone."""

    @operation("path status", "uint8_t", default=("stat",), about="FS-271")
    def is_directory(self, uri: str) -> None:
        """Value: the flag; the byte where it is neither 0 nor 1."""

    @operation("path status", "int64_t", default=("stat",), about="FS-275")
    def get_file_size(self, uri: str) -> None:
        """Value and returned: the size in bytes."""

    @operation("uri", "char *", default=(), about="FS-139")
    def translate_name(self, uri: str) -> None:
        """Value: the name (`str`), None where the plugin returned NULL."""

    @operation("path &names status", "int", about="FS-279")
    def get_children(self, uri: str) -> None:
        """Value: the names in the plugin's order (None for a NULL entry). Returned: the count."""

    @operation(
        "pattern &names status",
        "int",
        default=("path_exists", "get_children", "is_directory"),
        about="FS-293",
    )
    def get_matching_paths(self, pattern: str) -> None:
        """Value: the paths in the plugin's order. Returned: the count."""

    @operation(default=())
    def flush_caches(self) -> None:
        """The answer is OK: the slot has no status."""

    # -- transactions and configuration -----------------------------------------------------------
    # A token is the address of a plugin's `TF_TransactionToken`, or the host's `Transaction`.

    @operation("&token status", "int", effect="sets", about="FS-302")
    def start_transaction(self) -> None:
        """Value: the token, 0 where none was left. Returned: the int, -1 for a failure."""

    @operation("token status", "int")
    def end_transaction(self, token: Any) -> None:
        """Returned: as of `start_transaction`."""

    @operation("path token status", "int")
    def add_to_transaction(self, uri: str, token: Any) -> None:
        """Returned: as of `start_transaction`."""

    @operation("path &token status", "int")
    def get_transaction_for_path(self, uri: str) -> None:
        """Value and returned: as of `start_transaction`."""

    @operation("path &token status", "int")
    def get_or_start_transaction_for_path(self, uri: str) -> None:
        """Value and returned: as of `start_transaction`."""

    @operation("token", "char *")
    def decode_transaction_token(self, token: Any) -> None:
        """Value: the description, None for NULL."""

    @operation("&options &num_options status", default=())
    def get_filesystem_configuration(self) -> None:
        """Value: a list of `Option`. Returned (raw): the count that was written.

        Raises:
            Deviation: An option is malformed.
        """

    @operation("options status", effect="sets")
    def set_filesystem_configuration(self, options: Sequence[Option]) -> None:
        """Set options; the memory that the plugin sees is overwritten afterwards."""

    @operation("key &option status", default=())
    def get_filesystem_configuration_option(self, key: str) -> None:
        """Value: an `Option`, None where none was left."""

    @operation("option status", effect="sets")
    def set_filesystem_configuration_option(self, option: Option) -> None:
        """Set one option, likewise."""


_OF_ONE_PATH = {name: op for name, op in OPERATIONS.items() if op.inputs == ("path",)}
QUESTIONS = tuple(
    name for name, op in _OF_ONE_PATH.items() if not op.effect and "&token" not in op.words
)
"""The operations that ask about one path, and open what is there."""

REMOVALS = tuple(name for name, op in _OF_ONE_PATH.items() if op.effect == "removes")
MOVES = tuple(name for name, op in OPERATIONS.items() if op.effect == "moves")
CHANGES = frozenset(name for name, op in OPERATIONS.items() if op.effect)
"""The operations that change something in the store."""
