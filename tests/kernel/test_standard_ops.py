"""The table of TensorFlow's own operations."""

from __future__ import annotations

import inspect

import pytest

from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.op_grammar import read_op_definition
from modular_tf.kernel.standard_ops import StandardOps, standard_ops
from tests.kernel.spec_writer import record_of


@pytest.fixture(scope="module")
def definitions():
    table = standard_ops()
    return [table.get(name) for name in table]


def test_the_table_has_what_was_counted(definitions):
    """In the operations that TensorFlow 2.21 lists, by reading its own messages."""
    table = standard_ops()
    inputs = [arg for each in definitions for arg in each.inputs]
    attrs = [attr for each in definitions for attr in each.attrs]
    outputs = [arg for each in definitions for arg in each.outputs]
    counts = {"attrs": len(attrs), "inputs": len(inputs), "outputs": len(outputs)}

    assert (table.release, len(table)) == ("2.21.0", 1908)
    assert counts == {"attrs": 5757, "inputs": 4912, "outputs": 2455}
    assert table.counts == {"ops": 1908, **counts}
    assert sum(each.is_stateful for each in definitions) == 555
    assert sum(each.is_deprecated for each in definitions) == 63
    assert sum(attr.has_default for attr in attrs) == 2573
    assert sum(attr.allowed is not None for attr in attrs) == 1703
    assert sum(attr.minimum is not None for attr in attrs) == 1092
    assert sum(arg.is_ref for arg in inputs) == 151
    assert sum(arg.number_attr is not None for arg in inputs if not arg.is_ref) == 133 + 86
    assert sum(arg.type_list_attr is not None for arg in inputs if not arg.is_ref) == 166


def test_every_operation_round_trips_and_has_a_signature(definitions):
    for each in definitions:
        assert read_op_definition(record_of(each)) == each
        parameters = each.signature.parameters.values()
        required = [one.name for one in parameters if one.default is inspect.Parameter.empty]
        assert each.signature.bind(**dict.fromkeys(required))


def test_an_operation_is_found_by_name():
    table = standard_ops()

    assert "MatMul" in table
    assert table.get("MatMul") is table.get("MatMul")
    assert str(table.get("MatMul").signature) == (
        "(a: T, b: T, *, transpose_a: bool = False, transpose_b: bool = False, "
        "grad_a: bool = False, grad_b: bool = False) -> product: T"
    )
    assert table.get("NoSuchOp") is None


def test_a_definition_is_read_when_it_is_asked_for():
    table = StandardOps("release=1 ops=2\nGood\0\nBad\0\0aT: quux\n")

    assert list(table) == ["Good", "Bad"]
    assert table.get("Good").source == "TensorFlow 1"
    with pytest.raises(InvalidArgumentError, match="the type of an attribute"):
        table.get("Bad")
