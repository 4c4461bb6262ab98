"""Tensors as numpy arrays where numpy cannot view them: on devices, or elements that it lacks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from modular_tf.abi.dlpack_devices import HOST
from modular_tf.abi.dlpack_elements import TypeCode, by_dtype
from modular_tf.abi.dlpack_layouts import DLPACK_VERSION
from modular_tf.native._dlpack import Tensor, consume, repacked

if TYPE_CHECKING:
    import numpy as np

_BYTE = (int(TypeCode.UINT), 8, 1)


def copy_to_numpy(
    self: Tensor, dtype: np.dtype[Any] | None = None, *, copy: bool | None = None
) -> Any:
    """Return a copy as a numpy array, for `numpy.asarray`.

    Raises:
        ValueError: `copy` is False.
        TypeError: Neither numpy nor ml_dtypes has such elements.
        ModuleNotFoundError: ml_dtypes is missing, and only it has such elements.
        ClosedError: The array was closed.
        ModularTFError: As the operations of the device's streams.
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
