"""Variables: resources and references that kernels assign, update and lock."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from textwrap import dedent

import numpy as np
import pytest

from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from tests.kernel.kernels import host_device_with, library_to_open_again


def build_variables():
    return library_to_open_again("variables")


@pytest.fixture(scope="module")
def device():
    with host_device_with(build_variables()) as made:
        yield made


@pytest.fixture
def variable(device):
    return device.variable("float32")


def floats(*values):
    return np.array(values, "float32")


def values_of(variable):
    return variable.value().to_numpy().tolist()


def test_kernels_and_python_assign_read_and_update(device, variable):
    """What was assigned is a copy, and what was read stays as it was."""
    source = floats(1, 2)
    device.op("MtfAssign")(variable, source)
    source[:] = 9
    by_python, by_kernel = variable.value(), device.op("MtfRead")(variable)
    device.op("MtfAdd")(variable, floats(5, 5))

    assert by_python.to_numpy().tolist() == by_kernel.to_numpy().tolist() == [1, 2]
    assert values_of(variable) == [6, 7]
    variable.assign(floats(1, 2, 3))
    device.op("MtfSubtract")(variable, floats(1, 1, 1))
    assert values_of(variable) == [0, 1, 2]
    out = device.op("MtfAssignReference")(variable, floats(4, 5, 6))
    assert values_of(variable) == out.to_numpy().tolist() == [4, 5, 6]
    device.op("MtfKeepLocked")(variable)
    assert values_of(variable) == [4, 5, 6], "a lock ends with the call"


def test_a_variable_without_value_is_told(device, variable):
    with pytest.raises(FailedPreconditionError, match="has no value yet"):
        variable.value()
    for op, arguments in (("MtfRead", ()), ("MtfAdd", (floats(1),))):
        with pytest.raises(FailedPreconditionError, match="has no value yet"):
            device.op(op)(variable, *arguments)


def test_another_shape_or_type_is_refused_where_it_counts(device, variable):
    variable.assign(floats(1, 2))

    for op in ("MtfAssign", "MtfAdd"):
        with pytest.raises(InvalidArgumentError, match=r"shape \[2\].*shape \[3\]"):
            device.op(op)(variable, floats(1, 2, 3))
    device.op("MtfReassign")(variable, floats(1, 2, 3))

    assert values_of(variable) == [1, 2, 3]
    with pytest.raises(InvalidArgumentError, match="a variable of float cannot be"):
        variable.assign(np.zeros(2))
    with pytest.raises(InvalidArgumentError, match="KN-044"):
        device.op("MtfRead")(floats(1))


@pytest.mark.parametrize("are_one", [False, True])
def test_variables_are_locked_together(device, are_one):
    one = device.variable("float32")
    one.assign(floats(0))
    other = one if are_one else device.variable("float32")
    other.assign(floats(0))
    add_to_both = device.op("MtfAddToBoth")

    def work(first, second):
        for _ in range(200):
            add_to_both(first, second, floats(1))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, (one, other, one), (other, one, other)))

    assert values_of(one) == [1200 if are_one else 600]
    assert values_of(other) == values_of(one)


LOCKED = """
    import ctypes, faulthandler, signal, sys, threading
    from modular_tf import PluginService
    from modular_tf.errors import AbortedError, DeadlineExceededError
    from tests.kernel.test_variables import floats

    faulthandler.dump_traceback_later(60, exit=True)
    service = PluginService()
    service.load("host_device", sys.argv[1])
    device = service.device("CPU:0")
    variable, other = device.variable("float32"), device.variable("float32")
    value = floats(1)
    for each in (variable, other):
        each.assign(value)

    def interrupt(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)

    def lock_until_interrupted():
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        try:
            device.op("MtfLockUntilLetGo")(variable)
        except KeyboardInterrupt:
            return
        raise AssertionError

    def failures_of(**calls):
        # Make calls at once; return those that were aborted, with rule and message.
        found = {}

        def use(name, call):
            try:
                call()
            except AbortedError as error:
                found[name] = error.rule, str(error)

        threads = [threading.Thread(target=use, args=each) for each in calls.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found
"""


@pytest.fixture
def run_locked(run_forked):
    """Run code in a child where a kernel that has a variable locked can be interrupted."""
    return lambda code: run_forked(dedent(LOCKED) + dedent(code), build_variables())


def test_kernels_that_lock_variables_one_by_one_do_not_wait_for_each_other_for_ever(run_locked):
    run_locked("""
        lock_apart = device.op("MtfLockApart")
        found = failures_of(
            one=lambda: lock_apart(variable, other, value),
            two=lambda: lock_apart(other, variable, value),
        )
        assert len(found) == 1, found
        assert all("at once" in message for _, message in found.values()), found
        assert [each.value().tolist() for each in (variable, other)] == [[1], [1]]
    """)


def test_a_kernel_that_was_interrupted_and_is_not_done_locks_nobody_out_for_ever(run_locked):
    """And the memory of the variable stays while the kernel has it locked."""
    run_locked("""
        lock_until_interrupted()
        calls = dict(
            value=variable.value,
            assign=lambda: variable.assign(value),
            add=lambda: device.op("MtfAdd")(variable, value),
            lock=lambda: device.op("MtfAddToBoth")(other, variable, value),
            forward=lambda: device.op("MtfForwardReference")(variable),
        )
        found = failures_of(**calls)
        assert found.keys() == calls.keys(), found
        for rule, message in found.values():
            assert rule == "KN-095" and "was interrupted" in message, found
        assert other.value().tolist() == [1]
        device.op("MtfLetGo")()
        device.op("MtfAdd")(variable, value)
        assert variable.value().tolist() == [100], variable.value().tolist()

        lock_until_interrupted()
        variable.close()
        try:
            service.close()
        except DeadlineExceededError as error:
            assert "is not done" in str(error), error
        else:
            raise AssertionError
        ctypes.CDLL(sys.argv[1]).end_interrupted()
    """)


def test_temporary_variables_have_a_name_on_their_device():
    for _ in range(2):
        with host_device_with(build_variables()) as device:
            assert device.op("MtfTemporary")().to_numpy().tolist() == [0, 0, 0]
            with pytest.raises(AlreadyExistsError, match="'temporary' exists"):
                device.op("MtfTemporary")()
            with pytest.raises(NotFoundError, match="no temporary variable 'temporary'"):
                device.op("MtfEndTemporary")(device.variable("float32"))


def test_a_variable_that_was_closed_or_has_ended_with_the_service_is_told(variable, device):
    variable.assign(floats(1))
    variable.close()
    with pytest.raises(ClosedError):
        device.op("MtfRead")(variable)
    with host_device_with(build_variables()) as other:
        ended, executor = other.variable("float32"), other.executor
        ended.assign(floats(1))
    assert executor.host_memories == 0
    for gone in (variable, ended):
        with pytest.raises(ClosedError):
            gone.value()
