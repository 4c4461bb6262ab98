"""Elements of less than 8 bits: several in a byte, as DLPack packs them, or one in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.dlpack_devices import HOST
from modular_tf.device.arrays.host_tensor import bytes_of
from modular_tf.device.memory.host_buffer import host_buffer
from modular_tf.native.ffi import ffi
from modular_tf.native.tensor import Tensor, repacked

if TYPE_CHECKING:
    from typing_extensions import Buffer


def has_two_layouts(dtype: tuple[int, int, int]) -> bool:
    """Return whether elements have less than 8 bits, so that they can be packed or padded."""
    return dtype[1] % 8 != 0


def in_other_layout(
    data: Buffer, shape: tuple[int, ...], dtype: tuple[int, int, int], *, is_padded: bool
) -> memoryview:
    """Return packed elements as padded ones, whose upper bits are 0, or padded ones packed.

    With upper bits of 0 ml_dtypes stores them too, negative numbers included. The data are in C
    order; packed, the first element is in the lowest bits of the first byte. The dtype is code,
    bits and lanes. `is_padded` describes the elements of `data`.
    """
    with host_buffer(data) as held:
        address = int(ffi.cast("uintptr_t", held))
        found = Tensor(address, shape, None, dtype, HOST, held, is_padded=is_padded)
        return bytes_of(repacked(found, not is_padded))
