"""What plugins ask of tensors, called as they call it."""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from typing import Any

import pytest

from modular_tf.native.runtime_library import load_runtime

_FLOAT, _COMPLEX64 = 1, 8
_OK, _INVALID_ARGUMENT = 0, 3
_Deallocator = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


@cache
def runtime() -> Any:
    found = ctypes.CDLL(load_runtime().path)
    for name in ("TF_NewTensor", "TF_AllocateTensor", "TF_NewBufferFromString", "TF_NewStatus"):
        getattr(found, name).restype = ctypes.c_void_p
    found.TF_TensorByteSize.restype = ctypes.c_size_t
    return found


def pointer(address: int | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(address)


@pytest.mark.parametrize("rank", [-1, 255, 2**31 - 1])
def test_memory_goes_back_where_no_tensor_comes_of_it(rank: int) -> None:
    given_back = []
    deallocator = _Deallocator(lambda data, size, _argument: given_back.append((data, size)))
    memory = (ctypes.c_char * 64)()
    dims = (ctypes.c_int64 * 1)(1)

    tensor = runtime().TF_NewTensor(
        _FLOAT, dims, rank, memory, ctypes.c_size_t(64), deallocator, None
    )

    assert tensor is None
    assert given_back == [(ctypes.addressof(memory), 64)]


def tensor_of_proto(content: bytes) -> tuple[int, int]:
    """Return the code of TF_TensorFromProto, and how many bytes the tensor has."""
    tensor = pointer(runtime().TF_AllocateTensor(_FLOAT, None, 0, ctypes.c_size_t(4)))
    buffer = pointer(runtime().TF_NewBufferFromString(content, ctypes.c_size_t(len(content))))
    status = pointer(runtime().TF_NewStatus())
    runtime().TF_TensorFromProto(buffer, tensor, status)
    found = runtime().TF_GetCode(status), runtime().TF_TensorByteSize(tensor)
    runtime().TF_DeleteTensor(tensor)
    runtime().TF_DeleteBuffer(buffer)
    runtime().TF_DeleteStatus(status)
    return found


@pytest.mark.parametrize(
    ("n_floats", "found"),
    [*((n, (_OK, 64)) for n in (0, 2, 14, 16)), *((n, (_INVALID_ARGUMENT, 4)) for n in (1, 15))],
)
def test_a_tensor_of_8_complex_numbers_may_be_written_in_part_but_not_half_a_number(
    n_floats: int, found: tuple[int, int]
) -> None:
    values = struct.pack(f"<{n_floats}f", *range(n_floats))
    shape = b"\x12\x02\x08\x08"
    proto = (
        bytes([0x08, _COMPLEX64, 0x12, len(shape)]) + shape + bytes([0x4A, len(values)]) + values
    )

    assert tensor_of_proto(proto) == found
