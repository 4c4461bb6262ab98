"""The tensors that come out of a call, as arrays of the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.abi.data_types import by_number
from modular_tf.device.arrays.array import DeviceArray
from modular_tf.device.memory.device_memory import DeviceMemory, HostMemory
from modular_tf.device.native_object import call_and_own
from modular_tf.errors import UnimplementedError
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.abi.data_types import DataType
    from modular_tf.kernel.inputs import KernelInput
    from modular_tf.kernel.site import KernelSite

__all__ = ["is_lent", "take_outputs"]


class _Lent(NamedTuple):
    """What keeps memory that is the plugin's or a kernel's, not the place's: nobody overwrites it."""

    hold: Any


def is_lent(given: KernelInput) -> bool:
    """Return whether an input lies in memory that a plugin has made and lent."""
    array, hold = given.kept if isinstance(given.kept, tuple) else (None, None)
    return array is not None and isinstance(hold, tuple) and isinstance(hold[1], _Lent)


def take_outputs(
    result: Any,
    count: int,
    site: KernelSite,
    inputs: Sequence[KernelInput],
    donated: frozenset[int] = frozenset(),
) -> list[DeviceArray]:
    """Return the outputs of an execution that is over.

    One that is an input is a copy of that: arrays that callers have do not change by themselves. One
    that is a donated input has its memory.

    Args:
        result: The native result.
        count: How many outputs it has.
        site: Where the kernel worked.
        inputs: What went in.
        donated: Which of them nobody uses any more.

    Raises:
        UnimplementedError: An output has elements that no array can hold.
        ModularTFError: The copy of an input failed.
    """
    described = lib.mtf_kernel_outputs(result)
    free = set(donated)
    return [_taken(result, index, described[index], site, inputs, free) for index in range(count)]


def _taken(
    result: Any,
    index: int,
    output: Any,
    site: KernelSite,
    inputs: Sequence[KernelInput],
    free: set[int],
) -> DeviceArray:
    kind = by_number(output.type)
    dtype = kind.dlpack
    if dtype is None:
        raise UnimplementedError(f"output {index} has elements of type {kind}, which no array holds")
    shape = tuple(output.dims[0 : output.rank])
    executor = site.executor
    if output.from_input >= 0 and output.from_input not in free:
        return _copied(inputs[output.from_input], shape, dtype, site)
    memory: DeviceMemory | HostMemory
    address = int(ffi.cast("uintptr_t", output.data))
    if output.from_input >= 0:
        free.remove(output.from_input)
        _array, hold = inputs[output.from_input].kept
        memory = DeviceMemory.borrow(executor, address, output.size, owner=hold)
    elif output.owner:
        native = call_and_own(lib.mtf_kernel_take_memory, (result, index), lib.mtf_memory_free)
        memory = DeviceMemory(executor, native, output.size)
    elif not output.buffer:
        memory = executor.allocate(0)
    else:
        hold = call_and_own(lib.mtf_kernel_take_buffer, (result, index), lib.mtf_kernel_buffer_free)
        memory = _borrowed(site, address, output, _Lent(hold))
    return DeviceArray(site.device, memory, shape, dtype, is_padded=_is_padded(kind))


def _borrowed(site: KernelSite, address: int, output: Any, hold: _Lent) -> DeviceMemory | HostMemory:
    executor = site.executor
    if output.is_on_host and not site.is_host:
        native = executor.borrow_native(address, output.size, 0)
        return HostMemory(executor, native, output.size, owner=hold)
    return DeviceMemory.borrow(executor, address, output.size, owner=hold)


def _copied(
    source: KernelInput, shape: tuple[int, ...], dtype: tuple[int, int, int], site: KernelSite
) -> DeviceArray:
    array = site.device.empty(shape, source.type.element_name)
    memory: Any = array.device_memory
    if source.is_on_host:
        view = ffi.buffer(ffi.cast("char *", source.address), source.n_bytes)
        site.executor.context.copy_host_to_device(memory, view).wait()
    else:
        from_ = DeviceMemory.borrow(site.executor, source.address, source.n_bytes, owner=source.kept)
        site.executor.context.copy_on_device(memory, from_)
    return array


def _is_padded(kind: DataType) -> bool:
    return kind.element is not None and kind.element.is_subbyte
