"""A failed call reports the rule: of its own failure, and of what the host refused before."""

from __future__ import annotations

import numpy as np
import pytest

from modular_tf.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnimplementedError,
)

KERNELS = "failing_kernels"


@pytest.mark.parametrize(
    ("op", "error", "rule", "cited"),
    [
        ("Neg", UnimplementedError, "KN-060", "not on this machine"),
        ("Abs", NotFoundError, "KN-087", "nothing to compute"),
        ("Square", ResourceExhaustedError, "KN-087", r"\(rule KN-078\)"),
        ("Sign", FailedPreconditionError, "KN-087", r"\(rule KN-085\)"),
        ("Exp", InvalidArgumentError, "KN-102", "variable"),
    ],
)
def test_the_error_names_the_rule(device, op, error, rule, cited):
    with pytest.raises(error, match=cited) as raised:
        device.op(op)(np.array([1, 2], "float32"))
    assert raised.value.rule == rule
