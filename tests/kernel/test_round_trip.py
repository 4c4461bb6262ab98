"""Definition to record to definition, for definitions of every shape."""

from __future__ import annotations

import inspect
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from modular_tf.abi.data_types import DATA_TYPES
from modular_tf.kernel.op_definition import (
    ArgDefinition,
    AttrDefinition,
    FunctionName,
    OpDefinition,
    TensorText,
)
from modular_tf.kernel.op_grammar import read_op_definition, shortest_float
from modular_tf.kernel.registry import compare
from tests.kernel.spec_writer import record_of

STRINGS = st.binary(max_size=8).map(lambda content: content.decode("utf-8", "surrogateescape"))
TYPES = st.sampled_from(DATA_TYPES)
VALUES = {
    "string": STRINGS,
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32).map(shortest_float),
    "bool": st.booleans(),
    "type": TYPES,
    "shape": st.none() | st.lists(st.integers(-1, 2**40), max_size=4).map(tuple),
    "tensor": st.sampled_from(
        [
            "{}",
            "{dtype: DT_INT32 tensor_shape {dim {size: 2}} int_val: [1, 2]}",
            "{string_val: '\\'}'}",
        ]
    ).map(TensorText),
    "func": STRINGS.map(FunctionName),
}
ALLOWED = {
    kind: st.lists(VALUES[kind], min_size=1, max_size=4).map(tuple) for kind in ("string", "type")
}


@st.composite
def attr_definitions(draw, name):
    kind = draw(st.sampled_from(sorted(VALUES)))
    is_list = draw(st.booleans())
    allowed = draw(st.none() | ALLOWED[kind]) if kind in ALLOWED else None
    value = VALUES[kind] if allowed is None else st.sampled_from(allowed)
    minimum = None
    if is_list:
        minimum = draw(st.integers(0, 2))
        value = st.lists(value, min_size=minimum, max_size=4).map(tuple)
    elif kind == "int":
        minimum = draw(st.integers(-(2**40), 2**40))
        value = st.integers(minimum, 2**63 - 1)
    has_default = draw(st.booleans())
    default = draw(value) if has_default else None
    return AttrDefinition(name, kind, is_list, allowed, minimum, default, has_default)


@st.composite
def arg_definitions(draw, name, attrs):
    numbers = [attr.name for attr in attrs if (attr.kind, attr.is_list) == ("int", False)]
    number = draw(st.none() | st.sampled_from(numbers)) if numbers else None
    types = [attr for attr in attrs if attr.kind == "type" and not (number and attr.is_list)]
    element = draw(st.sampled_from([*types, *DATA_TYPES[:3]]))
    field = "type"
    if isinstance(element, AttrDefinition):
        field = "type_list_attr" if element.is_list else "type_attr"
        element = element.name
    return ArgDefinition(name, number_attr=number, is_ref=draw(st.booleans()), **{field: element})


@st.composite
def op_definitions(draw):
    attrs = [draw(attr_definitions(f"a{index}")) for index in range(draw(st.integers(0, 5)))]
    inputs = [draw(arg_definitions(f"i{index}", attrs)) for index in range(draw(st.integers(0, 4)))]
    outputs = [
        draw(arg_definitions(f"o{index}", attrs)) for index in range(draw(st.integers(0, 3)))
    ]
    flags = [draw(st.booleans()) for _ in range(5)]
    return OpDefinition("Op_1", tuple(inputs), tuple(outputs), tuple(attrs), *flags)


@given(op_definitions())
def test_a_written_definition_is_read_as_the_same(definition):
    assert read_op_definition(record_of(definition)) == definition


@given(op_definitions())
def test_every_definition_has_a_signature_and_a_text(definition):
    parameters = definition.signature.parameters
    required = [each for each in parameters.values() if each.default is inspect.Parameter.empty]

    assert definition.signature.bind(**{each.name: 0 for each in required})
    assert repr(definition).startswith("Op_1(")


@given(op_definitions(), st.randoms(use_true_random=False))
def test_the_order_of_attributes_is_no_difference(definition, random):
    attrs = list(definition.attrs)
    random.shuffle(attrs)

    assert compare(replace(definition, attrs=tuple(attrs)), definition) == []


@given(op_definitions(), op_definitions())
def test_different_parts_are_differences(definition, other):
    mixed = replace(other, inputs=definition.inputs, outputs=definition.outputs)
    subjects = {each.partition(" ")[0] for each in compare(mixed, definition)}

    assert subjects <= {"attribute", "the"}
    assert ("the" in subjects) == (_flags(other) != _flags(definition))
    assert ("attribute" in subjects) >= ({*other.attrs_by_name} != {*definition.attrs_by_name})


def _flags(definition):
    return record_of(definition).split("\0")[1].replace("D", "")
