"""The libraries on the other side, as the tests use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = {
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
}  # fmt: skip
TORCH = PLAIN | {
    "bfloat16", "complex32", "float4_e2m1fn_x2",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
}  # fmt: skip
JAX = PLAIN | {
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
}  # fmt: skip


@dataclass(frozen=True)
class Consumer:
    """One library.

    Attributes:
        name: To import it by.
        take: Its own `from_dlpack`.
        address: Where the elements of one of its arrays are.
        elements: Names of the element types that every supported release takes; None for all.
    """

    name: str
    take: Callable[[Any], Any]
    address: Callable[[Any], int]
    elements: set[str] | None


def _numpy() -> Consumer:
    import numpy as np

    return Consumer("numpy", np.from_dlpack, lambda array: array.ctypes.data, PLAIN)


def _torch() -> Consumer:
    import torch

    return Consumer("torch", torch.from_dlpack, lambda tensor: tensor.data_ptr(), TORCH)


def _jax() -> Consumer:
    with pytest.MonkeyPatch.context() as patch:  # jax sets it, for all children to come
        patch.setenv("TF_CPP_MIN_LOG_LEVEL", "1")
        import jax

    jax.config.update("jax_enable_x64", True)  # else it copies 64 bits into 32
    return Consumer("jax", jax.numpy.from_dlpack, lambda array: array.unsafe_buffer_pointer(), JAX)


def _tvm_ffi() -> Consumer:
    import tvm_ffi

    return Consumer("tvm_ffi", tvm_ffi.from_dlpack, lambda tensor: tensor.data_ptr(), None)


CONSUMERS: dict[str, Callable[[], Consumer]] = {
    "numpy": _numpy,
    "torch": _torch,
    "jax": _jax,
    "tvm_ffi": _tvm_ffi,
}
