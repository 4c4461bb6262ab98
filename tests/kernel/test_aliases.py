"""Plugins' own names for standard operations."""

from __future__ import annotations

import pytest

from modular_tf.abi.data_types import by_name
from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.aliases import Alias, _aliases, alias_attrs, aliases_of
from modular_tf.kernel.node import TensorValue, build_node
from modular_tf.kernel.op_definition import OpDefinition
from modular_tf.kernel.standard_ops import standard_ops
from modular_tf.rules.kernel import ATTRIBUTES_FIT
from tests.kernel.samples import FLOAT, MATMUL, attr, defaulted

STANDARD = OpDefinition(
    "MatMul", MATMUL.inputs, MATMUL.outputs, (*MATMUL.attrs, defaulted("grad_a", "bool", False))
)
OWN = OpDefinition(
    "_OwnMatMul",
    MATMUL.inputs,
    MATMUL.outputs,
    (
        defaulted("transpose_a", "bool", True),
        defaulted("transpose_b", "bool", False),
        defaulted("T", "type", FLOAT),
        defaulted("is_filter_const", "bool", True),
        attr("meta", "tensor"),
    ),
)
EMPTY = TensorValue(by_name("uint8"), (0,), b"")
ALIAS = Alias("MatMul", "_OwnMatMul", {"is_filter_const": False, "meta": EMPTY, "unused": 1})


def own_attrs(**given):
    attrs = alias_attrs(ALIAS, STANDARD, OWN, given)
    return build_node(OWN, [FLOAT, FLOAT], attrs).attrs


def test_a_call_of_the_standard_operation_is_one_of_the_plugins():
    assert own_attrs(transpose_b=True) == {
        "transpose_a": False,  # the standard default: the caller knows no other
        "transpose_b": True,
        "T": FLOAT,
        "is_filter_const": False,
        "meta": EMPTY,
    }


def test_a_caller_may_give_what_only_the_plugins_operation_has():
    assert own_attrs(is_filter_const=True)["is_filter_const"] is True


def test_what_the_plugins_operation_lacks_may_have_its_default_only():
    assert "grad_a" not in own_attrs(grad_a=False)

    with pytest.raises(InvalidArgumentError, match="_OwnMatMul, which serves it here") as raised:
        own_attrs(grad_a=True)

    assert raised.value.rule == ATTRIBUTES_FIT


def test_what_neither_has_is_refused():
    with pytest.raises(InvalidArgumentError, match="attribute 'nonsense' does not exist"):
        own_attrs(nonsense=1)


def test_the_table_names_counterparts():
    (alias,) = aliases_of("MatMul")

    assert (alias.op, alias.own) == ("MatMul", "_ITEXMatMul")
    assert alias.attrs["is_filter_const"] is False
    assert "meta" not in alias.attrs, "kernels take an absent tensor for an empty one"


def test_every_alias_stands_for_a_standard_operation():
    assert [op for op in _aliases() if op not in standard_ops()] == []
    assert all(len(each) == 1 for each in _aliases().values())


def test_an_operation_without_counterpart_has_no_alias():
    assert aliases_of("NoSuchOp") == ()
