"""Python's values as attributes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from modular_tf.abi.data_types import data_type
from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.node import TensorValue, attr_key, convert_value
from modular_tf.kernel.op_definition import FunctionName, TensorText
from modular_tf.rules.kernel import ATTRIBUTES_FIT
from tests.kernel.samples import FLOAT, INT32, STRING, attr

GOOD = [
    ("bool", True, True),
    ("int", 2**63 - 1, 2**63 - 1),
    ("float", 0.5, 0.5),
    ("float", np.float32(0.25), 0.25),
    ("string", b"\xff", "\udcff"),
    ("type", "float32", FLOAT),
    ("type", np.float32, FLOAT),
    ("type", ml_dtypes.bfloat16, data_type("bfloat16")),
    ("shape", (2, None, 3), (2, -1, 3)),
    ("shape", np.array([4, -1]), (4, -1)),
    ("shape", None, None),
    ("func", "f", FunctionName("f")),
    ("tensor", np.array([[1, 2]], "int32"), TensorValue(INT32, (1, 2), b"\1\0\0\0\2\0\0\0")),
    ("tensor", np.array(3, ">i4"), TensorValue(INT32, (), b"\3\0\0\0")),
    ("tensor", np.array(["a", b"b"], object), TensorValue(STRING, (2,), (b"a", b"b"))),
    ("tensor", TensorText("dtype: DT_INT32"), TensorText("dtype: DT_INT32")),
]
BAD = [
    ("bool", 1),
    ("int", True),
    ("int", 1.0),
    ("int", 2**63),
    ("float", True),
    ("float", 10**400),
    ("string", 1),
    ("type", "float31"),
    ("type", None),
    ("shape", 3),
    ("shape", (-2,)),
    ("tensor", [1, 2]),
    ("func", 1),
]


@pytest.mark.parametrize(("kind", "value", "expected"), GOOD)
def test_a_value_of_the_kind_is_converted(kind, value, expected):
    found = convert_value("Op", attr("x", kind), value)

    assert found == expected
    assert type(found) is type(expected)
    assert convert_value("Op", attr("x", kind, is_list=True), [value, value]) == (expected,) * 2


@pytest.mark.parametrize(("kind", "value"), BAD)
def test_a_value_of_another_kind_is_refused(kind, value):
    with pytest.raises(InvalidArgumentError) as raised:
        convert_value("Op", attr("x", kind), value)

    assert raised.value.rule == ATTRIBUTES_FIT
    assert raised.value.message.startswith(f"Op: attribute 'x' expects {kind}, got ")
    assert f"({type(value).__name__})" in raised.value.message


@pytest.mark.parametrize("value", [1, b"ab" * 5000])
def test_a_list_is_needed_where_the_kind_is_one(value):
    with pytest.raises(InvalidArgumentError, match="a list is needed") as raised:
        convert_value("Op", attr("x", "string", is_list=True), value)
    assert len(raised.value.message) < 200, "a long value is shown in part"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0.0, -0.0),
        ("a", b"a"),
        ([1, 2], [True, 2]),
        (FLOAT, INT32),
    ],
)
def test_keys_tell_values_apart_that_make_different_nodes(one, other):
    assert attr_key({"x": one}) != attr_key({"x": other})
    assert attr_key({"x": one}) is not None
    assert attr_key({"x": [np.arange(3)]}) is None, "it may change"
