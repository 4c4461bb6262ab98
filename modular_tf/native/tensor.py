"""The one door to the compiled DLPack module."""

from __future__ import annotations

import atexit
from importlib import import_module
from typing import TYPE_CHECKING, Any

from modular_tf.abi.dlpack_devices import DLPACK_VERSION, HOST
from modular_tf.abi.dlpack_elements import TypeCode, by_dtype
from modular_tf.native._dlpack import (
    PreparedCall,
    Tensor,
    bytes_of_elements,
    call_prepared,
    consume,
    export_by_table,
    import_by_table,
    note_interpreter_ends,
    repacked,
    set_work_stream_query,
    support_calls,
)

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "PreparedCall",
    "Tensor",
    "bytes_of_elements",
    "call_prepared",
    "consume",
    "export_by_table",
    "import_by_table",
    "repacked",
    "set_work_stream_query",
    "support_calls",
]

_BYTE = (int(TypeCode.UINT), 8, 1)


def _copy_to_numpy(
    self: Tensor, dtype: np.dtype[Any] | None = None, *, copy: bool | None = None
) -> Any:
    """Return a copy as a numpy array, for `numpy.asarray`, where numpy cannot view the tensor.

    That is on devices, and of elements that it lacks. `TypeError` if ml_dtypes lacks them too.
    """
    elements = by_dtype(self.dlpack_dtype)
    if copy is False:
        raise ValueError(
            f"numpy sees {elements.name} elements on DLPack device {self.dlpack_device} as a copy"
            " only, and copy=False was asked for"
        )
    there = elements.to_numpy()
    copied = consume(self.__dlpack__(max_version=DLPACK_VERSION, dl_device=HOST, copy=True))
    if elements.is_subbyte and not copied.is_padded:
        copied = repacked(copied, True)  # noqa: FBT003  (of C: positional only)
    flat = Tensor(copied.address, (copied.nbytes,), None, _BYTE, HOST, copied)
    array = import_module("numpy").asarray(flat).view(there).reshape(copied.shape)
    return array if dtype is None else array.astype(dtype, copy=False)


Tensor.__array__ = _copy_to_numpy  # type: ignore[method-assign]  # written in Python, for numpy

atexit.register(note_interpreter_ends)
