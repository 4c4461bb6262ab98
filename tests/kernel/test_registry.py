"""The registry of kernels and definitions: what serves, since when, until when."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest

from modular_tf.errors import ClosedError, NotFoundError
from modular_tf.kernel.registry import KernelRegistry, PluginKernels
from modular_tf.rules.kernel import DEFINITION_UNIQUE, KERNEL_UNIQUE, OPERATION_KNOWN
from tests.fixtures.interrupts import interrupt, points
from tests.kernel.samples import CONCAT, FLOAT, MATMUL, kernel

OWN = dataclasses.replace(CONCAT, name="OwnConcat", source="liba.so")
OTHER_MATMUL = dataclasses.replace(MATMUL, is_commutative=True, source="liba.so")


def offer(plugin="liba.so", *ops, definitions=()):
    kernels = tuple(kernel(op, "CPU", ("T", FLOAT), plugin=plugin) for op in ops)
    return PluginKernels(plugin, kernels, definitions)


@pytest.fixture
def registry():
    standard = dataclasses.replace(MATMUL, source="TensorFlow 2.21.0")
    return KernelRegistry(lambda: {"MatMul": standard})


def test_what_is_entered_serves_until_it_leaves(registry):
    one = offer("liba.so", "MatMul", "OwnConcat", definitions=(OWN,))
    two = offer("libb.so", "MatMul")
    moments = [registry.moment]
    for _ in range(2):  # the second call changes nothing
        assert registry.enter(one) == ()
    moments.append(registry.moment)
    registry.enter(two)

    assert registry.kernels_of("MatMul") == (one.kernels[0], *two.kernels)
    assert registry.definition("OwnConcat") is OWN
    assert registry.op_names() == ("MatMul", "OwnConcat")
    for _ in range(2):
        registry.leave(one)
    moments.append(registry.moment)
    assert registry.kernels() == two.kernels
    assert registry.find_definition("OwnConcat") is None
    assert len(set(moments)) == 3
    with pytest.raises(ClosedError, match="plugin liba"):
        registry.enter(one)


def test_kernels_are_found_by_all_that_is_given(registry):
    one, two = offer("liba.so", "MatMul", "Relu"), offer("libb.so", "MatMul")
    registry.enter(one)
    registry.enter(two)

    assert registry.kernels() == (*one.kernels, *two.kernels)
    assert registry.kernels("MatMul") == (one.kernels[0], two.kernels[0])
    assert registry.kernels(plugin="libb.so") == two.kernels
    assert registry.kernels("Relu", "CPU", "liba.so") == one.kernels[1:]
    assert registry.kernels(device_type="cpu") == ()
    assert registry.kernels("Relu", plugin="libb.so") == ()


def test_a_replacement_takes_the_position_in_one_step(registry):
    first, second, new = (offer(name, "MatMul") for name in ("liba.so", "libb.so", "libc.so"))
    registry.enter(first)
    registry.enter(second)

    violations = registry.enter(new, instead_of=first)

    assert [each.plugin for each in registry.kernels()] == ["libc.so", "libb.so"]
    assert [each.rule for each in violations] == [KERNEL_UNIQUE]  # of the second, not the first
    assert "libb.so" in violations[0].message


def test_a_standard_definition_comes_before_a_plugins(registry):
    (violation,) = registry.enter(offer("liba.so", definitions=(OTHER_MATMUL,)))

    assert registry.definition("MatMul") == MATMUL
    assert violation.rule == DEFINITION_UNIQUE
    assert not violation.is_error
    assert "expected that of TensorFlow 2.21.0" in violation.message
    assert "the operation is commutative" in violation.message


def test_an_identical_definition_is_no_conflict(registry):
    again = dataclasses.replace(MATMUL, source="liba.so")

    assert registry.enter(offer("liba.so", definitions=(again, OWN, OWN))) == ()


def test_the_definition_of_the_first_plugin_counts_until_it_leaves(registry):
    first = offer("liba.so", definitions=(OWN,))
    changed = dataclasses.replace(OWN, is_stateful=True, source="libb.so")
    registry.enter(first)

    (violation,) = registry.enter(offer("libb.so", definitions=(changed,)))

    assert violation.rule == DEFINITION_UNIQUE
    assert registry.definition("OwnConcat") is OWN
    registry.leave(first)
    assert registry.definition("OwnConcat") is changed


def test_an_unknown_operation_is_refused_with_similar_names(registry):
    registry.enter(offer("liba.so", "Matmul"))

    with pytest.raises(NotFoundError, match="no operation 'Matmul' is defined") as raised:
        registry.definition("Matmul")

    assert raised.value.rule == OPERATION_KNOWN
    assert "similar ones: MatMul" in raised.value.message
    assert "of plugin liba.so" in raised.value.message


def test_a_closed_registry_is_empty_and_refuses(registry):
    one = offer("liba.so", "MatMul")
    registry.enter(one)

    registry.close()

    assert registry.kernels() == ()
    registry.leave(one)
    with pytest.raises(ClosedError, match="the plugin service is closed"):
        registry.enter(offer("libb.so", "MatMul"))


OTHER = offer("libc.so", "MatMul")


@pytest.mark.parametrize("instead_of", [None, OTHER])
def test_a_signal_handler_may_register_in_the_middle(instead_of):
    one, two = offer("liba.so", "MatMul"), offer("libb.so", "MatMul")
    plugins = {"liba.so", "libb.so"} | ({"libc.so"} if instead_of is None else set())

    for point in points():
        registry = KernelRegistry(lambda: {"MatMul": MATMUL})
        registry.enter(OTHER)
        more = interrupt(
            lambda to=registry: to.enter(one),
            point=point,
            handler=lambda to=registry: to.enter(two, instead_of=instead_of),
        )
        if not more:
            break
        assert {each.plugin for each in registry.kernels()} == plugins
    assert point > 10


def test_what_is_interrupted_is_complete_or_can_be_done_again():
    one = offer("liba.so", "MatMul", "Relu")

    for point in points():
        registry = KernelRegistry(lambda: {"MatMul": MATMUL})
        registry.enter(OTHER)
        more = interrupt(lambda to=registry: to.enter(one), point=point)
        assert registry.kernels() in (OTHER.kernels, (*OTHER.kernels, *one.kernels))
        with ThreadPoolExecutor(1) as other:  # the lock is free
            other.submit(registry.enter, one).result(60)
        assert registry.kernels() == (*OTHER.kernels, *one.kernels)
        if not more:
            break
    assert point > 10
