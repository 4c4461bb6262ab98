"""Arrays whose elements are packed or padded, over one another and in every memory."""

from __future__ import annotations

import numpy as np
import pytest

from modular_tf.abi.dlpack_elements import ELEMENT_TYPES
from modular_tf.errors import InvalidArgumentError
from modular_tf.native.tensor import Tensor
from tests.dlpack.memory import CPU, Memory
from tests.dlpack.packing_model import DTYPES, lane_values, packed, padded

SIZES = [("device", 0), ("device", 1), ("device", 8), ("device", 17), ("host", 17), ("unified", 17)]
LAYOUTS = {False: packed, True: padded}
SUBBYTE = [one for one in ELEMENT_TYPES if one.is_subbyte and one.module is not None]


def tensor_of(dtype, values, count, *, is_padded):
    data = LAYOUTS[is_padded](dtype, values)
    memory = Memory(len(data) or 1)
    memory.bytes[: len(data)] = data
    return Tensor(memory.address, (count,), None, dtype, CPU, memory, is_padded=is_padded)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_either_layout_is_copied_over_either(cpu, dtype):
    for memory, count in SIZES:
        before, after = lane_values(dtype, count), lane_values(dtype, count, seed=1)
        for is_padded, layout in LAYOUTS.items():
            made = tensor_of(dtype, before, count, is_padded=is_padded)
            with cpu.put(made, memory=memory) as array:
                assert array.to_bytes() == layout(dtype, before)
                assert array.nbytes == len(array.memory)
                for source_is_padded in LAYOUTS:
                    array.copy_from(tensor_of(dtype, after, count, is_padded=source_is_padded))
                    assert array.is_padded is is_padded
                    assert array.to_bytes() == layout(dtype, after)


@pytest.mark.parametrize("element", SUBBYTE, ids=lambda element: element.name)
def test_numpys_elements_are_packed_for_a_packed_array_and_unpacked_for_numpy(cpu, element):
    values = lane_values(element.dtype, 7)
    packed_array = cpu.put(tensor_of(element.dtype, [0] * 7, 7, is_padded=False))
    numpys = np.frombuffer(bytes(values), np.uint8).view(element.to_numpy())
    packed_array.copy_from(numpys)

    assert packed_array.to_bytes() == packed(element.dtype, values)
    with pytest.raises(InvalidArgumentError, match="does not begin a byte"):
        packed_array[3:]
    back = packed_array.to_numpy()
    assert (back.dtype, back.tobytes()) == (element.to_numpy(), bytes(values))
    if element.name.startswith("int"):
        half = 1 << (element.bits - 1)
        assert back.astype(int).tolist() == [(value ^ half) - half for value in values]
    with cpu.put(numpys) as padded_array:
        assert padded_array.is_padded
        padded_array.copy_from(packed_array)
        assert padded_array.to_bytes() == bytes(values)
        assert padded_array[3:].to_bytes() == bytes(values[3:])
