"""Definitions of operations: signature, text and equality."""

from __future__ import annotations

from dataclasses import replace
from inspect import Parameter

import pytest

from modular_tf.kernel.op_grammar import read_op_definition
from tests.kernel.spec_writer import record

CONCAT = read_op_definition(
    record("ConcatV2||N:int>=2;T:type;Tidx:{int32,int64}=int32|values:N*T;axis:Tidx|output:T")
)
CAST = read_op_definition(record("Cast||SrcT:type;DstT:type;Truncate:bool=false|x:SrcT|y:DstT"))


def test_inputs_come_by_position_or_name_and_attributes_that_they_do_not_give_by_name():
    values, axis = CONCAT.signature.parameters.values()
    x, required, optional = CAST.signature.parameters.values()

    assert [each.name for each in (values, axis, x)] == ["values", "axis", "x"]
    assert {each.kind for each in (values, axis, x)} == {Parameter.POSITIONAL_OR_KEYWORD}
    assert {each.default for each in (values, axis, x, required)} == {Parameter.empty}
    assert (required.name, optional.name, optional.default) == ("DstT", "Truncate", False)
    assert required.kind is optional.kind is Parameter.KEYWORD_ONLY
    later = read_op_definition(record("A||p:int=1;q:int||"))
    assert later.signature.bind(q=2).arguments == {"q": 2}


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        (
            CONCAT,
            (
                "ConcatV2(values: N*T, axis: Tidx) -> output: T; N: int >= 2; T: type; "
                "Tidx: type in {int32, int64} = data_type('int32')"
            ),
        ),
        (CAST, "Cast(x: SrcT, *, DstT: type, Truncate: bool = False) -> y: DstT; SrcT: type"),
        (read_op_definition(record("A||||")), "A() -> None"),
        (
            read_op_definition(record('A||p:{"a","b"}||x:float;y:Ref(int32)')),
            "A(*, p: string in {'a', 'b'}) -> (x: float, y: Ref(int32))",
        ),
    ],
)
def test_the_text_shows_the_call_and_what_the_inputs_give(definition, text):
    assert repr(definition) == text


def test_keywords_of_python_have_an_underscore_as_parameters():
    definition = read_op_definition(record("A||class:int;T:type|in:T|"))

    assert list(definition.signature.parameters) == ["in_", "class_"]
    assert definition.inputs[0].name == "in"


def test_the_source_does_not_count_for_equality():
    assert replace(CONCAT, source="elsewhere") == CONCAT
    assert hash(replace(CONCAT, source="elsewhere")) == hash(CONCAT)
    assert replace(CONCAT, is_stateful=True) != CONCAT
