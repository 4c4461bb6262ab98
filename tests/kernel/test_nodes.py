"""From the types of inputs and a caller's attributes to a node."""

from __future__ import annotations

import pytest

from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.node import build_node, freeze
from modular_tf.kernel.op_definition import ArgDefinition, OpDefinition
from modular_tf.rules.kernel import (
    ATTRIBUTE_ALLOWED,
    ATTRIBUTES_FIT,
    INPUT_TYPES_AGREE,
    INPUTS_FIT,
)
from tests.kernel.samples import (
    BATCH,
    CONCAT,
    CONV,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    MATMUL,
    STRING,
    attr,
    defaulted,
)


def refusal(definition, inputs, attrs=None) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as raised:
        build_node(definition, inputs, attrs)
    assert raised.value.operation == definition.name
    assert raised.value.message.startswith(f"{definition.name}: ")
    return raised.value


def test_inputs_give_types_and_defaults_fill_the_rest():
    node = build_node(MATMUL, [DOUBLE, DOUBLE], {"transpose_a": True})

    assert node.attrs == {"transpose_a": True, "transpose_b": False, "T": DOUBLE}
    assert list(node.attrs) == ["transpose_a", "transpose_b", "T"]
    assert (node.input_types, node.output_types) == ((DOUBLE, DOUBLE), (DOUBLE,))
    assert node.input_ranges == {"a": range(1), "b": range(1, 2)}
    given = build_node(MATMUL, [FLOAT, FLOAT], {"T": "int32"})
    assert given.attrs["T"] is FLOAT, "inputs win"


def test_a_list_of_one_type_gives_its_number_and_is_flattened():
    node = build_node(CONCAT, [[FLOAT] * 3, INT64])

    assert node.attrs == {"N": 3, "T": FLOAT, "Tidx": INT64}
    assert node.input_types == (FLOAT, FLOAT, FLOAT, INT64)
    assert node.input_ranges == {"values": range(3), "axis": range(3, 4)}


def test_a_list_of_several_types_is_an_attribute_of_inputs_and_outputs():
    inputs = [(FLOAT, STRING), [INT64] * 2, [STRING] * 2]

    node = build_node(BATCH, inputs, {"out": "float64"})
    empty = build_node(BATCH, [[FLOAT], [], []], {"out": FLOAT})

    assert node.attrs == {"Tin": (FLOAT, STRING), "N": 2, "out": DOUBLE}
    assert node.output_types == (FLOAT, STRING, DOUBLE, DOUBLE, INT32)
    assert node.output_ranges == {
        "copies": range(2),
        "sums": range(2, 4),
        "count": range(4, 5),
    }
    assert empty.attrs["N"] == 0
    assert empty.input_ranges["seeds"] == empty.output_ranges["sums"] == range(1, 1)


PAIR = OpDefinition(
    "Pair",
    (ArgDefinition("a", type_list_attr="L"), ArgDefinition("b", type_list_attr="L")),
    (),
    (attr("L", "type", is_list=True, minimum=1),),
)
SAME = {"strides": [1, 1], "padding": "SAME"}
OUT = {"out": FLOAT}
NOT_AGREEING = [
    (
        MATMUL,
        [FLOAT, INT32],
        {},
        "input #1 ('b') was expected to be a float tensor but is a int32 ",
    ),
    (MATMUL, [FLOAT, INT32], {}, "T is that of input 'a'"),
    (CONCAT, [[FLOAT, FLOAT, DOUBLE], INT32], {}, "input #2 ('values')"),
    (BATCH, [[FLOAT], [INT32], [STRING]], OUT, "input #1 ('seeds') was expected to be a int64 t"),
    (PAIR, [[FLOAT, INT32], [FLOAT, INT64]], {}, "input #3 ('b')"),
]
NOT_FITTING = [
    (MATMUL, [], {}, "expects 2 inputs (a: T, b: T), got 0"),
    (MATMUL, [FLOAT] * 3, {}, "expects 2 inputs (a: T, b: T), got 3"),
    (MATMUL, [FLOAT], {}, repr(MATMUL)),
    (PAIR, [[FLOAT, INT32], [FLOAT]], {}, "'b' expects 2 tensors, as 'a' has; it got 1"),
    (
        BATCH,
        [[FLOAT], [INT64, INT64], [STRING]],
        OUT,
        "'names' expects 2 tensors, which is N of 'seeds'; it got 1",
    ),
    (CONCAT, [FLOAT, INT32], {}, "'values' (N*T) expects a list of tensors, got one"),
    (CONCAT, [[FLOAT] * 2, [INT32]], {}, "'axis' (Tidx) expects one tensor, got a list"),
]
WRONG_ATTRIBUTES = [
    (MATMUL, [FLOAT] * 2, {"transposed": True}, "'transposed' does not exist; MatMul has trans"),
    (MATMUL, [FLOAT] * 2, {"_kernel": True}, "'_kernel' does not exist; MatMul has transpose_a, "),
    (CONV, [FLOAT], {"padding": "SAME"}, "'strides' (list(int) >= 2) is missing and has no def"),
]
SIZED = OpDefinition(
    "Sized",
    attrs=(
        defaulted("n", "int", 2, minimum=2),
        defaulted("kinds", "type", (), is_list=True, allowed=(FLOAT,)),
        defaulted("names", "string", (), is_list=True, allowed=("a", "b")),
    ),
)
NOT_ALLOWED = [
    (SIZED, [], {"n": 1}, "'n' is 1; the minimum is 2"),
    (SIZED, [], {"kinds": [FLOAT, INT32]}, "int32, which is not one of float"),
    (SIZED, [], {"names": ["b", "c"]}, "'c', which is not one of 'a', 'b'"),
    (CONV, [FLOAT], {**SAME, "padding": "BAD"}, "'padding' is 'BAD', which is not one of 'SAME',"),
    (CONV, [FLOAT], {**SAME, "strides": [1]}, "'strides' has 1 elements; the minimum is 2"),
    (MATMUL, [STRING] * 2, {}, "'T' is string, which is not one of float, double, int32"),
    (CONCAT, [[], INT32], {}, "'N' is 0; the minimum is 2"),
    (CONCAT, [[FLOAT], INT32], {}, "'N' is 1; the minimum is 2"),
]


@pytest.mark.parametrize(
    ("rule", "calls"),
    [
        (INPUT_TYPES_AGREE, NOT_AGREEING),
        (INPUTS_FIT, NOT_FITTING),
        (ATTRIBUTES_FIT, WRONG_ATTRIBUTES),
        (ATTRIBUTE_ALLOWED, NOT_ALLOWED),
    ],
)
def test_a_call_that_does_not_fit_its_definition_is_refused(rule, calls):
    for definition, inputs, attrs, text in calls:
        error = refusal(definition, inputs, attrs)
        assert error.rule == rule
        assert text in error.message


def test_nodes_are_equal_if_one_kernel_object_can_serve_both():
    one = build_node(CONV, [FLOAT], {"strides": [1, 1], "padding": "SAME"})
    same = build_node(CONV, [FLOAT], {"padding": b"SAME", "strides": (1, 1)})
    others = [
        build_node(CONV, [DOUBLE], {"strides": [1, 1], "padding": "SAME"}),
        build_node(CONV, [FLOAT], {"strides": [1, 2], "padding": "SAME"}),
        build_node(CONV, [FLOAT], {"strides": [1, 1], "padding": "SAME"}, label="own"),
    ]

    assert one == same
    assert list(one.attrs) == list(same.attrs) == ["T", "strides", "padding"]
    assert hash(one) == hash(same)
    assert all(one != other for other in others)


def test_a_default_is_taken_as_the_definition_has_it():
    shaped = OpDefinition("Shaped", attrs=(defaulted("shape", "shape", None),))

    assert build_node(shaped, []).attrs["shape"] is None
    assert freeze(None) is None
