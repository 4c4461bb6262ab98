"""Calls that were prepared by earlier ones, in child processes."""

from __future__ import annotations

import signal
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.children import PythonRunner

_PRELUDE = dedent("""
    import ctypes, gc, os, signal, sys, threading, time, weakref
    import numpy as np
    from modular_tf import PluginService, errors
    from modular_tf.kernel import op as ops
    from modular_tf.kernel.running import retained
    from modular_tf.native.ffi import lib

    service = PluginService()
    service.load("host_device", sys.argv[1])
    device = service.device("CPU:0")
    executor = device.executor
    one_more = device.op("CallOneMore")
    held = lambda: lib.mtf_executor_held_objects(executor.native)

    class State(ctypes.Structure):
        _fields_ = [
            *((name, ctypes.c_int) for name in
              ("created", "deleted", "deallocated", "started", "may_end", "aborts")),
            ("last_input", ctypes.c_void_p),
        ]
    state = State.from_address(int(device.op("CallState")().to_numpy()))

    short = []
    call_prepared = ops.call_prepared
    def noted(calls, inputs):
        found = call_prepared(calls, inputs)
        short.append(found is not NotImplemented)
        return found
    ops.call_prepared = noted

    def is_short(call):
        '''Return what a call returns, which has to go the short way.'''
        short.clear()
        found = call()
        assert short == [True], short
        return found

    def raised(kind, call):
        try:
            found = call()
        except kind as error:
            return error
        raise AssertionError(found)

    def aligned(n):
        whole = np.zeros(n + 16, np.float32)
        skip = -whole.ctypes.data % 64 // 4
        return whole[skip:skip + n]

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    X = device.put(x)
""")


@cache
def _kernels() -> Path:
    source = compile_object(Path(__file__).with_name("call_kernels.c"))
    return link_library("libcall_kernels.so", [source])


@pytest.fixture
def run_calls(run_python: PythonRunner) -> Callable[[str], str]:
    """Run code with the kernels of `call_kernels.c`; `is_short` says that a call was prepared."""

    def run(code: str) -> str:
        return run_python(_PRELUDE + dedent(code), _kernels()).stdout

    return run


def test_the_second_call_with_such_inputs_is_prepared(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        for given in (X, x, aligned(5), np.float32([]), device.put(np.float32([]))):
            expected = np.asarray(given.to_numpy() if hasattr(given, "device") and not
                                  isinstance(given, np.ndarray) else given) + 1
            general = one_more(given)
            found = is_short(lambda: one_more(given))
            for each in (general, found):
                assert each.device is device and each.dtype == "float32" and not each.closed
                assert each.shape == expected.shape, each
                np.testing.assert_array_equal(each.to_numpy(), expected)
        assert device.op("CallNothing")() is None
        nothing = device.op("CallNothing"); nothing()
        assert is_short(nothing) is None
    """)


def test_outputs_are_arrays_like_any_other(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        one_more(X)
        y = is_short(lambda: one_more(X))
        assert bytes(y.to_host()) == y.to_bytes() == (x + 1).tobytes()
        assert np.from_dlpack(y, device="cpu").tolist() == (x + 1).tolist()
        assert y.copy_to(device).to_numpy().tolist() == (x + 1).tolist()
        assert y.memory.size == y.nbytes == len(y.device_memory) == 24
        assert y.memory is y.memory and y.memory.address == y.address
        y.copy_from(x * 2)
        assert y.to_numpy().tolist() == (x * 2).tolist()
        assert is_short(lambda: one_more(y)).to_numpy().tolist() == (x * 2 + 1).tolist()
        out = np.empty((2, 3), np.float32)
        assert is_short(lambda: one_more(X)).to_numpy(out) is out
        assert out.tolist() == (x + 1).tolist()
        empty = one_more(np.float32([])); empty = one_more(np.float32([]))
        assert empty.memory.size == 0 and empty.to_numpy().shape == (0,)
    """)


def test_several_outputs_are_a_named_tuple(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        two = device.op("CallTwo")
        two(X)
        found = is_short(lambda: two(X))
        assert found._fields == ("y", "z")
        assert found.y.to_numpy().tolist() == (x + 1).tolist()
        assert found.z.to_numpy().tolist() == (x + 2).tolist()
    """)


def test_an_output_that_is_the_input_is_a_copy(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        identity = device.op("CallIdentity")
        general, prepared = identity(X), is_short(lambda: identity(X))
        for found in (general, prepared):
            assert found.address != X.address
        X.copy_from(x * 3)
        for found in (general, prepared):
            assert found.to_numpy().tolist() == x.tolist()
    """)


def test_aligned_memory_of_the_host_is_not_copied(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        values = aligned(8)
        one_more(values)
        assert state.last_input == values.ctypes.data
        is_short(lambda: one_more(values))
        assert state.last_input == values.ctypes.data
        whole = aligned(9)
        is_short(lambda: one_more(whole[1:]))
        assert state.last_input % 64 == 0
    """)


def test_views_of_arrays_are_aligned_too(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        flat = X.reshape(-1)
        for view, values in ((flat[1:], x.ravel()[1:]), (X[1], x[1]), (flat[:0], [])):
            for _ in range(3):
                assert one_more(view).tolist() == [each + 1 for each in values]
                assert state.last_input % 64 == 0
        assert one_more(flat[1:], donate=[]).tolist() == [2, 3, 4, 5, 6]
        assert device.run("CallIdentity", flat[1:]).tolist() == [1, 2, 3, 4, 5]
        assert flat.tolist() == x.ravel().tolist()
        is_short(lambda: one_more(flat))
        assert state.last_input == flat.address
    """)


def test_what_is_unusual_goes_the_general_way(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        one_more(x), one_more(X)
        for given, expected in (
            (x.T, x.T + 1), (x[:, ::2], x[:, ::2] + 1), (3.5, 4.5), (np.float32(2), 3.0),
            (memoryview(x), x + 1), (x.astype(">f4").astype("f4"), x + 1), ([x], [x + 1]),
        ):
            np.testing.assert_array_equal(one_more(given).to_numpy(), expected)
        large = np.zeros(1 << 20, np.float32)[1:]
        assert one_more(large).to_numpy()[-1] == 1
        for wrong in (x.astype("f8"), x.astype("i4"), "text", None, [None]):
            raised((errors.InvalidArgumentError, TypeError), lambda: one_more(wrong))
        raised(errors.InvalidArgumentError, lambda: one_more())
        raised(errors.InvalidArgumentError, lambda: one_more(x, x))
        assert one_more(x=X).to_numpy().tolist() == (x + 1).tolist()
    """)


def test_closed_arrays_are_refused(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        one_more(X)
        y, z = one_more(X), one_more(X)
        y.close()
        assert y.closed and not z.closed
        raised(errors.ClosedError, lambda: one_more(y))
        raised(errors.ClosedError, y.to_numpy)
        z.memory.close()  # by its memory
        raised(errors.ClosedError, lambda: one_more(z))
        X.memory.close()
        raised(errors.ClosedError, lambda: one_more(X))
    """)


def test_a_donated_input_is_closed(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        one_more(X)
        y = is_short(lambda: one_more(X))
        address = y.address
        z = one_more(y, donate=[y])
        assert y.closed and z.address == address
        assert z.to_numpy().tolist() == (x + 2).tolist()
        assert is_short(lambda: one_more(z)).to_numpy().tolist() == (x + 3).tolist()
    """)


def test_memory_goes_with_the_last_user_of_an_output(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        one_more(X), one_more(X).to_numpy()
        before = held()
        y = is_short(lambda: one_more(X))
        assert held() == before + 1
        memory = y.memory
        del y, memory
        assert held() == before, (held(), before)
        y = one_more(X)
        y.close()
        assert held() == before
        y = one_more(X)
        view = np.from_dlpack(y.to_host())
        del y
        assert held() == before and view.sum() == x.sum() + 6
        for _ in range(10_000):
            one_more(X), one_more(x)
        assert held() == before and lib.mtf_kernel_tensor_handles() == 0
    """)


def test_memory_of_the_plugin_is_given_back_once(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        own = device.op("CallOwnMemory")
        own()
        y = is_short(own)
        before = state.deallocated
        assert y.to_numpy().tolist() == [0, 1, 2] and y.memory.size == 12
        del y
        assert state.deallocated == before + 1
    """)


def test_a_crash_in_a_deallocator_names_the_plugin(run_python: PythonRunner) -> None:
    code = """
        own = device.op("CallOwnMemory")
        own()
        y = is_short(own)
        state.aborts = 1
        del y
    """
    ended = run_python(_PRELUDE + dedent(code), _kernels(), status=-signal.SIGABRT)
    assert "SIGABRT in plugin call_kernels, the deallocator of a tensor" in ended.stderr


def test_an_input_stays_while_a_kernel_has_it(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        retain, release = device.op("CallRetain"), device.op("CallRelease")
        release()
        for make in (lambda: device.put(x), lambda: aligned(6), lambda: aligned(7)[1:]):
            retain(make()), release()
            given = make()
            before = held()
            seen = weakref.ref(given) if not isinstance(given, np.ndarray) else None
            is_short(lambda: retain(given))
            assert len(retained) == 1
            if seen is not None:
                given.close()
                assert held() == before
            del given
            gc.collect()
            assert len(retained) == 1
            is_short(release)
            assert not retained
            if seen is not None:
                assert held() == before - 1
    """)


def test_a_failure_names_op_and_kernel_and_the_next_call_works(
    run_calls: Callable[[str], str],
) -> None:
    run_calls("""
        fails = device.op("CallFail")
        first = raised(errors.OutOfRangeError, lambda: fails(X))
        second = raised(errors.OutOfRangeError, lambda: fails(X))
        assert str(first) == str(second) and "as asked" in str(first), (first, second)
        assert second.operation == "CallFail"
        one_more(X)
        assert is_short(lambda: one_more(X)).to_numpy().tolist() == (x + 1).tolist()
    """)


def test_other_threads_run_while_a_kernel_computes(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        slow = device.op("CallSlow")
        slow(X)
        state.may_end = 0
        started, found = state.started, []
        given = device.put(x)
        thread = threading.Thread(target=lambda: found.append(slow(given)))
        thread.start()
        while state.started == started:
            time.sleep(0.001)
        before = held()
        given.close()  # the kernel keeps it
        assert held() == before
        state.may_end = 1
        thread.join()
        assert found[0].to_numpy().tolist() == (x + 1).tolist()
    """)


def test_closing_the_service_waits_for_a_call(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        slow = device.op("CallSlow")
        slow(X), one_more(X)
        y = one_more(X)
        state.may_end = 0
        started, found = state.started, []
        thread = threading.Thread(target=lambda: found.append(slow(X)))
        thread.start()
        while state.started == started:
            time.sleep(0.001)
        closer = threading.Thread(target=service.close)
        closer.start()
        time.sleep(0.05)
        state.may_end = 1
        thread.join(), closer.join()
        assert found[0].closed and y.closed
        for call in (lambda: one_more(X), lambda: one_more(x), y.to_numpy, found[0].to_numpy):
            raised(errors.ClosedError, call)
        del thread, found
        gc.collect()
        assert state.created == state.deleted, (state.created, state.deleted)
    """)


def test_threads_share_prepared_calls(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        wrong = []
        def work(number):
            given = device.put(x + number)
            for _ in range(2000):
                if one_more(given).to_numpy()[0, 0] != number + 1:
                    wrong.append(number)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for each in threads: each.start()
        for each in threads: each.join()
        assert not wrong
    """)


def test_interrupts_lose_and_double_nothing(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        class Interrupted(Exception): pass
        def interrupt(*_): raise Interrupted
        one_more(X), one_more(X).to_numpy()
        before, seen = held(), 0
        signal.signal(signal.SIGALRM, interrupt)
        for step in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0001 + step * 0.000003)
                while True:
                    one_more(X).memory
            except Interrupted:
                seen += 1
        gc.collect()
        assert seen == 300 and held() == before, (seen, held(), before)
        assert one_more(X).to_numpy().tolist() == (x + 1).tolist()
    """)


def test_a_forked_child_has_calls_of_its_own(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        one_more(x)
        is_short(lambda: one_more(x))
        child = os.fork()
        if child == 0:
            status = 1
            try:
                found = one_more(x)
                status = 0 if found.to_numpy().tolist() == (x + 1).tolist() else 2
            except errors.ModularTFError as error:
                status = 0 if isinstance(error, errors.ClosedError) else 3
                print(repr(error), file=sys.stderr)
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        is_short(lambda: one_more(x))
    """)


def test_a_change_of_the_registry_is_seen(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        one_more(X)
        is_short(lambda: one_more(X))
        registry = one_more._runner.registry
        entered = registry._tables.plugins[0]
        registry.leave(entered)
        short.clear()
        raised(errors.NotFoundError, lambda: one_more(X))
        assert short == [False]
    """)


def test_copies_of_streams_are_done_before_a_kernel_reads(run_calls: Callable[[str], str]) -> None:
    run_calls("""
        one_more(X)
        stream = device.create_stream()
        for turn in range(50):
            values = np.full((2, 3), turn, np.float32)
            stream.memcpy_htod(X.memory, values)
            assert one_more(X).to_numpy()[1, 2] == turn + 1
    """)
