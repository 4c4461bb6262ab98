"""Calls that were prepared by earlier ones."""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest

from modular_tf import PluginService, errors
from modular_tf.kernel import op as ops
from modular_tf.kernel.running import retained
from modular_tf.native.ffi import lib
from tests.kernel.kernels import host_device_with, kernel_library

KERNELS = "call_kernels"

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)
MORE = (VALUES + 1).tolist()


class State(ctypes.Structure):
    """The one of call_kernels.c."""

    _fields_ = [
        *(
            (name, ctypes.c_int)
            for name in (
                "created",
                "deleted",
                "deallocated",
                "started",
                "may_end",
                "aborts",
                "fails",
            )
        ),
        ("last_input", ctypes.c_void_p),
    ]


def state_of(device):
    return State.from_address(int(device.op("CallState")().to_numpy()))


@pytest.fixture
def state(device):
    return state_of(device)


@pytest.fixture
def array(device):
    return device.put(VALUES)


@pytest.fixture
def one_more(device, array):
    """The operation, which was called with an array and with values of this type."""
    op = device.op("CallOneMore")
    for given in (array, VALUES):
        op(given)
    return op


@pytest.fixture
def prepared(monkeypatch):
    """Make a call, which has to be one that was prepared, and return its result."""
    calls = []

    def noted(*arguments):
        found = call(*arguments)
        calls.append(found is not NotImplemented)
        return found

    def make(op, *inputs):
        calls.clear()
        found = op(*inputs)
        assert calls == [True]
        return found

    call = ops.call_prepared
    monkeypatch.setattr(ops, "call_prepared", noted)
    return make


def held(device):
    gc.collect()
    return lib.mtf_executor_held_objects(device.executor.native)


def aligned(n):
    whole = np.zeros(n + 16, np.float32)
    skip = -whole.ctypes.data % 64 // 4
    return whole[skip : skip + n]


def test_the_second_call_with_such_inputs_is_prepared(device, array, one_more, prepared):
    empty = np.float32([])
    for given, values in (
        (array, VALUES), (VALUES, VALUES), (aligned(5), np.zeros(5)),
        (empty, empty), (device.put(empty), empty),
    ):  # fmt: skip
        for found in (one_more(given), prepared(one_more, given)):
            assert (found.device, found.dtype, found.closed) == (device, "float32", False)
            assert found.shape == values.shape
            np.testing.assert_array_equal(found.to_numpy(), values + 1)
    nothing = device.op("CallNothing")
    assert nothing() is None
    assert prepared(nothing) is None


def test_outputs_are_arrays_like_any_other(device, array, one_more, prepared):
    made = prepared(one_more, array)
    assert bytes(made.to_host()) == made.to_bytes() == (VALUES + 1).tobytes()
    assert np.from_dlpack(made, device="cpu").tolist() == MORE
    assert made.copy_to(device).to_numpy().tolist() == MORE
    assert made.memory.size == made.nbytes == len(made.device_memory) == 24
    assert made.memory is made.memory
    assert made.memory.address == made.address
    made.copy_from(VALUES * 2)
    assert made.to_numpy().tolist() == (VALUES * 2).tolist()
    assert prepared(one_more, made).to_numpy().tolist() == (VALUES * 2 + 1).tolist()
    out = np.empty((2, 3), np.float32)
    assert prepared(one_more, array).to_numpy(out) is out
    assert out.tolist() == MORE
    one_more(np.float32([]))
    empty = prepared(one_more, np.float32([]))
    assert (empty.memory.size, empty.to_numpy().shape) == (0, (0,))


def test_several_outputs_are_a_named_tuple_and_one_that_is_the_input_is_a_copy(
    device, array, prepared
):
    two = device.op("CallTwo")
    two(array)
    pair = prepared(two, array)
    assert pair._fields == ("y", "z")
    assert [each.to_numpy().tolist() for each in pair] == [MORE, (VALUES + 2).tolist()]
    identity = device.op("CallIdentity")
    found = identity(array), prepared(identity, array)
    assert array.address not in {each.address for each in found}
    array.copy_from(VALUES * 3)
    assert [each.to_numpy().tolist() for each in found] == [VALUES.tolist()] * 2


def test_views_of_arrays_are_aligned_too(device, array, one_more, prepared, state):
    flat = array.reshape(-1)
    for view, values in ((flat[1:], VALUES.ravel()[1:]), (array[1], VALUES[1]), (flat[:0], [])):
        for _ in range(3):
            assert one_more(view).tolist() == [each + 1 for each in values]
            assert state.last_input % 64 == 0
    assert one_more(flat[1:], donate=[]).tolist() == [2, 3, 4, 5, 6]
    assert device.run("CallIdentity", flat[1:]).tolist() == [1, 2, 3, 4, 5]
    assert flat.tolist() == VALUES.ravel().tolist()
    for lent, address in ((flat, flat.address), ((values := aligned(8)), values.ctypes.data)):
        one_more(lent)
        prepared(one_more, lent)
        assert state.last_input == address


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (VALUES.T, VALUES.T + 1),
        (np.float32(2), 3.0),
        (memoryview(VALUES), VALUES + 1),
        ([VALUES], [VALUES + 1]),
        (np.zeros(1 << 20, np.float32)[1:], np.ones((1 << 20) - 1)),
    ],
    ids=["turned", "scalar", "buffer", "list", "large"],
)
def test_what_is_unusual_goes_the_general_way(one_more, given, expected):
    np.testing.assert_array_equal(one_more(given).to_numpy(), expected)


@pytest.mark.parametrize(
    "wrong",
    [[VALUES.astype("f8")], [VALUES.astype("i4")], ["text"], [None], [[None]], [], [VALUES] * 2],
)
def test_what_does_not_fit_is_refused(one_more, array, wrong):
    with pytest.raises((errors.InvalidArgumentError, TypeError)):
        one_more(*wrong)
    assert one_more(x=array).to_numpy().tolist() == MORE


def test_closed_arrays_are_refused(array, one_more):
    one, other = one_more(array), one_more(array)
    one.close()
    assert (one.closed, other.closed) == (True, False)
    other.memory.close()
    array.memory.close()
    for given in (one, other, array):
        with pytest.raises(errors.ClosedError):
            one_more(given)
    with pytest.raises(errors.ClosedError):
        one.to_numpy()


def test_memory_goes_with_the_last_user_of_an_output(device, array, one_more, prepared):
    before = held(device)
    made = prepared(one_more, array)
    assert held(device) == before + 1
    memory = made.memory
    del made, memory
    assert held(device) == before
    made = one_more(array)
    made.close()
    assert held(device) == before
    made = one_more(array)
    view = np.from_dlpack(made.to_host())
    del made
    assert held(device) == before
    assert view.sum() == VALUES.sum() + 6
    for _ in range(500):
        one_more(array)
        one_more(VALUES)
    assert held(device) == before
    assert lib.mtf_kernel_tensor_handles() == 0


def test_memory_of_the_plugin_is_given_back_once(device, prepared, state):
    own = device.op("CallOwnMemory")
    own()
    made = prepared(own)
    before = state.deallocated
    assert (made.to_numpy().tolist(), made.memory.size) == ([0, 1, 2], 12)
    del made
    assert state.deallocated == before + 1


@pytest.mark.parametrize(
    "make",
    [lambda device: device.put(VALUES), lambda _: aligned(6), lambda _: aligned(7)[1:]],
    ids=["array", "aligned", "not aligned"],
)
@pytest.mark.parametrize("fails", [False, True])
def test_an_input_stays_while_a_kernel_has_it(device, prepared, state, make, fails):
    retain, release = device.op("CallRetain"), device.op("CallRelease")
    for _ in range(2):
        release()
        retain(make(device))
    release()
    given = make(device)
    before = held(device)
    state.fails = fails
    with pytest.raises(errors.OutOfRangeError) if fails else nullcontext():
        prepared(retain, given)
    state.fails = 0
    assert len(retained) == 1
    is_array = not isinstance(given, np.ndarray)
    if is_array:
        given.close()
        assert held(device) == before
    del given
    assert held(device) == before
    assert len(retained) == 1
    prepared(release)
    assert not retained
    assert held(device) == before - is_array


def test_a_failure_names_op_and_kernel_and_the_next_call_works(device, array, one_more, prepared):
    found = []
    for _ in range(2):
        with pytest.raises(errors.OutOfRangeError, match="as asked") as raised:
            device.op("CallFail")(array)
        assert raised.value.operation == "CallFail"
        found.append(str(raised.value))
    assert found[0] == found[1]
    assert prepared(one_more, array).to_numpy().tolist() == MORE


def begin_slow_call(device, given):
    """Call a kernel that ends when `may_end` is set; return its thread, and where its output is."""
    slow, state, found = device.op("CallSlow"), state_of(device), []
    slow(given)
    state.may_end = 0
    started = state.started
    thread = threading.Thread(target=lambda: found.append(slow(given)))
    thread.start()
    while state.started == started:
        time.sleep(0.001)
    return thread, found


def test_other_threads_run_while_a_kernel_computes(device, array, state):
    thread, found = begin_slow_call(device, array)
    before = held(device)
    array.close()  # the kernel keeps it
    assert held(device) == before
    state.may_end = 1
    thread.join()
    assert found[0].to_numpy().tolist() == MORE


def test_closing_the_service_waits_for_a_call(state):
    def kernels():
        return state.created - state.deleted

    before = kernels()
    with PluginService() as service:
        service.load("host_device", str(kernel_library("call_kernels")))
        device = service.device("CPU:0")
        one_more, array = device.op("CallOneMore"), device.put(VALUES)
        one_more(array)
        made = one_more(array)
        thread, found = begin_slow_call(device, array)
        closer = threading.Thread(target=service.close)
        closer.start()
        time.sleep(0.05)
        state.may_end = 1
        thread.join()
        closer.join()
    assert found[0].closed
    assert made.closed
    for call in (
        lambda: one_more(array), lambda: one_more(VALUES), made.to_numpy, found[0].to_numpy,
    ):  # fmt: skip
        with pytest.raises(errors.ClosedError):
            call()
    del thread, found
    gc.collect()
    assert kernels() == before


def test_threads_share_prepared_calls(device, one_more):
    def work(number):
        given = device.put(VALUES + number)
        return {one_more(given).to_numpy()[0, 0] for _ in range(300)}

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [{1}, {2}, {3}, {4}]


def test_interrupts_lose_and_double_nothing(run_forked):
    code = """
        import signal, sys
        import numpy as np
        from tests.kernel.kernels import host_device_with
        from tests.kernel.test_calls import MORE, VALUES, held

        class Interrupted(Exception): pass
        def interrupt(*_): raise Interrupted

        with host_device_with(sys.argv[1]) as device:
            one_more, array = device.op("CallOneMore"), device.put(VALUES)
            one_more(array), one_more(array).to_numpy()
            before, seen = held(device), 0
            signal.signal(signal.SIGALRM, interrupt)
            for step in range(100):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.0001 + step * 0.000009)
                    while True:
                        one_more(array).memory
                except Interrupted:
                    seen += 1
            assert seen == 100 and held(device) == before, (seen, held(device), before)
            assert one_more(array).to_numpy().tolist() == MORE
    """
    run_forked(code, kernel_library("call_kernels"))


def test_a_change_of_the_registry_is_seen():
    with host_device_with(kernel_library("call_kernels")) as device:
        one_more = device.op("CallOneMore")
        for _ in range(2):
            one_more(VALUES)
        registry = one_more._runner.registry
        (entered,) = registry._tables.plugins
        registry.leave(entered)
        with pytest.raises(errors.NotFoundError):
            one_more(VALUES)


def test_copies_of_streams_are_done_before_a_kernel_reads(device, array, one_more):
    stream = device.create_stream()
    for turn in range(10):
        stream.memcpy_htod(array.memory, np.full((2, 3), turn, np.float32))
        assert one_more(array).to_numpy()[1, 2] == turn + 1
