"""What a caller may give as an input, and what it is to kernels then."""

from __future__ import annotations

import struct
import sys

import numpy as np
import pytest

from modular_tf.abi.data_types import by_name
from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.inputs import given_tensor
from modular_tf.kernel.op import _given
from tests.kernel.samples import CONCAT, DOUBLE, FLOAT, INT32, MATMUL

KERNELS = "host_kernels"


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.float64(1.5), np.float64(2)),
        (np.float32(1.5), np.float32(2)),
        (np.int64(1), np.int64(2)),
        (np.ones(3), np.float64(2)),
    ],
)
def test_a_scalar_of_numpy_has_its_type(device, x, y):
    found = device.op("AddV2")(x, y).to_numpy()

    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x + y)
    with pytest.raises(InvalidArgumentError, match="KN-044"):
        device.op("AddV2")(x, np.float16(0.5))  # it is not converted


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_a_bool_is_no_number_and_infinity_is_one(device, dtype):
    with pytest.raises(InvalidArgumentError, match="True is no "):
        device.op("AddV2")(np.ones(2, dtype), True)
    assert device.op("AddV2")(np.ones(1), float("inf")).to_numpy() == [np.inf]


@pytest.mark.parametrize("kind", ["float", "half", "bfloat16", "complex64", "int8", "uint64"])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_that_is_too_large_is_refused(kind, sign):
    value = sign * (2**64 if "int" in kind else 1e300)
    with pytest.raises(InvalidArgumentError, match=f"is no {kind}"):
        given_tensor("Op", MATMUL.inputs[0], value, by_name(kind))


@pytest.mark.parametrize("bits", [0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0x7FF8000000000000])
def test_each_nan_stays_one(bits):
    nan = struct.unpack("=d", bits.to_bytes(8, sys.byteorder))[0]
    found = given_tensor("Op", MATMUL.inputs[0], nan, by_name("bfloat16")).source

    upper = int.from_bytes(found.data, sys.byteorder)
    assert upper & 0x7F80 == 0x7F80
    assert upper & 0x7F


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.0, np.ones(2)], DOUBLE),
        ([np.ones(2), 1], DOUBLE),
        ([1.0, 2], FLOAT),
        ([1, 2], INT32),
    ],
)
def test_numbers_in_a_list_have_the_type_of_its_arrays(values, kind):
    found = _given(CONCAT, [values, 0], {})[0]

    assert {each.type for each in found} == {kind}
