"""Two definitions of one operation: the differences in words."""

from __future__ import annotations

import pytest

from modular_tf.kernel.op_grammar import read_op_definition
from modular_tf.kernel.registry import compare
from tests.kernel.spec_writer import record

BASE = 'Op||T:{float,half};k:int>=1=2;p:string="x"|a:T;b:int32|c:T'


def _compare(line):
    return compare(
        read_op_definition(record(line), "plugin"),
        read_op_definition(record(BASE), "TensorFlow 2.21.0"),
    )


@pytest.mark.parametrize(
    "line",
    [
        BASE,
        'Op||k:int>=1=2;p:string="x";T:{float,half}|a:T;b:int32|c:T',
        'Op||T:{half,float};k:int>=1=2;p:string="x"|a:T;b:int32|c:T',
        BASE.replace("||", "|D|", 1),
    ],
)
def test_order_of_attributes_and_deprecation_are_no_differences(line):
    assert _compare(line) == []


@pytest.mark.parametrize(
    ("old", "new", "what", "here", "there"),
    [
        ("b:int32", "b:T", "input 1", "b: T", "b: int32"),
        (";b:int32", "", "input 1", "absent", "b: int32"),
        ("|c:T", "|c:T;d:T", "output 1", "d: T", "absent"),
        (
            "half}",
            "half,int8}",
            "attribute T",
            "type in {float, half, int8}",
            "type in {float, half}",
        ),
        ("=2", "", "attribute k", "int >= 1", "int >= 1 = 2"),
        ('="x"', '="x";q:bool', "attribute q", "bool", "absent"),
        ("Op||", "Op|S|", "the operation", "stateful", "not stateful"),
    ],
)
def test_each_difference_is_told_with_both_sides(old, new, what, here, there):
    assert old in BASE
    assert _compare(BASE.replace(old, new, 1)) == [
        f"{what} is {here}; for TensorFlow 2.21.0 it is {there}"
    ]
    assert len(_compare("Op|SC||x:float|")) == 8, "each of several"


def test_a_source_without_a_name_is_the_other_definition():
    first, second = (read_op_definition(record(f"Op|{flag}|||")) for flag in ("", "A"))

    assert compare(first, second) == [
        "the operation is not an aggregate; for the other definition it is an aggregate"
    ]
