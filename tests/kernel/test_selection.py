"""Which kernel serves a call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modular_tf.errors import InvalidArgumentError, ModularTFError, NotFoundError
from modular_tf.kernel.node import build_node
from modular_tf.kernel.registration import DEVICE_PLUGGABLE
from modular_tf.kernel.selection import candidates, select
from modular_tf.rules.kernel import (
    CONSTRAINED_ATTRIBUTE_EXISTS,
    KERNEL_MATCHES,
    LABEL_REGISTERED,
    ONE_BEST_KERNEL,
    ONE_DEFAULT_KERNEL,
)
from tests.kernel.samples import BATCH, DOUBLE, FLOAT, INT32, INT64, STRING, kernel, matmul_node

ON_FLOAT, ON_DOUBLE = ("T", FLOAT), ("T", DOUBLE)


def refusal(kind, kernels, node, device_type="CPU", **how) -> ModularTFError:
    with pytest.raises(kind) as raised:
        select(kernels, node, device_type, **how)
    assert raised.value.operation == node.op
    return raised.value


@pytest.mark.parametrize(("types", "serves"), [([FLOAT, FLOAT], True), ([FLOAT, INT32], False)])
def test_every_element_of_a_list_of_types_must_match(types, serves):
    node = build_node(BATCH, [types, [INT64], [STRING]], {"out": FLOAT})
    on_float = kernel("Batch", "CPU", ("Tin", FLOAT))

    if serves:
        assert select([on_float], node, "CPU") is on_float
    else:
        assert "Tin is DT_INT32, not DT_FLOAT" in candidates([on_float], node, "CPU")[0].reason
        refusal(NotFoundError, [on_float], node)


@pytest.mark.parametrize(
    ("name", "what"),
    [("S", "'S', which MatMul does not have"), ("transpose_a", "neither a type nor a list")],
)
def test_a_constraint_on_no_type_attribute_fails_the_whole_selection(name, what):
    good = kernel("MatMul", "CPU", ON_FLOAT)
    unfit = kernel("MatMul", "CPU", (name, FLOAT), name="Unfit", plugin="libbad.so")

    error = refusal(InvalidArgumentError, [good, unfit], matmul_node())

    assert error.rule == CONSTRAINED_ATTRIBUTE_EXISTS
    assert error.plugin == "libbad.so"
    assert "kernel 'Unfit' of plugin libbad.so" in error.message
    assert what in error.message


def test_a_constraint_behind_one_that_does_not_hold_is_not_looked_at():
    good = kernel("MatMul", "CPU", ON_FLOAT)
    unfit = kernel("MatMul", "CPU", ON_DOUBLE, ("S", FLOAT))

    assert select([unfit, good], matmul_node(), "CPU") is good


def test_unfit_constraints_of_other_device_types_and_labels_harm_nobody():
    good = kernel("MatMul", "CPU", ON_FLOAT)
    unfit = [
        kernel("MatMul", "GPU", ("S", FLOAT)),
        kernel("MatMul", "CPU", ("S", FLOAT), label="own"),
        kernel("MatMul", "DEFAULT", ("S", FLOAT)),
    ]

    assert select([*unfit, good], matmul_node(), "CPU") is good


def test_a_tie_at_the_top_names_both_kernels():
    kernels = [
        kernel("MatMul", "CPU", ON_FLOAT, priority=1, name="A", plugin="liba.so"),
        kernel("MatMul", "CPU", priority=1, name="B", plugin="libb.so"),
        kernel("MatMul", "CPU", name="C"),
    ]

    error = refusal(InvalidArgumentError, kernels, matmul_node())

    assert error.rule == ONE_BEST_KERNEL
    assert "kernel 'A' of plugin liba.so (device='CPU'; T in [DT_FLOAT])" in error.message
    assert "kernel 'B' of plugin libb.so (device='CPU')" in error.message
    assert "'C'" not in error.message


def test_a_kernel_for_every_plugin_stands_between_the_device_type_and_the_default():
    own = kernel("MatMul", "GPU", ON_FLOAT)
    pluggable = kernel("MatMul", DEVICE_PLUGGABLE)
    default = kernel("MatMul", "DEFAULT", priority=9)
    kernels = [default, pluggable, own]

    assert select(kernels, matmul_node(FLOAT), "GPU") is own
    assert select(kernels, matmul_node(DOUBLE), "GPU") is pluggable
    assert select(kernels, matmul_node(DOUBLE), "GPU", is_pluggable=False) is default


def test_two_default_kernels_are_a_tie_whatever_their_priorities():
    defaults = [kernel("MatMul", "DEFAULT", priority=p, name=f"D{p}") for p in (1, 2)]

    error = refusal(InvalidArgumentError, defaults, matmul_node())

    assert error.rule == ONE_DEFAULT_KERNEL
    assert "kernel 'D1'" in error.message
    assert "kernel 'D2'" in error.message


def test_an_unknown_label_has_no_kernel():
    error = refusal(NotFoundError, [kernel("MatMul", "CPU")], matmul_node(label="fast"))

    assert error.rule == LABEL_REGISTERED
    assert "and label 'fast'" in error.message


def test_a_known_label_whose_kernels_do_not_match_is_told_apart():
    kernels = [kernel("MatMul", "CPU", ON_DOUBLE, label="fast")]

    assert refusal(NotFoundError, kernels, matmul_node(label="fast")).rule == KERNEL_MATCHES


def test_where_none_matches_all_registrations_of_the_operation_are_listed():
    kernels = [
        kernel("MatMul", "CPU", ON_FLOAT),
        kernel("MatMul", "GPU", ON_DOUBLE, ("Tout", FLOAT), label="x"),
        kernel("Relu", "CPU"),
    ]

    error = refusal(NotFoundError, kernels, matmul_node(INT32))

    assert error.rule == KERNEL_MATCHES
    assert "for device type 'CPU' serves a call with T=DT_INT32" in error.message
    assert error.message.splitlines()[1:] == [
        "  device='CPU'; T in [DT_FLOAT]",
        "  device='GPU'; label='x'; T in [DT_DOUBLE]; Tout in [DT_FLOAT]",
    ]


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


def test_candidates_of_a_tie_and_of_an_unfit_constraint_have_reasons():
    tied = candidates([kernel("MatMul", "CPU")] * 2, matmul_node(), "CPU")
    (unfit,) = candidates([kernel("MatMul", "CPU", ("S", FLOAT))], matmul_node(), "CPU")

    assert {(each.is_selected, "nothing ranks" in each.reason) for each in tied} == {(False, True)}
    assert not unfit.is_selected
    assert "constrains attribute 'S'" in unfit.reason


# -- properties ------------------------------------------------------------------------------------

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


CALLS = st.tuples(
    st.sampled_from([FLOAT, DOUBLE, INT32]),
    st.sampled_from(["", "x"]),
    st.sampled_from(["CPU", "GPU", "XPU"]),
    st.booleans(),
)


def outcome(kernels, call):
    """Return what is selected, or how that fails."""
    kind, label, device_type, is_pluggable = call
    node = matmul_node(kind, label=label)
    try:
        return select(kernels, node, device_type, is_pluggable=is_pluggable)
    except ModularTFError as error:
        return type(error), error.rule


@given(st.lists(kernels_of_matmul(), max_size=6), CALLS, st.randoms(use_true_random=False))
def test_the_order_of_registration_means_nothing(kernels, call, random):
    shuffled = list(kernels)
    random.shuffle(shuffled)

    assert outcome(shuffled, call) == outcome(kernels, call)


@given(st.lists(kernels_of_matmul(), max_size=6), CALLS)
def test_the_selected_kernel_matches_and_none_of_its_device_type_ranks_above(kernels, call):
    kind, label, device_type, is_pluggable = call
    found = outcome(kernels, call)
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
    if not best:
        assert found[0] is NotFoundError
    elif len(best) > 1:
        is_default = best[0].device_type == "DEFAULT"
        rule = ONE_DEFAULT_KERNEL if is_default else ONE_BEST_KERNEL
        assert found == (InvalidArgumentError, rule)
    else:
        assert found is best[0]


@given(st.lists(kernels_of_matmul(), max_size=6), CALLS)
def test_candidates_agree_with_the_selection(kernels, call):
    kind, label, device_type, is_pluggable = call
    node = matmul_node(kind, label=label)

    judged = candidates(kernels, node, device_type, is_pluggable=is_pluggable)

    selected = [each.registration for each in judged if each.is_selected]
    found = outcome(kernels, call)
    assert selected == ([] if isinstance(found, tuple) else [found])
    assert all(each.reason for each in judged)


def test_where_no_kernel_is_registered_other_inputs_are_not_advised():
    none = refusal(NotFoundError, [kernel("Relu", "CPU")], matmul_node(FLOAT)).message
    other = refusal(NotFoundError, [kernel("MatMul", "CPU", ON_DOUBLE)], matmul_node(FLOAT)).message

    assert none.splitlines()[1:] == ["  <no registered kernels>"]
    assert "Convert the inputs" not in none
    assert "a plugin that has kernels of this operation" in none
    assert "Convert the inputs" in other
