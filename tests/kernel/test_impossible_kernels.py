"""Kernels that nothing can select, and those that are there twice: findings, no refusals."""

from __future__ import annotations

import pytest

from modular_tf.kernel.registry import impossible_kernels
from modular_tf.rules.kernel import (
    CONSTRAINED_ATTRIBUTE_EXISTS,
    CONSTRAINT_TYPE_ALLOWED,
    CONSTRAINTS_AGREE,
    HOST_ARGUMENT_EXISTS,
    KERNEL_UNIQUE,
    OPERATION_DEFINED,
)
from tests.kernel.samples import BATCH, CONCAT, DOUBLE, FLOAT, MATMUL, STRING, kernel

DEFINITIONS = {each.name: each for each in (MATMUL, CONCAT, BATCH)}

FAULTY = [
    (kernel("Nothing", "CPU", ("T", FLOAT)), OPERATION_DEFINED, "unknown op Nothing"),
    (kernel("MatMul", "CPU", ("S", FLOAT)), CONSTRAINED_ATTRIBUTE_EXISTS, "no such attribute"),
    (kernel("ConcatV2", "CPU", ("N", FLOAT)), CONSTRAINED_ATTRIBUTE_EXISTS, "one of kind int"),
    (kernel("MatMul", "CPU", host_args=("axis",)), HOST_ARGUMENT_EXISTS, "one of a, b, product"),
    (kernel("MatMul", "CPU", ("T", STRING)), CONSTRAINT_TYPE_ALLOWED, "found DT_STRING"),
    (
        kernel("MatMul", "CPU", ("T", FLOAT), ("T", DOUBLE)),
        CONSTRAINTS_AGREE,
        "both DT_FLOAT and DT_DOUBLE",
    ),
]


@pytest.mark.parametrize(("faulty", "rule", "text"), FAULTY, ids=lambda each: str(each)[:40])
def test_a_faulty_kernel_is_a_finding_that_refuses_nothing(faulty, rule, text):
    (violation,) = impossible_kernels([faulty], DEFINITIONS.get)

    assert violation.rule == rule
    assert text in violation.message
    assert faulty.op in violation.message
    assert not violation.is_error


@pytest.mark.parametrize(
    "other",
    [
        kernel("MatMul", "GPU", ("T", FLOAT)),
        kernel("MatMul", "CPU", ("T", DOUBLE), ("T", DOUBLE), host_args=("b", "product")),
        kernel("MatMul", "CPU", ("T", FLOAT), priority=1),
        kernel("MatMul", "CPU", ("T", FLOAT), label="x"),
        kernel("Batch", "CPU", ("Tin", STRING), host_args=("copies",)),
    ],
    ids=lambda each: each.where,
)
def test_kernels_that_can_be_selected_and_differ_are_no_findings(other):
    one = kernel("MatMul", "CPU", ("T", FLOAT))

    assert impossible_kernels([one], DEFINITIONS.get, [other]) == []
    assert impossible_kernels([one, other], DEFINITIONS.get) == []


@pytest.mark.parametrize("is_of_another_plugin", [False, True])
def test_two_equal_kernels_are_one_finding(is_of_another_plugin):
    one = kernel("MatMul", "CPU", ("T", FLOAT), name="A")
    two = kernel("MatMul", "CPU", ("T", FLOAT), name="B", plugin="libother.so")
    offered = (
        ([two], DEFINITIONS.get, [one]) if is_of_another_plugin else ([one, two], DEFINITIONS.get)
    )

    (violation,) = impossible_kernels(*offered)

    assert violation.rule == KERNEL_UNIQUE
    assert "expected one kernel of priority 0 for these" in violation.message
    assert "found kernel 'B' of plugin libother.so and kernel 'A' of plugin" in violation.message


@pytest.mark.parametrize(
    ("count", "others"), [(3, "2 more operations (Unknown1, Unknown2)"), (300, ", Unknown8, ...)")]
)
def test_kernels_that_break_one_rule_are_one_finding_with_their_operations(count, others):
    unknown = [
        kernel(f"Unknown{n}", "CPU", ("T", kind)) for n in range(count) for kind in (FLOAT, DOUBLE)
    ]

    (violation,) = impossible_kernels(unknown, DEFINITIONS.get)

    start = (
        "kernel for unknown op Unknown0: expected a definition, found none; likewise kernels of "
    )
    assert violation.message.startswith(f"{start}{count - 1} more operations (Unknown1, ")
    assert violation.message.endswith(others)
