"""Canonical lines: what they say, and which are rejected."""

from __future__ import annotations

import math

import pytest

from modular_tf.abi.data_types import by_name
from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.canonical_line import read_op_definition
from modular_tf.kernel.op_definition import (
    ArgDefinition,
    AttrDefinition,
    FunctionName,
    OpDefinition,
    TensorText,
)
from tests.kernel.canonical_writer import canonical_line

FLOAT, INT32 = by_name("float"), by_name("int32")


def _attr(text):
    (attr,) = read_op_definition(f"A||{text}||").attrs
    return attr


def _default(text):
    attr = _attr(f"a:{text}")
    assert attr.has_default
    return attr.default


def _arg(text, attrs="T:type;N:int;L:list(type)"):
    (arg,) = read_op_definition(f"A||{attrs}|{text}|").inputs
    return arg


def test_a_line_tells_the_whole_definition():
    line = "ConcatV2|SD|N:int>=2;T:type;Tidx:type{int32,int64}=int32|values:N*T;axis:Tidx|output:T"

    assert read_op_definition(line, "here") == OpDefinition(
        name="ConcatV2",
        inputs=(
            ArgDefinition("values", type_attr="T", number_attr="N"),
            ArgDefinition("axis", type_attr="Tidx"),
        ),
        outputs=(ArgDefinition("output", type_attr="T"),),
        attrs=(
            AttrDefinition("N", "int", minimum=2),
            AttrDefinition("T", "type"),
            AttrDefinition(
                "Tidx",
                "type",
                allowed=(INT32, by_name("int64")),
                default=INT32,
                has_default=True,
            ),
        ),
        is_stateful=True,
        is_deprecated=True,
    )
    assert read_op_definition(line, "here").source == "here"


@pytest.mark.parametrize(
    ("flag", "name"),
    [
        ("S", "is_stateful"),
        ("C", "is_commutative"),
        ("A", "is_aggregate"),
        ("U", "allows_uninitialized_input"),
        ("D", "is_deprecated"),
    ],
)
def test_each_flag_says_one_thing(flag, name):
    assert read_op_definition(f"A|{flag}|||") == OpDefinition("A", **{name: True})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("int=-3", -3),
        ("float=0.5", 0.5),
        ("float=-inf", -math.inf),
        ("float=1e-07", 1e-7),
        ("bool=true", True),
        ("bool=false", False),
        ("type=half", by_name("half")),
        ("shape=[2,-1]", (2, -1)),
        ("shape=[]", ()),
        ("shape=?", None),
        ("tensor=tensor(6162)", TensorText("ab")),
        ('func=func("f")', FunctionName("f")),
        ("list(int)=[]", ()),
        ("list(int)=[1,2]", (1, 2)),
        ("list(type)=[float,int32]", (FLOAT, INT32)),
        ("list(shape)=[[2,-1],?,[]]", ((2, -1), None, ())),
        ('list(func)=[func("f")]', (FunctionName("f"),)),
    ],
)
def test_defaults_of_every_kind(text, value):
    assert _default(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"SAME"', "SAME"),
        (r'""', ""),
        (r'"a\"b\\c"', 'a"b\\c'),
        (r'"\n\r\t"', "\n\r\t"),
        (r'"\x7c\x3b"', "|;"),
        (r'"\x41bc"', "Abc"),
        (r'"\101\0"', "A\0"),
        (r'"\xc3\xa9é"', "éé"),
        (r'"\xff"', "\udcff"),
        (r'"=>{}[],:*"', "=>{}[],:*"),
    ],
)
def test_strings_have_the_escapes_of_c(text, value):
    assert _default(f"string={text}") == value


@pytest.mark.parametrize("text", ["0.1", "0.10000000149011612", "0.100000001", "1e-1"])
def test_spellings_of_one_32_bit_number_are_equal(text):
    assert repr(_default(f"float={text}")) == "0.1"


def test_a_number_above_the_32_bit_ones_is_infinite():
    assert _default("float=-1e300") == -math.inf
    assert _default("float=3.4028235e+38") == 3.4028235e38


def test_definitions_with_what_is_no_number_can_be_equal():
    assert _attr("a:float=nan") == _attr("a:float=nan")


def test_types_have_allowed_values_minima_and_defaults():
    attr = _attr('a:list(string{"x","y"})>=1=["x"]')

    assert (attr.kind, attr.is_list, attr.allowed) == ("string", True, ("x", "y"))
    assert (attr.minimum, attr.default) == (1, ("x",))


def test_an_attribute_without_a_default_has_none():
    assert not _attr("a:shape").has_default
    assert _attr("a:shape=?").has_default


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x:float", ArgDefinition("x", type=FLOAT)),
        ("x:T", ArgDefinition("x", type_attr="T")),
        ("x:L", ArgDefinition("x", type_list_attr="L")),
        ("x:N*T", ArgDefinition("x", type_attr="T", number_attr="N")),
        ("x:N*float", ArgDefinition("x", type=FLOAT, number_attr="N")),
        ("x:Ref(T)", ArgDefinition("x", type_attr="T", is_ref=True)),
        ("x:Ref(N*T)", ArgDefinition("x", type_attr="T", number_attr="N", is_ref=True)),
    ],
)
def test_arguments_of_every_kind(text, expected):
    assert _arg(text) == expected
    assert f"{expected.name}:{expected.type_text}" == text


def test_a_name_of_a_type_is_never_an_attribute():
    assert _arg("x:half", "half:type").type is by_name("half")


def test_a_name_of_numpy_is_no_type():
    assert _arg("x:float32", "float32:type").type_attr == "float32"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("A||", "5 parts between '|', this one 3"),
        ("A|||||", "this one 6"),
        ("A|Z|||", "unknown flags"),
        ("A||a||", "expected ':' at 1 of 'a', found 'the end'"),
        ("A||a:number||", "expected one of string, int.* at 2 of .*, found 'number'"),
        ("A||a:list(int||", r"expected '\)'"),
        ("A||a:int{1}||", "no allowed values for int"),
        ("A||a:type{float32}||", "expected a data type at 7"),
        ("A||a:int=x||", "expected an integer at 6"),
        ("A||a:int>=||", "expected an integer"),
        ("A||a:int=1 ||", "expected the end"),
        ("A||a:float=1.2.3||", "expected the end at 11"),
        ("A||a:float=.||", "expected a number"),
        ("A||a:bool=1||", "expected 'false'"),
        ('A||a:string="x||', "expected a string in double quotes"),
        ("A||a:string=x||", "expected a string in double quotes"),
        ("A||a:tensor=tensor(6)||", r"expected '\)'"),
        ("A||a:list(int)=[1,]||", "expected an integer"),
        ("A|||x:T|", "expected an attribute of type type at 2 of 'x:T', found 'T'"),
        ("A||N:type|x:N*N|", r"expected an attribute of type int at 2 of 'x:N\*N', found 'N\*N'"),
        ("A||N:int|x:N|", "expected an attribute of type type"),
        ("A|||x:Ref(float|", r"expected '\)'"),
        ("A|||x:float y|", "expected the end"),
        ("A||||x", "expected ':'"),
        ("A||x:int|x:float|", "must differ, found twice: x"),
        ("A||in_:int|in:float|", "must differ, found twice: in_"),
    ],
)
def test_a_line_that_is_not_canonical_is_rejected_with_the_place(line, problem):
    with pytest.raises(InvalidArgumentError, match=f"definition.*{problem}"):
        read_op_definition(line)


def test_the_writer_escapes_what_separates():
    definition = OpDefinition(
        "A", attrs=(AttrDefinition("a", "string", default='|;"\\\n\té\udcff~', has_default=True),)
    )

    assert canonical_line(definition) == r'A||a:string="\x7c\x3b\"\\\x0a\x09\xc3\xa9\xff~"||'
