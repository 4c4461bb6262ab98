"""Host memory by Python's own buffer protocol."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from modular_tf.native.tensor import Tensor
from tests.dlpack.memory import CPU, FLOAT32, Memory, tensor_of

NAMES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
SIMPLE, WRITABLE = 0, 1
CODES = {"b": 6, "i": 0, "u": 1, "f": 2, "c": 5}


def get_buffer(tensor, flags):
    """Ask as only C code can."""
    view = ctypes.create_string_buffer(80)  # sizeof(Py_buffer)
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(tensor), view, flags)


def test_each_numpy_type_keeps_its_type_and_place():
    for name in NAMES:
        dtype = np.dtype(name)
        array = np.arange(6).astype(dtype).reshape(2, 3)
        numbers = (CODES[dtype.kind], dtype.itemsize * 8, 1)
        seen = np.asarray(Tensor(array.ctypes.data, (2, 3), None, numbers, CPU, array))
        assert (seen.dtype, seen.ctypes.data) == (dtype, array.ctypes.data)
        np.testing.assert_array_equal(seen, array)


def test_a_view_writes_through_and_keeps_the_memory():
    tensor = tensor_of([1, 2, 3, 4], (2, 2))
    watched = tensor.owner.watch()

    with memoryview(tensor) as view:
        assert tensor._n_exports == 1
        view[1, 0] = 7
    assert tensor._n_exports == 0
    view = memoryview(tensor)
    del tensor
    assert view.tolist() == [[1, 2], [7, 4]]
    del view
    assert watched() is None


def test_strides_go_any_way():
    memory = tensor_of([0, 1, 2, 3, 4, 5]).owner
    at = memory.address

    def values(address, shape, strides):
        tensor = Tensor(address, shape, strides, FLOAT32, CPU, memory)
        return memoryview(tensor).tolist()

    assert values(at, (3, 2), (1, 3)) == [[0, 3], [1, 4], [2, 5]]
    assert values(at + 20, (6,), (-1,)) == [5, 4, 3, 2, 1, 0]
    assert values(at, (2, 2), (0, 1)) == [[0, 1], [0, 1]]


def test_flat_bytes_only_of_contiguous_memory_and_none_for_writing_of_what_is_read_only():
    memory = Memory(64)
    gaps = Tensor(memory.address, (4,), (2,), FLOAT32, CPU, memory)

    assert bytes(tensor_of([0, 0])) == b"\0" * 8
    with pytest.raises(BufferError, match="contiguous"):
        get_buffer(gaps, SIMPLE)
    read_only = tensor_of([1], read_only=True)
    assert memoryview(read_only).readonly
    with pytest.raises(BufferError, match="read-only"):
        get_buffer(read_only, WRITABLE)


@pytest.mark.parametrize(
    ("dtype", "device", "said"),
    [
        (FLOAT32, (12, 0), "not the host's"),
        ((4, 16, 1), CPU, "no format"),
        ((2, 32, 2), CPU, "no format"),
    ],
)
def test_what_buffers_cannot_say_is_refused(dtype, device, said):
    with pytest.raises(BufferError, match=said):
        memoryview(Tensor(64, (4,), None, dtype, device, None))


def test_scalars_and_empty_tensors():
    """What has no elements has no address."""
    empty = Tensor(64, (3, 0), None, FLOAT32, CPU, None)
    assert (empty.address, empty.size, empty.nbytes) == (0, 0, 0)
    assert memoryview(tensor_of([3], ())).tolist() == 3
    assert memoryview(Tensor(0, (0, 2), None, FLOAT32, CPU, None)).tolist() == []
    assert np.asarray(Tensor(0, (2, 0), None, FLOAT32, CPU, None)).shape == (2, 0)
