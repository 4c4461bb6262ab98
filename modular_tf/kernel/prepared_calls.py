"""Calls that were made before, for devices in host memory: they run in C from then on."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from modular_tf.abi.data_types import by_number, quantized_number
from modular_tf.device.arrays.array import DeviceArray
from modular_tf.device.arrays.dlpack_numbers import dlpack_device
from modular_tf.device.arrays.work_streams import note_device
from modular_tf.kernel.retained_inputs import drop_released, retained
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.tensor import PreparedCall, support_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modular_tf.abi.data_types import DataType
    from modular_tf.kernel.prepared_kernel import PreparedKernel
    from modular_tf.kernel.registry import KernelRegistry

__all__ = ["MOST_TENSORS", "prepared_call"]

MOST_TENSORS = 8
"""How many inputs, and how many outputs, a prepared call has at most."""

_FUNCTIONS = (
    "mtf_kernel_run", "mtf_kernel_outputs", "mtf_kernel_take_memory", "mtf_memory_free",
    "mtf_kernel_take_buffer", "mtf_kernel_buffer_free", "mtf_kernel_keeper",
    "mtf_kernel_result_free", "mtf_executor_is_open", "mtf_kernel_take_failed",
)  # fmt: skip


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


support_calls(
    tuple(_address(ffi.addressof(lib, name)) for name in _FUNCTIONS),
    DeviceArray,
    retained,
    drop_released,
)


def prepared_call(
    kernel: PreparedKernel,
    registry: KernelRegistry,
    moment: object,
    given: Sequence[int],
    *,
    finish: Callable[[list[DeviceArray]], Any] | None,
    default_device: Callable[[], Any] | None,
) -> PreparedCall | None:
    """Return what calls of a kernel need again; None for those that have to go the general way.

    Args:
        kernel: The kernel object.
        registry: Where it was looked up.
        moment: The registry's `moment` before that.
        given: What the elements of each input stand for, its `_data_type`; 0 for arrays of numpy.
        finish: Returns the result of a list of arrays; None where that is the only one, or None.
        default_device: Returns the device of calls without inputs on one; None if it is fixed.
    """
    site, node = kernel.site, kernel.node
    inputs, outputs = _elements(node.input_types), _elements(node.output_types)
    if not site.is_host or kernel.registration.asynchronous or inputs is None or outputs is None:
        return None
    device = site.device
    place = dlpack_device(device.platform, device.ordinal, kind=device.dlpack_type)
    note_device(place, site.executor)
    return PreparedCall(
        kernel=weakref.ref(kernel), native=_address(kernel.native),
        executor=site.executor, native_executor=_address(site.executor.native),
        device=device, place=place,
        inputs=tuple([(*one, stands_for) for one, stands_for in zip(inputs, given, strict=True)]),
        outputs=tuple([(*each[:3], quantized_number(by_number(each[3]))) for each in outputs]),
        registry=registry, moment=moment, finish=finish, default_device=default_device,
    )  # fmt: skip


def _elements(types: Sequence[DataType]) -> tuple[tuple[int, int, int, int], ...] | None:
    """Return DLPack's and TensorFlow's numbers of types; None for too many, or odd ones."""
    made = tuple([(*each.dlpack, each.number) for each in types if each.dlpack is not None])
    is_plain = len(made) == len(types) <= MOST_TENSORS
    return made if is_plain and all(bits % 8 == 0 for _, bits, _, _ in made) else None
