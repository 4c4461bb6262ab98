"""The tensors that come out of a call, as arrays of the device; those of strings as numpy's."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.abi.data_types import by_name, by_number, quantized_number
from modular_tf.device.device import DeviceArray
from modular_tf.device.device_core import call_and_own
from modular_tf.device.memory.device_memory import DeviceMemory, HostMemory, borrowed
from modular_tf.errors import UnimplementedError
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.abi.data_types import DataType
    from modular_tf.kernel.site import KernelInput, KernelSite

__all__ = ["STRING", "STRING_BYTES", "is_lent", "take_outputs"]

STRING = by_name("string")
STRING_BYTES = 24
"""Of one element of a tensor of strings, a TF_TString (`modular_tf/tensor.h`)."""


class _Lent(NamedTuple):
    """What keeps memory that a plugin has made itself; kernels may not have outputs in it."""

    hold: Any


def is_lent(given: KernelInput) -> bool:
    """Return whether an input lies in memory that a plugin has made itself."""
    hold = given.kept[1] if isinstance(given.kept, tuple) else None
    return isinstance(hold, tuple) and isinstance(hold[1], _Lent)


def take_outputs(
    result: Any,
    count: int,
    site: KernelSite,
    inputs: Sequence[KernelInput] = (),
    donated: frozenset[int] = frozenset(),
) -> list[Any]:
    """Return the outputs of an execution that is over, strings as numpy arrays.

    One that is an input is a copy of that, unless the caller gave it away (`donated`): arrays that
    callers have do not change by themselves. Raises UnimplementedError for an output whose elements
    no array can hold.
    """
    described = lib.mtf_kernel_outputs(result)
    taken: list[Any] = []
    for index in range(count):
        output = described[index]
        source, shape = output.from_input, tuple(output.dims[0 : output.rank])
        if output.type == STRING.number:
            taken.append(_strings_at(int(ffi.cast("uintptr_t", output.data)), shape))
        elif source < 0:
            taken.append(_taken(result, index, output, shape, site))
        else:
            taken.append(_of_input(inputs[source], shape, site, is_given=source in donated))
    return taken


def _taken(
    result: Any, index: int, output: Any, shape: tuple[int, ...], site: KernelSite
) -> DeviceArray:
    kind = by_number(output.type)
    dtype = kind.dlpack
    if dtype is None:
        raise UnimplementedError(
            f"output {index} has elements of type {kind}, which no array holds"
        )
    executor = site.executor
    memory: DeviceMemory | HostMemory
    if output.owner:
        native = call_and_own(lib.mtf_kernel_take_memory, (result, index), lib.mtf_memory_free)
        memory = DeviceMemory(executor, native, output.size)
    elif not output.buffer:
        memory = DeviceMemory.allocate(executor, 0)
    else:
        hold = call_and_own(lib.mtf_kernel_take_buffer, (result, index), lib.mtf_kernel_buffer_free)
        memory = _borrowed(site, int(ffi.cast("uintptr_t", output.data)), output, _Lent(hold))
    array = DeviceArray(site.device, memory, shape, dtype, is_padded=_is_padded(kind))
    if kind.is_quantized:
        array._data_type = kind.number  # noqa: SLF001  (kernels set it)
    return array


def _typed(array: DeviceArray, kind: DataType) -> DeviceArray:
    array._data_type = quantized_number(kind)  # noqa: SLF001  (kernels set it)
    return array


def _borrowed(
    site: KernelSite, address: int, output: Any, hold: _Lent
) -> DeviceMemory | HostMemory:
    executor = site.executor
    if output.is_on_host and not site.is_host:
        native = borrowed(executor, address, output.size)
        return HostMemory(executor, native, output.size, owner=hold)
    return DeviceMemory.borrow(executor, address, output.size, owner=hold)


def _of_input(
    source: KernelInput, shape: tuple[int, ...], site: KernelSite, *, is_given: bool
) -> DeviceArray:
    """Return an output that is an input: in its memory if that was given away, else a copy."""
    dtype = source.type.dlpack
    if is_given and dtype is not None:
        address, size = source.address, source.n_bytes
        given = DeviceMemory.borrow(site.executor, address, size, owner=source.kept)
        array = DeviceArray(site.device, given, shape, dtype, is_padded=_is_padded(source.type))
        return _typed(array, source.type)
    array = site.device.empty(shape, source.type.element_name)
    memory: Any = array.device_memory
    if source.is_on_host:
        view = ffi.buffer(ffi.cast("char *", source.address), source.n_bytes)
        site.executor.context.copy_host_to_device(memory, view).wait()
    else:
        from_ = DeviceMemory.borrow(
            site.executor, source.address, source.n_bytes, owner=source.kept
        )
        site.executor.context.copy_on_device(memory, from_)
    return _typed(array, source.type)


def _is_padded(kind: DataType) -> bool:
    return kind.element is not None and kind.element.is_subbyte


def _strings_at(address: int, shape: tuple[int, ...]) -> Any:
    """Return a copy of the strings at an address: a numpy array of `bytes` objects.

    Raises UnimplementedError if numpy is missing.
    """
    try:
        import numpy as np  # noqa: PLC0415  (heavy, and an extra)
    except ModuleNotFoundError:
        text = "an output has strings, which are arrays of numpy; pip install 'modular_tf[numpy]'"
        raise UnimplementedError(text) from None

    found = np.empty(prod(shape), object)
    for index in range(found.size):
        at = address + index * STRING_BYTES
        words = ffi.cast("uint64_t *", at)
        kind, size = words[0] & 3, words[0] >> 2
        if kind == 0:  # small: the bytes are in the element
            start, size = at + 1, size & 0x3F
        elif kind == 1:  # large
            start = words[2]
        elif kind == 3:  # noqa: PLR2004  (a view)
            start = words[1]
        else:  # at an offset from the element
            start, size = at + (words[0] >> 32), size & 0x3FFFFFFF
        found[index] = bytes(ffi.buffer(ffi.cast("char *", start), size)) if size else b""
    return found.reshape(shape)
