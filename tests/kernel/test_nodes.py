"""From the types of inputs and a caller's attributes to a node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modular_tf.abi.data_types import DATA_TYPES
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


def test_a_list_of_one_type_gives_its_number_and_is_flattened():
    node = build_node(CONCAT, [[FLOAT] * 3, INT64])

    assert node.attrs == {"N": 3, "T": FLOAT, "Tidx": INT64}
    assert node.input_types == (FLOAT, FLOAT, FLOAT, INT64)
    assert node.input_ranges == {"values": range(3), "axis": range(3, 4)}


def test_a_list_of_several_types_is_an_attribute_of_inputs_and_outputs():
    inputs = [(FLOAT, STRING), [INT64] * 2, [STRING] * 2]

    node = build_node(BATCH, inputs, {"out": "float64"})

    assert node.attrs == {"Tin": (FLOAT, STRING), "N": 2, "out": DOUBLE}
    assert node.output_types == (FLOAT, STRING, DOUBLE, DOUBLE, INT32)
    assert node.output_ranges == {
        "copies": range(2),
        "sums": range(2, 4),
        "count": range(4, 5),
    }


def test_lists_without_elements_have_empty_ranges():
    node = build_node(BATCH, [[FLOAT], [], []], {"out": FLOAT})

    assert node.attrs["N"] == 0
    assert node.input_ranges["seeds"] == range(1, 1)
    assert node.output_ranges["sums"] == range(1, 1)


def test_inputs_win_over_a_type_that_the_caller_gives():
    assert build_node(MATMUL, [FLOAT, FLOAT], {"T": "int32"}).attrs["T"] is FLOAT


def test_types_that_contradict_are_refused_by_the_index_of_the_input():
    error = refusal(MATMUL, [FLOAT, INT32])

    assert error.rule == INPUT_TYPES_AGREE
    expected = "input #1 ('b') was expected to be a float tensor but is a int32 tensor"
    assert expected in error.message
    assert "T is that of input 'a'" in error.message


def test_a_type_that_contradicts_inside_a_list_is_refused_by_its_flattened_index():
    error = refusal(CONCAT, [[FLOAT, FLOAT, DOUBLE], INT32])

    assert error.rule == INPUT_TYPES_AGREE
    assert "input #2 ('values')" in error.message


def test_a_fixed_type_is_demanded():
    error = refusal(BATCH, [[FLOAT], [INT32], [STRING]], {"out": FLOAT})

    assert error.rule == INPUT_TYPES_AGREE
    assert "input #1 ('seeds') was expected to be a int64 tensor" in error.message


def test_two_lists_of_one_attribute_have_the_same_types():
    pair = OpDefinition(
        "Pair",
        (ArgDefinition("a", type_list_attr="L"), ArgDefinition("b", type_list_attr="L")),
        (),
        (attr("L", "type", is_list=True, minimum=1),),
    )

    other_type = refusal(pair, [[FLOAT, INT32], [FLOAT, INT64]])
    other_length = refusal(pair, [[FLOAT, INT32], [FLOAT]])

    assert build_node(pair, [[FLOAT, INT32], [FLOAT, INT32]]).attrs["L"] == (FLOAT, INT32)
    assert other_type.rule == INPUT_TYPES_AGREE
    assert "input #3 ('b')" in other_type.message
    assert other_length.rule == INPUTS_FIT
    assert "'b' expects 2 tensors, as 'a' has; it got 1" in other_length.message


def test_two_lists_of_one_number_have_the_same_length():
    error = refusal(BATCH, [[FLOAT], [INT64, INT64], [STRING]], {"out": FLOAT})

    assert error.rule == INPUTS_FIT
    assert "'names' expects 2 tensors, which is N of 'seeds'; it got 1" in error.message


@pytest.mark.parametrize("inputs", [[], [FLOAT], [FLOAT] * 3])
def test_too_few_or_too_many_inputs_are_refused_with_the_signature(inputs):
    error = refusal(MATMUL, inputs)

    assert error.rule == INPUTS_FIT
    assert f"expects 2 inputs (a: T, b: T), got {len(inputs)}" in error.message
    assert repr(MATMUL) in error.message


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ([FLOAT, INT32], "'values' (N*T) expects a list of tensors, got one"),
        ([[FLOAT, FLOAT], [INT32]], "'axis' (Tidx) expects one tensor, got a list"),
    ],
)
def test_a_list_is_given_where_one_is_needed_and_nowhere_else(inputs, text):
    error = refusal(CONCAT, inputs)

    assert error.rule == INPUTS_FIT
    assert text in error.message


@pytest.mark.parametrize("name", ["transposed", "_kernel"])
def test_an_unknown_attribute_is_refused_with_those_that_exist(name):
    error = refusal(MATMUL, [FLOAT, FLOAT], {name: True})

    assert error.rule == ATTRIBUTES_FIT
    assert f"attribute {name!r} does not exist; MatMul has transpose_a, " in error.message


def test_a_missing_attribute_is_refused_with_its_kind():
    error = refusal(CONV, [FLOAT], {"padding": "SAME"})

    assert error.rule == ATTRIBUTES_FIT
    assert "'strides' (list(int) >= 2) is missing and has no default" in error.message


@pytest.mark.parametrize(
    ("attrs", "text"),
    [
        ({"padding": "BAD"}, "'padding' is 'BAD', which is not one of 'SAME', 'VALID'"),
        ({"strides": [1]}, "'strides' has 1 elements; the minimum is 2"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused(attrs, text):
    error = refusal(CONV, [FLOAT], {"strides": [1, 1], "padding": "SAME", **attrs})

    assert error.rule == ATTRIBUTE_ALLOWED
    assert text in error.message


def test_a_type_that_inputs_give_must_be_allowed():
    error = refusal(MATMUL, [STRING, STRING])

    assert error.rule == ATTRIBUTE_ALLOWED
    assert "'T' is string, which is not one of float, double, int32" in error.message


@pytest.mark.parametrize("number", [0, 1])
def test_a_number_that_inputs_give_has_a_minimum(number):
    error = refusal(CONCAT, [[FLOAT] * number, INT32])

    assert error.rule == ATTRIBUTE_ALLOWED
    assert f"'N' is {number}; the minimum is 2" in error.message


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


def test_zeros_of_two_signs_make_two_nodes():
    scale = OpDefinition("Scale", attrs=(attr("by", "float"),))

    assert build_node(scale, [], {"by": 0.0}) != build_node(scale, [], {"by": -0.0})


def test_a_node_cannot_be_changed():
    node = build_node(MATMUL, [FLOAT, FLOAT])

    with pytest.raises(TypeError):
        node.attrs["T"] = DOUBLE


# -- properties ------------------------------------------------------------------------------------

TYPES = st.sampled_from(DATA_TYPES)


@st.composite
def attr_definitions(draw):
    kind = draw(st.sampled_from(["int", "string", "type", "bool", "float"]))
    is_list = draw(st.booleans())
    fields = {"is_list": is_list}
    if is_list or kind == "int":
        fields["minimum"] = draw(st.none() | st.integers(-3, 3))
    if kind == "type":
        fields["allowed"] = draw(st.none() | st.lists(TYPES, min_size=1).map(tuple))
    if kind == "string":
        texts = st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=1)
        fields["allowed"] = draw(st.none() | texts.map(tuple))
    return kind, fields


VALUES = {
    "int": st.integers(-5, 5),
    "string": st.sampled_from(["", "a", "b", "c", "d"]),
    "type": TYPES,
    "bool": st.booleans(),
    "float": st.floats(allow_nan=False),
}


@given(attr_definitions(), st.data())
def test_values_of_a_node_are_always_allowed(described, data):
    kind, fields = described
    definition = OpDefinition("Any", attrs=(attr("x", kind, **fields),))
    one = VALUES[kind]
    value = data.draw(st.lists(one, max_size=4) if fields["is_list"] else one)

    if _is_allowed(value, fields, kind):
        found = build_node(definition, [], {"x": value}).attrs["x"]
        assert found == (tuple(value) if fields["is_list"] else value)
    else:
        assert refusal(definition, [], {"x": value}).rule == ATTRIBUTE_ALLOWED


def _is_allowed(value, fields, kind) -> bool:
    each = value if fields["is_list"] else [value]
    size = len(value) if fields["is_list"] else value if kind == "int" else 0
    minimum = fields.get("minimum")
    allowed = fields.get("allowed")
    return (minimum is None or size >= minimum) and (
        allowed is None or all(one in allowed for one in each)
    )


def test_a_default_is_taken_as_the_definition_has_it():
    shaped = OpDefinition("Shaped", attrs=(defaulted("shape", "shape", None),))

    assert build_node(shaped, []).attrs["shape"] is None
    assert freeze(None) is None
