"""Elements of less than 8 bits, packed and padded."""

from __future__ import annotations

import pytest

from modular_tf.native.tensor import Tensor, bytes_of_elements, consume, repacked
from tests.dlpack.memory import CPU, Memory
from tests.dlpack.packing_model import DTYPES, lane_values, packed, padded

COUNTS = (0, 1, 2, 3, 7, 8, 17)
BYTE = (1, 8, 1)


def tensor_over(data, count, dtype, **arguments):
    memory = Memory(len(data) or 1)
    memory.bytes[: len(data)] = data
    return Tensor(memory.address, (count,), None, dtype, CPU, memory, **arguments)


def bytes_of(tensor):
    flat = Tensor(tensor.address, (tensor.nbytes,), None, BYTE, CPU, tensor)
    return bytes(memoryview(flat))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_are_packed_and_unpacked_as_the_model_does(dtype):
    for count in COUNTS:
        values = lane_values(dtype, count)
        layouts = {False: packed(dtype, values), True: padded(dtype, values)}
        for is_padded, data in layouts.items():
            tensor = tensor_over(data, count, dtype, is_padded=is_padded)
            for shape in ((count,), (1, count, 1)):
                assert bytes_of_elements(shape, dtype, is_padded) == tensor.nbytes == len(data)
            for wanted, expected in layouts.items():
                made = repacked(tensor, wanted)
                assert bytes_of(made) == expected
                assert (made.is_padded, made.is_copied) == (wanted, True)
                assert (made.shape, made.dlpack_dtype) == (tensor.shape, dtype)
            copied = consume(tensor.__dlpack__(copy=True, max_version=(1, 0)))
            assert (bytes_of(copied), copied.is_padded) == (data, is_padded)


def test_bits_above_a_padded_element_are_not_packed_and_only_compact_host_memory_is():
    signed = tensor_over(b"\xff\x08\xf1", 3, (0, 4, 1), is_padded=True)
    assert bytes_of(repacked(signed, False)) == b"\x8f\x01"

    memory = Memory(8)
    gaps = Tensor(memory.address, (3,), (2,), (0, 4, 1), CPU, memory, is_padded=True)
    device = Tensor(64, (3,), None, (0, 4, 1), (12, 0), None)

    with pytest.raises(BufferError, match="compact"):
        repacked(gaps, False)
    with pytest.raises(BufferError, match="host memory"):
        repacked(device, True)
    with pytest.raises(TypeError, match="modular_tf tensor"):
        repacked(3, True)


@pytest.mark.parametrize(
    ("shape", "dtype", "says"),
    [
        ((1 << 61,), (2, 64, 1), "larger than memory"),
        ((1,) * 65, (2, 32, 1), "64"),
        ((1,), (18, 32, 1), "code 18"),
        ((1,), (2, 32, 1 << 16), "65536"),
    ],
)
def test_what_has_no_size_is_refused(shape, dtype, says):
    with pytest.raises(ValueError, match=says):
        bytes_of_elements(shape, dtype, False)
