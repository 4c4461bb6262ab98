"""The tensors that come out of a call, as arrays of the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

__all__ = ["take_outputs"]


def take_outputs(
    result: Any, count: int, site: KernelSite, inputs: Sequence[KernelInput]
) -> list[DeviceArray]:
    """Return the outputs of an execution that is over.

    One that is an input is a copy of that: arrays that callers have do not change by themselves.

    Args:
        result: The native result.
        count: How many outputs it has.
        site: Where the kernel worked.
        inputs: What went in.

    Raises:
        UnimplementedError: An output has elements that no array can hold.
        ModularTFError: The copy of an input failed.
    """
    described = lib.mtf_kernel_outputs(result)
    return [_taken(result, index, described[index], site, inputs) for index in range(count)]


def _taken(
    result: Any, index: int, output: Any, site: KernelSite, inputs: Sequence[KernelInput]
) -> DeviceArray:
    kind = by_number(output.type)
    dtype = kind.dlpack
    if dtype is None:
        raise UnimplementedError(f"output {index} has elements of type {kind}, which no array holds")
    shape = tuple(output.dims[0 : output.rank])
    executor = site.executor
    if output.from_input >= 0:
        return _copied(inputs[output.from_input], shape, dtype, site)
    memory: DeviceMemory | HostMemory
    address = int(ffi.cast("uintptr_t", output.data))
    if output.owner:
        native = call_and_own(lib.mtf_kernel_take_memory, (result, index), lib.mtf_memory_free)
        memory = DeviceMemory(executor, native, output.size)
    elif not output.buffer:
        memory = executor.allocate(0)
    else:
        hold = call_and_own(lib.mtf_kernel_take_buffer, (result, index), lib.mtf_kernel_buffer_free)
        memory = _borrowed(site, address, output, hold)
    return DeviceArray(site.device, memory, shape, dtype, is_padded=_is_padded(kind))


def _borrowed(site: KernelSite, address: int, output: Any, hold: Any) -> DeviceMemory | HostMemory:
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
