"""Arrays of `TF_Filesystem_Option` as they lie in memory, a plugin's or the host's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.native.ffi import ffi

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUFFERS = 2


def option_at(address: int, index: int) -> Any:
    """Return one option of an array that is trusted to be there."""
    return ffi.cast("mtf_option *", address)[index]


def option_blocks(address: int, count: int) -> Iterator[int]:
    """Yield each block of such an array, the array last; none of them is read afterwards."""
    for index in range(count):
        option = option_at(address, index)
        pointers = [*_buffers(option), option.value.values, option.value]
        yield from (_address(pointer) for pointer in (*pointers, option.name, option.description))
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


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))
