"""Which kernel serves a call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modular_tf.errors import InvalidArgumentError, ModularTFError, NotFoundError
from modular_tf.kernel.registration import DEVICE_PLUGGABLE
from modular_tf.kernel.selection import candidates, select
from modular_tf.rules.kernel import (
    CONSTRAINED_ATTRIBUTE_EXISTS,
    KERNEL_MATCHES,
    LABEL_REGISTERED,
    ONE_BEST_KERNEL,
    ONE_DEFAULT_KERNEL,
)
from tests.kernel.samples import DOUBLE, FLOAT, INT32, kernel, matmul_node

ON_FLOAT, ON_DOUBLE = ("T", FLOAT), ("T", DOUBLE)


GOOD = kernel("MatMul", "CPU", ON_FLOAT)
REFUSED = {
    "an attribute that there is not": (
        [GOOD, kernel("MatMul", "CPU", ("S", FLOAT), name="Unfit", plugin="libbad.so")],
        (InvalidArgumentError, CONSTRAINED_ATTRIBUTE_EXISTS, "libbad.so"),
        ["kernel 'Unfit' of plugin libbad.so", "'S', which MatMul does not have"],
    ),
    "an attribute that is no type": (
        [GOOD, kernel("MatMul", "CPU", ("transpose_a", FLOAT), plugin="libbad.so")],
        (InvalidArgumentError, CONSTRAINED_ATTRIBUTE_EXISTS, "libbad.so"),
        ["neither a type nor a list"],
    ),
    "a tie": (
        [
            kernel("MatMul", "CPU", ON_FLOAT, priority=1, name="A", plugin="liba.so"),
            kernel("MatMul", "CPU", priority=1, name="B", plugin="libb.so"),
        ],
        (InvalidArgumentError, ONE_BEST_KERNEL, ""),
        [
            "kernel 'A' of plugin liba.so (device='CPU'; T in [DT_FLOAT])",
            "kernel 'B' of plugin libb.so (device='CPU')",
        ],
    ),
    "two defaults, whatever their priorities": (
        [kernel("MatMul", "DEFAULT", priority=p, name=f"D{p}") for p in (1, 2)],
        (InvalidArgumentError, ONE_DEFAULT_KERNEL, ""),
        ["kernel 'D1'", "kernel 'D2'"],
    ),
    "all registrations of the operation are listed": (
        [
            kernel("MatMul", "CPU", ON_DOUBLE),
            kernel("MatMul", "GPU", ON_DOUBLE, ("Tout", FLOAT), label="x"),
            kernel("Relu", "CPU"),
        ],
        (NotFoundError, KERNEL_MATCHES, ""),
        [
            "for device type 'CPU' serves a call with T=DT_FLOAT",
            "\n  device='CPU'; T in [DT_DOUBLE]\n  device='GPU'; label='x'; T in [DT_DOUBLE]; Tout",
            "Convert the inputs",
        ],
    ),
    "other inputs are not advised where there is no kernel": (
        [kernel("Relu", "CPU")],
        (NotFoundError, KERNEL_MATCHES, ""),
        ["\n  <no registered kernels>", "a plugin that has kernels of this operation"],
    ),
}


@pytest.mark.parametrize(("kernels", "error", "parts"), REFUSED.values(), ids=REFUSED)
def test_a_call_that_no_kernel_or_more_than_one_can_serve_is_refused(kernels, error, parts):
    with pytest.raises(error[0]) as raised:
        select(kernels, matmul_node(), "CPU")

    found = raised.value
    assert (type(found), found.rule, found.plugin or "") == error
    assert found.operation == "MatMul"
    assert [part for part in parts if part not in found.message] == []
    assert len(kernels) > 1 or "Convert the inputs" not in found.message
    assert not any(each.is_selected for each in candidates(kernels, matmul_node(), "CPU"))


@pytest.mark.parametrize(
    ("kernels", "rule"),
    [
        ([kernel("MatMul", "CPU")], LABEL_REGISTERED),
        ([kernel("MatMul", "CPU", ON_DOUBLE, label="fast")], KERNEL_MATCHES),
    ],
)
def test_an_unknown_label_is_another_error_than_one_that_does_not_match(kernels, rule):
    with pytest.raises(NotFoundError, match="'fast'") as raised:
        select(kernels, matmul_node(label="fast"), "CPU")

    assert raised.value.rule == rule


def test_an_unfit_constraint_harms_no_call_that_its_kernel_would_not_serve():
    good = kernel("MatMul", "CPU", ON_FLOAT)
    for unfit in (
        kernel("MatMul", "GPU", ("S", FLOAT)),
        kernel("MatMul", "CPU", ("S", FLOAT), label="own"),
        kernel("MatMul", "CPU", ON_DOUBLE, ("S", FLOAT)),
    ):
        assert select([unfit, good], matmul_node(), "CPU") is good


def test_candidates_have_reasons():
    kernels = [
        kernel("MatMul", "CPU", ON_FLOAT, priority=2),
        kernel("MatMul", "CPU", ON_DOUBLE),
        kernel("MatMul", "CPU"),
        kernel("MatMul", "GPU"),
        kernel("MatMul", "CPU", label="x"),
        kernel("MatMul", "DEFAULT"),
        kernel("Relu", "CPU"),
    ]

    judged = candidates(kernels, matmul_node(), "CPU")
    tied = candidates([kernel("MatMul", "CPU")] * 2, matmul_node(), "CPU")
    (unfit,) = candidates([kernel("MatMul", "CPU", ("S", FLOAT))], matmul_node(), "CPU")

    assert [each.registration for each in judged] == kernels[:-1]
    assert [each.is_selected for each in judged] == [True] + [False] * 5
    assert [each.reason for each in judged] == [
        "matches; priority 2",
        "T is DT_FLOAT, not DT_DOUBLE",
        "matches; one of priority 2 comes before 0",
        "is for device type 'GPU', not 'CPU'",
        "has label 'x', not ''",
        "matches; one for device type 'CPU' comes first",
    ]
    assert all("nothing ranks" in each.reason for each in tied)
    assert "constrains attribute 'S'" in unfit.reason


PAIRS = st.lists(st.tuples(st.just("T"), st.sampled_from([FLOAT, DOUBLE])), max_size=2)


@st.composite
def kernels_of_matmul(draw):
    return kernel(
        "MatMul",
        draw(st.sampled_from(["CPU", "cpu", "GPU", DEVICE_PLUGGABLE, "DEFAULT"])),
        *draw(PAIRS),
        label=draw(st.sampled_from(["", "x"])),
        priority=draw(st.integers(-2, 2)),
    )


@given(
    st.lists(kernels_of_matmul(), max_size=6),
    st.sampled_from([FLOAT, DOUBLE, INT32]),
    st.sampled_from(["", "x"]),
    st.sampled_from(["CPU", "GPU", "XPU"]),
    st.booleans(),
)
def test_the_selected_kernel_matches_and_none_of_its_device_type_ranks_above(
    kernels, kind, label, device_type, is_pluggable
):
    node = matmul_node(kind, label=label)
    try:
        found = select(kernels, node, device_type, is_pluggable=is_pluggable)
    except ModularTFError as error:
        found = type(error), error.rule
    fitting = [
        each
        for each in kernels
        if each.label == label and all(wanted is kind for _, wanted in each.constraint_pairs)
    ]

    types = [device_type, *[DEVICE_PLUGGABLE] * is_pluggable, "DEFAULT"]
    stages = [[each for each in fitting if each.device_type == type_] for type_ in types]
    stage = next(filter(None, stages), [])
    highest = max((each.priority for each in stage), default=0)
    best = [each for each in stage if each.priority == highest or each.device_type == "DEFAULT"]
    judged = candidates(kernels, node, device_type, is_pluggable=is_pluggable)
    selected = [each.registration for each in judged if each.is_selected]
    assert selected == (best if len(best) == 1 else [])
    if not best:
        assert found[0] is NotFoundError
    elif len(best) > 1:
        is_default = best[0].device_type == "DEFAULT"
        rule = ONE_DEFAULT_KERNEL if is_default else ONE_BEST_KERNEL
        assert found == (InvalidArgumentError, rule)
    else:
        assert found is best[0]
