"""Host memory whose death is seen, and tensors over it."""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Any

from modular_tf.native.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

FLOAT32 = (2, 32, 1)
CPU = (1, 0)
ALIGNMENT = 256


class Memory:
    """Aligned bytes, kept by whoever keeps this."""

    def __init__(self, n_bytes: int) -> None:
        self._block = ctypes.create_string_buffer(n_bytes + ALIGNMENT)
        start = ctypes.addressof(self._block)
        self.address = (start + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        self.bytes = (ctypes.c_char * n_bytes).from_address(self.address)

    def watch(self) -> weakref.ref[Memory]:
        """Return a reference that is dead once the memory is free."""
        return weakref.ref(self)


def tensor_of(
    values: Sequence[float],
    shape: Sequence[int] | None = None,
    cls: type[Tensor] = Tensor,
    **arguments: Any,
) -> Tensor:
    """Return a float32 tensor over new memory that holds `values`; only the tensor keeps it."""
    memory = Memory(4 * len(values))
    memory.bytes[:] = memoryview((ctypes.c_float * len(values))(*values)).cast("B").tobytes()
    return cls(
        arguments.pop("address", memory.address),
        (len(values),) if shape is None else shape,
        arguments.pop("strides", None),
        FLOAT32,
        arguments.pop("dlpack_device", CPU),
        memory,
        **arguments,
    )
