"""The registry of kernels and definitions: what serves, since when, until when."""

from __future__ import annotations

import dataclasses
import linecache
import os
import sys
import threading

import pytest

from modular_tf.errors import ClosedError, NotFoundError
from modular_tf.kernel.registry import KernelRegistry, PluginKernels
from modular_tf.rules.kernel import DEFINITION_UNIQUE, KERNEL_UNIQUE, OPERATION_KNOWN
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


def test_what_is_entered_serves(registry):
    one = offer("liba.so", "MatMul", "OwnConcat", definitions=(OWN,))

    assert registry.enter(one) == ()

    assert registry.kernels_of("MatMul") == one.kernels[:1]
    assert registry.definition("OwnConcat") is OWN
    assert registry.op_names() == ("MatMul", "OwnConcat")


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


def test_what_leaves_is_gone_as_a_whole(registry):
    one, two = offer("liba.so", "MatMul", definitions=(OWN,)), offer("libb.so", "MatMul")
    registry.enter(one)
    registry.enter(two)

    registry.leave(one)
    registry.leave(one)

    assert registry.kernels() == two.kernels
    assert registry.find_definition("OwnConcat") is None


def test_what_has_left_cannot_be_entered_again(registry):
    one = offer("liba.so", "MatMul")
    registry.leave(one)

    with pytest.raises(ClosedError, match="plugin liba"):
        registry.enter(one)


def test_entering_twice_does_nothing_more(registry):
    one = offer("liba.so", "MatMul")

    assert registry.enter(one) == registry.enter(one) == ()
    assert registry.kernels() == one.kernels


def test_a_replacement_takes_the_position_in_one_step(registry):
    first, second, new = (offer(name, "MatMul") for name in ("liba.so", "libb.so", "libc.so"))
    registry.enter(first)
    registry.enter(second)

    violations = registry.enter(new, instead_of=first)

    assert [each.plugin for each in registry.kernels()] == ["libc.so", "libb.so"]
    assert [each.rule for each in violations] == [KERNEL_UNIQUE]  # of the second, not the first
    assert "libb.so" in violations[0].message


def test_every_change_makes_another_moment(registry):
    one = offer("liba.so", "MatMul")
    before = registry.moment
    registry.enter(one)
    entered = registry.moment
    registry.leave(one)

    assert len({before, entered, registry.moment}) == 3


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


def test_readers_see_all_of_a_plugin_or_nothing(registry):
    ops = [f"Op{number}" for number in range(50)]
    seen, stop = set(), threading.Event()

    def read():
        while not stop.is_set():
            seen.add(len(registry.kernels()))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(50):
        one = offer("liba.so", *ops)
        registry.enter(one)
        registry.leave(one)
    stop.set()
    reader.join()

    assert seen <= {0, len(ops)}


def test_plugins_of_several_threads_all_serve(registry):
    offers = [offer(f"lib{number}.so", f"Op{number}") for number in range(40)]
    threads = [
        threading.Thread(target=lambda part=offers[n::4]: [registry.enter(o) for o in part])
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {each.plugin for each in registry.kernels()} == {each.plugin for each in offers}


def test_a_forked_child_registers_though_another_thread_held_the_lock(registry):
    holds, release = threading.Event(), threading.Event()

    def hold():
        with registry._lock:
            holds.set()
            release.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    holds.wait(60)
    child = os.fork()
    if child == 0:
        try:
            registry.enter(offer())
            os._exit(7)
        finally:
            os._exit(1)
    release.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_tensorflows_definitions_are_known_without_a_plugin():
    registry = KernelRegistry()

    assert registry.definition("MatMul").source.startswith("TensorFlow ")
    assert len(registry.op_names()) > 1000


class Interrupted(Exception):  # noqa: N818  (what a signal handler raises)
    pass


def at_line(number, act):
    """Return a trace function that acts once, before the line of that number that a call runs.

    `with` is no such line: between the end of its body and the call that frees the lock no signal
    handler runs.
    """
    lines = iter(range(number, -1, -1))
    module = sys.modules[KernelRegistry.__module__].__file__

    def trace(frame, event, _argument):
        if frame.f_code.co_filename != module:
            return None
        is_with = linecache.getline(module, frame.f_lineno).lstrip().startswith("with ")
        if event == "line" and not is_with and next(lines, None) == 0:
            sys.settrace(None)
            act()
        return trace

    return trace


LINES = range(40)


@pytest.mark.parametrize("number", LINES)
def test_a_signal_handler_may_register_in_the_middle(registry, number):
    one, two, three = (offer(f"lib{name}.so", "MatMul") for name in "abc")
    registry.enter(three)

    sys.settrace(at_line(number, lambda: (registry.enter(two), registry.leave(three))))
    registry.enter(one)
    sys.settrace(None)

    expected = {"liba.so", "libb.so"} if two in registry._tables.plugins else {"liba.so", "libc.so"}
    assert {each.plugin for each in registry.kernels()} == expected


def test_lines_reach_through_the_whole_of_entering(registry):
    acted = []

    sys.settrace(at_line(LINES.stop, lambda: acted.append(True)))
    registry.enter(offer("liba.so", "MatMul"))
    sys.settrace(None)

    assert acted


@pytest.mark.parametrize("number", LINES)
def test_what_is_interrupted_is_complete_or_can_be_done_again(registry, number):
    def interrupt():
        raise Interrupted

    one = offer("liba.so", "MatMul", "Relu")

    sys.settrace(at_line(number, interrupt))
    with pytest.raises(Interrupted):
        registry.enter(one)
    sys.settrace(None)

    assert registry.kernels() in ((), one.kernels)
    assert not registry._lock._is_owned()
    registry.enter(one)
    assert registry.kernels() == one.kernels
