"""Definitions of operations: signature, text and equality."""

from __future__ import annotations

from dataclasses import replace
from inspect import Parameter

import pytest

from modular_tf.abi.data_types import by_name
from modular_tf.kernel.op_grammar import read_op_definition
from tests.kernel.spec_writer import record

CONCAT = read_op_definition(
    record("ConcatV2||N:int>=2;T:type;Tidx:{int32,int64}=int32|values:N*T;axis:Tidx|output:T")
)
CAST = read_op_definition(record("Cast||SrcT:type;DstT:type;Truncate:bool=false|x:SrcT|y:DstT"))


def test_inputs_come_by_position_or_name_and_have_no_default():
    values, axis = CONCAT.signature.parameters.values()

    assert (values.name, axis.name) == ("values", "axis")
    assert values.kind is axis.kind is Parameter.POSITIONAL_OR_KEYWORD
    assert values.default is axis.default is Parameter.empty


def test_attributes_that_no_input_gives_come_by_name():
    _, required, optional = CAST.signature.parameters.values()

    assert (required.name, required.default) == ("DstT", Parameter.empty)
    assert (optional.name, optional.default) == ("Truncate", False)
    assert required.kind is optional.kind is Parameter.KEYWORD_ONLY


@pytest.mark.parametrize(
    ("line", "inferred"),
    [
        ("A||T:type|x:T|", {"T"}),
        ("A||T:type|x:Ref(T)|", {"T"}),
        ("A||N:int;T:type|x:N*T|", {"N", "T"}),
        ("A||N:int;T:type|x:N*float|y:T", {"N"}),
        ("A||T:list(type)|x:T|", {"T"}),
        ("A||T:list(type);N:int||x:T;y:N*float", set()),
    ],
)
def test_inputs_give_types_and_numbers(line, inferred):
    definition = read_op_definition(record(line))

    assert definition.inferred_attrs == inferred
    assert inferred.isdisjoint(definition.signature.parameters)


def test_a_required_attribute_may_follow_one_with_a_default():
    definition = read_op_definition(record("A||p:int=1;q:int||"))

    assert definition.signature.bind(q=2).arguments == {"q": 2}


def test_keywords_of_python_have_an_underscore_as_parameters():
    definition = read_op_definition(record("A||class:int;T:type|in:T|"))

    assert list(definition.signature.parameters) == ["in_", "class_"]
    assert definition.inputs[0].name == "in"


def test_the_text_shows_the_call_and_what_the_inputs_give():
    assert repr(CONCAT) == (
        "ConcatV2(values: N*T, axis: Tidx) -> output: T; N: int >= 2; T: type; "
        "Tidx: type in {int32, int64} = data_type('int32')"
    )
    assert repr(CAST) == (
        "Cast(x: SrcT, *, DstT: type, Truncate: bool = False) -> y: DstT; SrcT: type"
    )


def test_the_text_shows_no_and_several_outputs():
    assert repr(read_op_definition(record("A||||"))) == "A() -> None"
    two = read_op_definition(record('A||p:{"a","b"}||x:float;y:Ref(int32)'))
    assert repr(two) == "A(*, p: string in {'a', 'b'}) -> (x: float, y: Ref(int32))"


def test_the_source_does_not_count_for_equality():
    assert replace(CONCAT, source="elsewhere") == CONCAT
    assert hash(replace(CONCAT, source="elsewhere")) == hash(CONCAT)
    assert replace(CONCAT, is_stateful=True) != CONCAT


def test_arguments_tell_what_they_stand_for():
    values, axis = CONCAT.inputs

    assert (values.is_list, values.number_attr, values.type_attr) == (True, "N", "T")
    assert (axis.is_list, axis.attrs) == (False, ("Tidx",))
    assert CONCAT.attrs_by_name["Tidx"].default is by_name("int32")
