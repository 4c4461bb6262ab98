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
    assert own_attrs(transpose_b=True, grad_a=False) == {
        "transpose_a": False,  # the standard default: the caller knows no other
        "transpose_b": True,
        "T": FLOAT,
        "is_filter_const": False,
        "meta": EMPTY,
    }
    assert own_attrs(is_filter_const=True)["is_filter_const"] is True


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"grad_a": True}, "_OwnMatMul, which serves it here"),
        ({"nonsense": 1}, "attribute 'nonsense' does not exist"),
    ],
)
def test_what_the_plugins_operation_lacks_may_have_its_default_only(given, text):
    with pytest.raises(InvalidArgumentError, match=text) as raised:
        own_attrs(**given)

    assert raised.value.rule == ATTRIBUTES_FIT


def test_the_table_names_counterparts_of_standard_operations():
    (alias,) = aliases_of("MatMul")

    assert (alias.op, alias.own) == ("MatMul", "_ITEXMatMul")
    assert alias.attrs["is_filter_const"] is False
    assert "meta" not in alias.attrs, "kernels take an absent tensor for an empty one"
    assert sum(len(aliases_of(op)) for op in standard_ops()) == len(_aliases())
    assert aliases_of("NoSuchOp") == ()
