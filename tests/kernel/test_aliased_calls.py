"""Calls of standard operations that a plugin's counterpart computes, for some types or for all."""

from __future__ import annotations

import json

import numpy as np
import pytest

from modular_tf.cli.main import run
from modular_tf.errors import InvalidArgumentError, NotFoundError
from tests.kernel.kernels import kernel_library

KERNELS = "aliased_kernels"

OWN, COUNTERPART = 1, 2  # what their kernels compute


@pytest.mark.parametrize(
    ("op", "kind", "expected"),
    [
        ("Elu", "float64", OWN),
        ("Elu", "float32", COUNTERPART),
        ("Softmax", "float32", COUNTERPART),
    ],
)
def test_a_counterpart_serves_where_no_own_kernel_fits(op, kind, expected, device):
    elu = device.op(op)
    for _ in range(3):  # the first calls are not prepared ones
        assert elu(np.zeros(2, kind)).to_numpy().tolist() == [expected] * 2
        assert elu(device.put(np.zeros(2, kind))).to_numpy().tolist() == [expected] * 2


def test_the_message_lists_the_own_kernels_where_neither_fits(device):
    with pytest.raises(NotFoundError, match=r"Elu: no kernel .*DT_HALF") as raised:
        device.op("Elu")(np.zeros(2, "float16"))
    assert raised.value.rule == "KN-034"
    assert raised.value.operation == "Elu"


def test_explain_has_both(device):
    elu = device.op("Elu")

    of_float = elu.explain(np.zeros(2, "float32"))
    of_double = elu.explain(np.zeros(2, "float64"))

    assert [(each.registration.op, each.is_selected) for each in of_float] == [
        ("Elu", False), ("_ITEXElu", True), ("_ITEXElu", False),
    ]  # fmt: skip
    assert [(each.registration.op, each.is_selected) for each in of_double] == [("Elu", True)]


def test_a_failure_names_both_operations(device):
    softmax = device.op("Softmax")
    matrix = device.put(np.zeros((2, 2), "float32"))
    softmax(device.put(np.zeros(2, "float32")))
    for given in (np.zeros((2, 2), "float32"), matrix, matrix):
        with pytest.raises(InvalidArgumentError, match="expected a vector") as raised:
            softmax(given)
        assert raised.value.message.startswith("Softmax, computed by _ITEXSoftmax: compute of")
        assert raised.value.operation == "Softmax"


def test_the_kernels_of_an_operation_are_listed_with_those_of_its_counterpart(capsys):
    arguments = ["--plugin", str(kernel_library("aliased_kernels")), "--json", "kernels", "--op"]

    assert run([*arguments, "Softmax"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["kernels"]
    assert run([*arguments, "Elu"]) == 0
    both = json.loads(capsys.readouterr().out)["kernels"]

    assert listed["op"] == "_ITEXSoftmax"
    assert [each["op"] for each in both] == ["Elu", "_ITEXElu", "_ITEXElu"]
