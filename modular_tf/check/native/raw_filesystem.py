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


@cache
def _type(declaration: str) -> Any:
    return ffi.typeof(declaration)


class RawSlots:
    """The functions of one scheme's tables. [any thread]

    Args:
        addresses: For each table's C name the address of each of its slots, 0 for NULL.
        types: Likewise the C type of each slot that can be called.
        free: The plugin's `plugin_memory_free`.
    """

    def __init__(
        self,
        addresses: Mapping[str, Mapping[str, int]],
        types: Mapping[str, Mapping[str, str]],
        free: int,
    ) -> None:
        self._addresses = addresses
        self._types = types
        self._free = ffi.cast("void(*)(void *)", free)

    def function(self, table: str, slot: str) -> Any:
        """Return a slot as a function that releases the GIL, None where it is NULL."""
        address = self._addresses.get(table, {}).get(slot)
        return ffi.cast(_type(self._types[table][slot]), address) if address else None

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
