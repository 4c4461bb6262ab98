"""Kernels that break the rules: the call fails with the rule, and the next call works.

The kernels are in tests/plugins/kernel/hostile_kernels.cc, by the names that the tests give.
"""

from __future__ import annotations

import gc
import time
from contextlib import nullcontext
from textwrap import dedent

import numpy as np
import pytest

from modular_tf import PluginService
from modular_tf.errors import (
    DataLossError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    ModularTFError,
    ResourceExhaustedError,
    UnimplementedError,
)
from modular_tf.kernel.running import retained
from modular_tf.native.ffi import lib
from tests.kernel.kernels import host_device_with, kernel_library, library_to_open_again

X = np.array([1, 2, 3], "float32")
DOUBLED = [2, 4, 6]


@pytest.fixture(scope="module")
def device():
    with host_device_with(kernel_library("hostile_kernels")) as made:
        yield made
    gc.collect()
    assert (lib.mtf_kernel_tensor_handles(), retained) == (0, {})


def works(device):
    later = device.op("MtfHostileAsync")
    for found in (device.op("MtfHostile")(X), later(X), later(X, case="in a thread")):
        assert found.to_numpy().tolist() == DOUBLED


@pytest.fixture
def hostile(device):
    """The operation; after each test it works."""
    yield device.op("MtfHostile")
    works(device)


SYNCHRONOUS = [
    ("report", DataLossError, "the kernel says so", None),
    ("throw", InternalError, "thrown by the kernel", None),
    ("throw with an output", InternalError, "thrown by the kernel", None),
    ("unset", InternalError, "Missing 0-th output", "KN-080"),
    ("allocate twice", InternalError, "output 0 was allocated or set before", None),
    ("allocate too much", ResourceExhaustedError, "140737488355328 bytes", None),
    ("allocate too much and say nothing", InternalError, "Missing 0-th output", "KN-080"),
    ("wrong type", InvalidArgumentError, "actual double vs. expect float", "KN-079"),
    ("use the construction", InternalError, "TF_OpKernelConstruction", "KN-063"),
    ("delete a tensor twice", InternalError, "TF_DeleteTensor", "KN-101"),
    ("read a deleted tensor", InternalError, "TF_TensorData", None),
    ("no context", InternalError, "NULL", None),
    ("ask for a stream", FailedPreconditionError, "stream", None),
    ("fail in create", UnimplementedError, "create says so", None),
]
ASYNCHRONOUS = [
    ("report in a thread", DataLossError, "the kernel says so"),
    ("unset", InternalError, "Missing 0-th output"),
    ("twice", InternalError, "`done` was run before"),
    ("use the context after it", InternalError, "TF_OpKernelContext"),
    ("throw behind it", InternalError, "thrown by the kernel"),
]


@pytest.mark.parametrize(
    ("op", "case", "error", "text", "rule"),
    [
        *(("MtfHostile", *row) for row in SYNCHRONOUS),
        *(("MtfHostileAsync", *row, None) for row in ASYNCHRONOUS),
    ],
)
def test_a_misuse_is_an_error(device, op, case, error, text, rule):
    for _ in range(2):
        with pytest.raises(error) as raised:
            device.op(op)(X, case=case)
        works(device)
    assert type(raised.value) is error
    for part in (text, "plugin hostile_kernels", op):
        assert part in str(raised.value)
    assert rule in {None, raised.value.rule}


@pytest.mark.parametrize(
    ("op", "case", "size"),
    [
        ("MtfHostile", "write to an input", 3),
        ("MtfHostile", "write to the end of an input", 3),
        ("MtfHostile", "write to the end of an input", 1_000_001),
        ("MtfHostileAsync", "write to an input in a thread", 3),
    ],
)
@pytest.mark.parametrize("is_on_device", [True, False])
def test_a_write_to_an_input_is_an_error(device, op, case, size, is_on_device):
    other = device.put(X)
    for _ in range(3):
        given = np.ones(size, "float32")
        with pytest.raises(InternalError) as raised:
            device.op(op)(device.put(given) if is_on_device else given, case=case)
        works(device)
    assert (type(raised.value), raised.value.rule) == (InternalError, "KN-093")
    for part in ("wrote to input 0 ('x')", "may hold other values now", "plugin hostile_kernels"):
        assert part in str(raised.value)
    assert other.to_numpy().tolist() == [1, 2, 3]


def test_inputs_are_compared_until_a_call_has_succeeded(hostile):
    for _ in range(2):
        hostile(X.copy(), case="write to an input later")
    for given in (X.reshape(1, 3).copy(), X.copy()):
        with pytest.raises(ModularTFError) as raised:
            hostile(given, case="write to an input")
    assert raised.value.rule == "KN-093"


@pytest.mark.parametrize("case", ["write to an input", "write to the end of an input"])
def test_a_donated_input_may_be_written_to(device, hostile, case):
    given = device.put(X)
    hostile(given, case=case, donate=[given])
    assert given.closed


def test_a_context_of_a_call_that_is_over_is_no_context(hostile):
    hostile(X, case="keep the context")
    with pytest.raises(ModularTFError, match="TF_GetInput") as raised:
        hostile(X, case="use a kept context")
    assert raised.value.rule == "KN-096"


def await_logged(device, capfd, rule):
    """Make calls until the log names a rule that a thread of a kernel broke."""
    deadline, text = time.monotonic() + 30, ""
    while rule not in text:
        assert time.monotonic() < deadline, text
        works(device)
        text += capfd.readouterr().err


@pytest.mark.parametrize(
    ("op", "case", "throws", "rule"),
    [
        ("MtfHostile", "use it in a thread later", False, "KN-096"),
        ("MtfHostileAsync", "twice in a thread", False, "KN-095"),
        ("MtfHostileAsync", "throw and run it later", True, "KN-095"),
    ],
)
def test_what_a_thread_does_behind_a_call_is_logged(device, capfd, op, case, throws, rule):
    with pytest.raises(InternalError, match="thrown by the kernel") if throws else nullcontext():
        assert device.op(op)(X, case=case).to_numpy().tolist() == DOUBLED
    await_logged(device, capfd, rule)


# -- asynchronous ones ---------------------------------------------------------------------------


PRELUDE = dedent("""
    import ctypes, gc, logging, signal, sys, threading, time
    import numpy as np
    from modular_tf import errors
    from modular_tf.kernel import running
    from modular_tf.service.service import PluginService

    logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
    service = PluginService()
    service.load("host_device", sys.argv[1])
    device = service.device("CPU:0")
    hostile, later = device.op("MtfHostile"), device.op("MtfHostileAsync")
    x = np.array([1, 2, 3], "float32")
    in_kernels = ctypes.c_int.in_dll(ctypes.CDLL(sys.argv[1]), "hostile_kernels_running")

    def works():
        assert hostile(x).to_numpy().tolist() == [2, 4, 6]
        assert later(x).to_numpy().tolist() == [2, 4, 6]

    class Interrupt(BaseException):
        pass

    def interrupt(*_):
        raise Interrupt

    signal.signal(signal.SIGALRM, interrupt)

    def interrupted(case, after=0.1):
        signal.setitimer(signal.ITIMER_REAL, after)
        try:
            later(x.copy(), case=case)
        except Interrupt:
            return True
        return False

    def error_of_close():
        try:
            service.close()
        except errors.ModularTFError as error:
            return str(error)
""")


@pytest.fixture
def run_hostile(run_forked):
    """Run code in a child where calls can be interrupted; returns what it printed and logged."""

    def run(code):
        return run_forked(PRELUDE + dedent(code), library_to_open_again("hostile_kernels")).stdout

    return run


def test_a_wait_for_done_can_be_interrupted_and_a_close_waits_for_the_kernel(run_hostile):
    run_hostile("""
        for _ in range(3):
            assert interrupted("late")
            works()
        gc.collect()
        time.sleep(1)  # the late ones compute now, from inputs that nobody else has
        works()
        assert interrupted("slow")
        assert in_kernels.value == 1
        service.close()
        assert in_kernels.value == 0
    """)


def test_a_wait_for_done_that_is_never_run_can_be_interrupted_and_is_logged(run_hostile):
    output = run_hostile("""
        for _ in range(3):
            assert interrupted("never")
            works()
        running._SILENT_SLICES = 2
        assert interrupted("never", after=2)
        later(x, case="run that of a call that is over")
        try:
            later(x, case="run that of a call that is over")
        except errors.ModularTFError as error:
            assert error.rule == "KN-095", error
        else:
            raise AssertionError
        works()
        assert "is not done" in error_of_close()
        service.close()
    """)
    assert "kernel.not_done" in output
    assert "KN-095" in output


def test_what_a_kernel_may_use_that_is_never_done_is_not_freed(run_hostile):
    run_hostile("""
        assert interrupted("held")
        assert "is not done" in error_of_close()
        in_kernels.value = 0
        while in_kernels.value != -1:  # it writes to its input, and is done
            time.sleep(0.01)
    """)


def test_what_breaks_nothing_is_accepted_and_the_process_ends_with_kernels_alive(run_hostile):
    output = run_hostile("""
        for case in ("report OK", "keep an input", "throw in delete"):
            assert hostile(x, case=case).to_numpy().tolist() == [2, 4, 6]
            works()
        for op, case in ((hostile, "none"), (hostile, "sleep"), (later, "never"), (later, "late")):
            threading.Thread(target=op, args=(x,), kwargs={"case": case}, daemon=True).start()
        time.sleep(0.1)
        print("done")
    """)
    assert output.splitlines()[0] == "done"


# -- arrays of another device ---------------------------------------------------------------------


def test_arrays_of_two_devices_are_an_error(fixture_device_plugin):
    with PluginService() as service:
        service.load("host_device", str(kernel_library("hostile_kernels")))
        service.load(str(fixture_device_plugin()))
        device = service.device("CPU:0")
        there = service.device("FIXTURE:0").put(X)
        with pytest.raises(InvalidArgumentError, match="FIXTURE:0"):
            device.op("MtfHostile")(there)
        with pytest.raises(InvalidArgumentError, match="FIXTURE:0"):
            service.op("AddV2")(there, device.put(X))
        works(device)
