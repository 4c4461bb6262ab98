"""Tensors in host memory of this package, contiguous and aligned for every consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.dlpack_devices import HOST
from modular_tf.abi.dlpack_elements import TypeCode
from modular_tf.native.ffi import ffi
from modular_tf.native.fresh_host_memory import address_of, fresh_host_memory
from modular_tf.native.tensor import Tensor

if TYPE_CHECKING:
    from modular_tf.device.arrays.array import DeviceArray

_BYTE = (int(TypeCode.UINT), 8, 1)


def new_host_tensor(array: DeviceArray, *, is_copied: bool) -> tuple[Tensor, memoryview]:
    """Return a new tensor with a device array's shape and elements, and its bytes to fill.

    With `is_copied` it is for a consumer that asked for a copy.
    """
    data = fresh_host_memory(array.nbytes)
    owner = ffi.from_buffer("char[]", data.obj)  # not the view, which anybody could release
    tensor = Tensor(
        address_of(data), array.shape, None, array.dlpack_dtype, HOST, owner,
        is_copied=is_copied, is_padded=array.is_padded,
    )  # fmt: skip
    return tensor, data


def bytes_of(tensor: Tensor) -> memoryview:
    """Return the bytes of a compact tensor of the host's, without a copy; they keep it.

    A read-only tensor gives read-only bytes.
    """
    flat = Tensor(tensor.address, (tensor.nbytes,), None, _BYTE, HOST, tensor, tensor.read_only)
    return memoryview(flat)
