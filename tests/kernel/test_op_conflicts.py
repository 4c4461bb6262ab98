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
    ("old", "new", "difference"),
    [
        (
            "b:int32",
            "b:T",
            "input 1 is b: T; for TensorFlow 2.21.0 it is b: int32",
        ),
        (
            ";b:int32",
            "",
            "input 1 is absent; for TensorFlow 2.21.0 it is b: int32",
        ),
        (
            "|c:T",
            "|c:T;d:T",
            "output 1 is d: T; for TensorFlow 2.21.0 it is absent",
        ),
        (
            "half}",
            "half,int8}",
            (
                "attribute T is type in {float, half, int8}; "
                "for TensorFlow 2.21.0 it is type in {float, half}"
            ),
        ),
        (
            "=2",
            "",
            "attribute k is int >= 1; for TensorFlow 2.21.0 it is int >= 1 = 2",
        ),
        (
            ">=1",
            "",
            "attribute k is int = 2; for TensorFlow 2.21.0 it is int >= 1 = 2",
        ),
        (
            ';p:string="x"',
            "",
            "attribute p is absent; for TensorFlow 2.21.0 it is string = 'x'",
        ),
        (
            '="x"',
            '="x";q:bool',
            "attribute q is bool; for TensorFlow 2.21.0 it is absent",
        ),
        (
            "Op||",
            "Op|S|",
            "the operation is stateful; for TensorFlow 2.21.0 it is not stateful",
        ),
    ],
)
def test_each_difference_is_told_with_both_sides(old, new, difference):
    assert old in BASE
    assert _compare(BASE.replace(old, new, 1)) == [difference]


def test_every_difference_is_told():
    assert len(_compare("Op|SC||x:float|")) == 8


def test_a_source_without_a_name_is_the_other_definition():
    first, second = (read_op_definition(record(f"Op|{flag}|||")) for flag in ("", "A"))

    assert compare(first, second) == [
        "the operation is not an aggregate; for the other definition it is an aggregate"
    ]
