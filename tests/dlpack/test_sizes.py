"""How many bytes elements have: one formula, for every element type and layout."""

from __future__ import annotations

import pytest

from modular_tf.native.tensor import Tensor, bytes_of_elements
from tests.dlpack.memory import CPU
from tests.dlpack.packing_model import DTYPES, lane_values, packed, padded

COUNTS = (0, 1, 2, 3, 7, 8, 17)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bytes_are_those_of_the_model(dtype):
    for count in COUNTS:
        values = lane_values(dtype, count)
        for is_padded, layout in ((False, packed), (True, padded)):
            expected = len(layout(dtype, values))
            tensor = Tensor(64, (count,), None, dtype, CPU, None, is_padded=is_padded)
            assert bytes_of_elements((count,), dtype, is_padded) == expected
            assert bytes_of_elements((1, count, 1), dtype, is_padded) == expected
            assert tensor.nbytes == expected


@pytest.mark.parametrize(
    ("shape", "dtype", "says"),
    [
        ((1 << 61,), (2, 64, 1), "larger than memory"),
        ((1 << 62,), (0, 4, 1), "larger than memory"),
        ((-1,), (2, 32, 1), "negative"),
        ((1,) * 65, (2, 32, 1), "64"),
        ((1,), (18, 32, 1), "code 18"),
        ((1,), (2, 32, 1 << 16), "65536"),
        ((1 << 64,), (2, 32, 1), "larger than memory"),
    ],
)
def test_what_has_no_size_is_refused(shape, dtype, says):
    with pytest.raises(ValueError, match=says):
        bytes_of_elements(shape, dtype, False)
