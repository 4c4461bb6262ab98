"""The slots of a filesystem plugin as functions that are called directly.

Unlike `core/filesystem.h` nothing stands between: no translated path, no default, no judgement of
what comes back, no catching of exceptions. For checks that look at the plugin alone.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from modular_tf.native.ffi import ffi
from modular_tf.native.readonly_memory import try_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BUFFERS = 2  # the type of an option whose values are buffers

FILESYSTEM = "TF_FilesystemOps"
RANDOM_ACCESS_FILE = "TF_RandomAccessFileOps"
WRITABLE_FILE = "TF_WritableFileOps"
READ_ONLY_MEMORY_REGION = "TF_ReadOnlyMemoryRegionOps"

_PATH = "void(*)(void *, char const *, void *)"  # filesystem, path, status
_TWO_PATHS = "void(*)(void *, char const *, char const *, void *)"
_OPEN = "void(*)(void *, char const *, void *, void *)"  # filesystem, path, file, status
_LIST = "int(*)(void *, char const *, void *, void *)"
_FILE = "void(*)(void *, void *)"  # file, status
_OBJECT = "void(*)(void *)"

# Booleans come back as a byte: a plugin's may be neither 0 nor 1.
_TYPES: Mapping[str, Mapping[str, str]] = {
    FILESYSTEM: {
        "init": _FILE,
        "cleanup": _OBJECT,
        "new_random_access_file": _OPEN,
        "new_writable_file": _OPEN,
        "new_appendable_file": _OPEN,
        "new_read_only_memory_region_from_file": _OPEN,
        "create_dir": _PATH,
        "recursively_create_dir": _PATH,
        "delete_file": _PATH,
        "delete_dir": _PATH,
        "delete_recursively": "void(*)(void *, char const *, void *, void *, void *)",
        "rename_file": _TWO_PATHS,
        "copy_file": _TWO_PATHS,
        "path_exists": _PATH,
        "paths_exist": "uint8_t(*)(void *, void *, int, void *)",
        "stat": _OPEN,
        "is_directory": "uint8_t(*)(void *, char const *, void *)",
        "get_file_size": "int64_t(*)(void *, char const *, void *)",
        "translate_name": "char *(*)(void *, char const *)",
        "get_children": _LIST,
        "get_matching_paths": _LIST,
        "flush_caches": _OBJECT,
        "start_transaction": "int(*)(void *, void *, void *)",
        "end_transaction": "int(*)(void *, void *, void *)",
        "add_to_transaction": _LIST,
        "get_transaction_for_path": _LIST,
        "get_or_start_transaction_for_path": _LIST,
        "decode_transaction_token": "char *(*)(void *, void *)",
        "get_filesystem_configuration": "void(*)(void *, void *, void *, void *)",
        "set_filesystem_configuration": "void(*)(void *, void *, int, void *)",
        "get_filesystem_configuration_option": _OPEN,
        "set_filesystem_configuration_option": "void(*)(void *, void *, void *)",
    },
    RANDOM_ACCESS_FILE: {
        "cleanup": _OBJECT,
        "read": "int64_t(*)(void *, uint64_t, size_t, char *, void *)",
    },
    WRITABLE_FILE: {
        "cleanup": _OBJECT,
        "append": "void(*)(void *, char const *, size_t, void *)",
        "tell": "int64_t(*)(void *, void *)",
        "flush": _FILE,
        "sync": _FILE,
        "close": _FILE,
    },
    READ_ONLY_MEMORY_REGION: {
        "cleanup": _OBJECT,
        "data": "void *(*)(void *)",
        "length": "uint64_t(*)(void *)",
    },
}
"""The C types of what can be called. `get_filesystem_configuration_keys` is not among them: what
it takes is ambiguous, so no host calls it."""


@cache
def _type(table: str, slot: str) -> Any:
    return ffi.typeof(_TYPES[table][slot])


class RawSlots:
    """The functions of one scheme's tables. [any thread]

    Args:
        addresses: For each table's C name the address of each of its slots, 0 for NULL.
        free: The plugin's `plugin_memory_free`.
    """

    def __init__(self, addresses: Mapping[str, Mapping[str, int]], free: int) -> None:
        self._addresses = addresses
        self._free = ffi.cast(_OBJECT, free)

    def has(self, name: str) -> bool:
        """Return whether a slot is set: `SLOT`, or `TABLE.SLOT` where several tables have it."""
        table, dot, slot = name.rpartition(".")
        tables = (table,) if dot else tuple(_TYPES)
        return any(self._addresses.get(one, {}).get(slot) for one in tables)

    def function(self, table: str, slot: str) -> Any:
        """Return a slot as a function that releases the GIL, None where it is NULL."""
        address = self._addresses.get(table, {}).get(slot)
        return ffi.cast(_type(table, slot), address) if address else None

    def free(self, address: int) -> None:
        """Call the plugin's own free."""
        self._free(ffi.cast("void *", address))


NULL: Any = ffi.NULL


def as_pointer(address: int) -> Any:
    """Return an address as a pointer that can be handed to a slot."""
    return ffi.cast("void *", address)


def as_address(pointer: Any) -> int:
    """Return the address of a pointer that a slot returned; 0 for NULL."""
    return int(ffi.cast("uintptr_t", pointer))


def read_addresses(address: int, count: int) -> tuple[int, ...] | None:
    """Copy an array of pointers that a plugin gave; None where so much cannot be read."""
    raw = try_read(address, 8 * count) if address else None
    return None if raw is None else tuple(memoryview(raw).cast("Q"))


def copy_memory(address: int, size: int) -> bytes:
    """Copy memory that is trusted to be there."""
    return bytes(ffi.buffer(ffi.cast("char *", address), size))


def buffer_address(buffer: memoryview) -> int:
    """Return where the memory of a buffer lies; it stays with the caller."""
    return int(ffi.cast("uintptr_t", ffi.from_buffer("char[]", buffer)))


def option_at(address: int, index: int) -> Any:
    """Return one option of an array that is trusted to be there."""
    return ffi.cast("mtf_option *", address)[index]


def option_blocks(address: int, count: int) -> Iterator[int]:
    """Yield each block of such an array, the array last; none of them is read afterwards."""
    for index in range(count):
        option = option_at(address, index)
        pointers = [*_buffers(option), option.value.values, option.value]
        yield from (as_address(pointer) for pointer in (*pointers, option.name, option.description))
    yield address


def scribble_over(array: Any, count: int) -> None:
    """Overwrite the strings, buffers, values and structs of an array of the host's."""
    for index in range(count):
        option = array[index]
        for text in (option.name, option.description):
            _scribble(text, len(ffi.string(text)))
        value = option.value
        for i in range(value.num_values if value.type_tag == _BUFFERS else 0):
            _scribble(value.values[i].buffer.bytes, value.values[i].buffer.length)
        _scribble(value.values, ffi.sizeof("mtf_option_item") * value.num_values)
        value.type_tag = value.num_values = 0
    _scribble(array, ffi.sizeof("mtf_option") * count)


def _buffers(option: Any) -> list[Any]:
    value = option.value
    count = value.num_values if value.type_tag == _BUFFERS else 0
    return [value.values[i].buffer.bytes for i in range(count)]


def _scribble(pointer: Any, size: int) -> None:
    ffi.buffer(ffi.cast("char *", pointer), size)[:] = b"\xdd" * size
