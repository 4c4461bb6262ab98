"""Kernels that break the rules: the call fails with the rule, and the next call works.

The kernels are in tests/plugins/kernel/hostile_kernels.cc, by the names that the tests give.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.children import PythonRunner

SOURCE = Path(__file__).parents[1] / "plugins" / "kernel" / "hostile_kernels.cc"

_PRELUDE = dedent("""
    import gc, logging, os, signal, sys, threading, time
    import numpy as np
    from modular_tf import errors
    from modular_tf.service.service import PluginService

    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(message)s")
    service = PluginService()
    service.load("host_device", *sys.argv[1:])
    device = service.device("CPU:0")
    hostile, later = device.op("MtfHostile"), device.op("MtfHostileAsync")
    x = np.array([1, 2, 3], "float32")

    def works():
        assert hostile(x).to_numpy().tolist() == [2, 4, 6]
        assert later(x).to_numpy().tolist() == [2, 4, 6]
        assert later(x, case="in a thread").to_numpy().tolist() == [2, 4, 6]
        return True

    def error_of(call):
        try:
            result = call()
        except errors.ModularTFError as error:
            return error
        raise AssertionError(f"no error, but {result}")

    class Interrupt(BaseException):
        pass

    def interrupted(call, after=0.1):
        def interrupt(*_):
            raise Interrupt

        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, after)
        try:
            call()
        except Interrupt:
            return True
        return False
""")


@pytest.fixture
def run_hostile(run_python: PythonRunner) -> Callable[..., str]:
    """Run code with the hostile kernels; `hostile` and `later` are their operations."""
    library = link_library(
        "libhostile_kernels.so", [compile_object(SOURCE)], ["-lpthread"], cxx=True
    )

    def run(code: str, *more: Path | str) -> str:
        child = run_python(_PRELUDE + dedent(code), library, *more)
        return child.stdout + child.stderr

    return run


@pytest.mark.parametrize(
    ("case", "kind", "told"),
    [
        ("report", "DataLossError", "the kernel says so"),
        ("report and compute", "DataLossError", "the kernel says so"),
        ("throw", "InternalError", "thrown by the kernel"),
        ("throw a number", "InternalError", "exception"),
        ("throw with an output", "InternalError", "thrown by the kernel"),
        ("unset", "InternalError", "Missing 0-th output"),
        ("set twice", "InternalError", "output 0"),
        ("allocate twice", "InternalError", "output 0 was allocated or set before"),
        ("allocate too much", "ResourceExhaustedError", "140737488355328 bytes"),
        ("allocate an overflow", "ResourceExhaustedError", "more than any memory has"),
        ("allocate a negative", "InvalidArgumentError", "-1"),
        ("allocate another output", "InternalError", "index 7"),
        ("allocate too much and say nothing", "InternalError", "Missing 0-th output"),
        ("wrong type", "InvalidArgumentError", "actual double vs. expect float"),
        ("use the construction", "InternalError", "TF_OpKernelConstruction"),
        ("delete a tensor twice", "InternalError", "TF_DeleteTensor"),
        ("read a deleted tensor", "InternalError", "TF_TensorData"),
        ("delete what is no tensor", "InternalError", "TF_DeleteTensor"),
        ("no context", "InternalError", "NULL"),
        ("read another input", "OutOfRangeError", "3"),
        ("ask for a stream", "FailedPreconditionError", "stream"),
        ("throw in create", "InternalError", "thrown by create"),
        ("fail in create", "UnimplementedError", "create says so"),
    ],
)
def test_a_misuse_is_an_error_and_the_next_call_works(run_hostile, case, kind, told):
    said = run_hostile(f"""
        for _ in range(2):
            error = error_of(lambda: hostile(x, case={case!r}))
            assert works()
        print(type(error).__name__, error)
    """)
    assert kind in said.split()
    assert told in said
    assert "plugin hostile_kernels" in said
    assert "MtfHostile" in said


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        ("unset", "KN-080"),
        ("wrong type", "KN-079"),
        ("delete a tensor twice", "KN-101"),
        ("use the construction", "KN-063"),
        ("allocate too much and say nothing", "KN-080"),
    ],
)
def test_the_error_names_the_rule(run_hostile, case, rule):
    assert rule in run_hostile(f"print(error_of(lambda: hostile(x, case={case!r})).rule)")


@pytest.mark.parametrize("case", ["report OK", "keep an input", "throw in delete"])
def test_what_breaks_nothing_is_accepted(run_hostile, case):
    run_hostile(f"""
        assert hostile(x, case={case!r}).to_numpy().tolist() == [2, 4, 6]
        assert works()
        service.close()
        gc.collect()
    """)


@pytest.mark.parametrize(
    ("call", "size"),
    [
        ("hostile(given, case='write to an input')", 3),
        ("hostile(given, case='write to the end of an input')", 3),
        ("hostile(given, case='write to the end of an input')", 1_000_001),
        ("later(given, case='write to an input in a thread')", 3),
    ],
)
@pytest.mark.parametrize("place", ["device.put", "np.copy"])
def test_a_write_to_an_input_is_an_error(run_hostile, call, size, place):
    said = run_hostile(f"""
        other = device.put(x)
        for _ in range(3):
            given = {place}(np.ones({size}, "float32"))
            error = error_of(lambda: {call})
            assert type(error) is errors.InternalError and error.rule == "KN-093"
            assert works()
        assert other.to_numpy().tolist() == [1, 2, 3]
        print(error)
    """)
    assert "wrote to input 0 ('x')" in said
    assert "may hold other values now" in said
    assert "plugin hostile_kernels" in said


def test_inputs_are_looked_at_until_a_call_has_succeeded(run_hostile):
    run_hostile("""
        for _ in range(2):
            hostile(x.copy(), case="write to an input later")
        error_of(lambda: hostile(x.reshape(1, 3).copy(), case="write to an input"))
        error = error_of(lambda: hostile(x.copy(), case="write to an input"))
        assert error.rule == "KN-093", error
    """)


def test_a_donated_input_may_be_written_to(run_hostile):
    run_hostile("""
        for case in ("write to an input", "write to the end of an input"):
            given = device.put(x)
            hostile(given, case=case, donate=[given])
            assert given.closed
    """)


def test_a_context_of_a_call_that_is_over_is_no_context(run_hostile):
    said = run_hostile("""
        hostile(x, case="keep the context")
        error = error_of(lambda: hostile(x, case="use a kept context"))
        assert works()
        print(error, error.rule)
    """)
    assert "KN-096" in said
    assert "TF_GetInput" in said


def test_a_thread_that_uses_a_context_later_is_logged(run_hostile):
    said = run_hostile("""
        assert hostile(x, case="use it in a thread later").to_numpy().tolist() == [2, 4, 6]
        time.sleep(0.5)
        assert works()
    """)
    assert "KN-096" in said


# -- asynchronous ones ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "kind", "told"),
    [
        ("report in a thread", "DataLossError", "the kernel says so"),
        ("unset", "InternalError", "Missing 0-th output"),
        ("twice", "InternalError", "`done` was run before"),
        ("use the context after it", "InternalError", "TF_OpKernelContext"),
        ("throw", "InternalError", "thrown by the kernel"),
        ("throw behind it", "InternalError", "thrown by the kernel"),
    ],
)
def test_a_misuse_of_an_asynchronous_kernel_is_an_error(run_hostile, case, kind, told):
    said = run_hostile(f"""
        for _ in range(2):
            error = error_of(lambda: later(x, case={case!r}))
            assert works()
        print(type(error).__name__, error)
    """)
    assert kind in said.split()
    assert told in said


def test_done_that_a_thread_runs_twice_is_logged(run_hostile):
    said = run_hostile("""
        assert later(x, case="twice in a thread").to_numpy().tolist() == [2, 4, 6]
        time.sleep(0.5)
        assert works()
    """)
    assert "KN-095" in said


def test_done_of_a_call_that_threw_is_ignored(run_hostile):
    said = run_hostile("""
        error = error_of(lambda: later(x, case="throw and run it later"))
        assert "thrown by the kernel" in str(error)
        time.sleep(0.5)
        assert works()
    """)
    assert "KN-095" in said


def test_a_wait_for_done_that_is_never_run_is_logged(run_hostile):
    said = run_hostile("""
        from modular_tf.kernel import running

        running._SILENT_SLICES = 2
        assert interrupted(lambda: later(x, case="never"), after=2)
        assert works()
    """)
    assert "kernel.not_done" in said
    assert "KN-095" in said


@pytest.mark.parametrize("case", ["never", "late"])
def test_a_wait_for_done_can_be_interrupted(run_hostile, case):
    run_hostile(f"""
        for _ in range(3):
            assert interrupted(lambda: later(x.copy(), case={case!r}))
            assert works()
        gc.collect()
        time.sleep(1)  # the late ones compute now, from inputs that nobody else has
        assert works()
        if {case!r} == "never":
            later(x, case="run that of a call that is over")
            error = error_of(lambda: later(x, case="run that of a call that is over"))
            assert error.rule == "KN-095", error
            assert works()
            assert "is not done" in str(error_of(service.close))
        service.close()
    """)


_RUNNING = """
        import ctypes

        given = device.put(x)
        running = ctypes.c_int.in_dll(ctypes.CDLL(sys.argv[1]), "hostile_kernels_running")
"""


def test_a_close_waits_for_a_kernel_whose_call_was_interrupted(run_hostile):
    run_hostile(f"""
        {_RUNNING}
        assert interrupted(lambda: later(given, case="slow"))
        assert running.value == 1
        service.close()
        assert running.value == 0
    """)


def test_what_a_kernel_may_use_that_is_never_done_is_not_freed(run_hostile):
    run_hostile(f"""
        {_RUNNING}
        assert interrupted(lambda: later(given, case="held"))
        assert "is not done" in str(error_of(service.close))
        running.value = 0
        while running.value != -1:  # it writes to its input, and is done
            time.sleep(0.01)
    """)


# -- calls that do not fit ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "told"),
    [
        ("hostile(x.astype('float64'))", "InvalidArgumentError", "KN-044"),
        ("hostile(np.ones((2, 2), 'float32'))", "InvalidArgumentError", "x must be a vector"),
        ("hostile(x, case=3)", "InvalidArgumentError", "KN-041"),
        ("hostile(x, kase='none')", "InvalidArgumentError", "KN-041"),
        ("hostile()", "InvalidArgumentError", "KN-043"),
        ("hostile(x, x)", "InvalidArgumentError", "KN-043"),
        ("device.op('MtfDouble')(x)", "InvalidArgumentError", "KN-041"),
        ("device.op('MtfDouble')(x, mode='c')", "InvalidArgumentError", "KN-045"),
        ("device.op('MtfDouble')(x, mode='a', count=0)", "InvalidArgumentError", "KN-045"),
        ("device.op('MtfDouble')(x.astype('float64'), mode='a')", "NotFoundError", "KN-034"),
        ("device.op('MtfDouble')(x.astype('int32'), mode='a')", "InvalidArgumentError", "KN-045"),
        ("device.op('MtfNoKernel')(x)", "NotFoundError", "KN-034"),
        ("device.op('MtfUnknown')(x)", "NotFoundError", "KN-040"),
        ("device.op('MtfTwins')(x)", "InvalidArgumentError", "KN-033"),
        ("hostile(closed)", "ClosedError", "closed"),
        ("hostile(donated, donate=(donated,), case='report')", "DataLossError", "says so"),
    ],
)
def test_a_call_that_does_not_fit_is_an_error(run_hostile, call, kind, told):
    said = run_hostile(f"""
        closed, donated = device.put(x), device.put(x)
        closed.close()
        try:
            {call}
        except Exception as error:
            print(type(error).__name__, error, getattr(error, "rule", None))
        else:
            raise AssertionError("no error")
        assert works()
    """)
    assert kind in said.split()
    assert told in said


def test_arrays_of_two_devices_are_an_error(run_hostile, fixture_device_plugin):
    said = run_hostile(
        """
        other = service.device("FIXTURE:0")
        there = other.put(x)
        for call in (lambda: hostile(there), lambda: service.op("AddV2")(there, device.put(x))):
            print(type(error := error_of(call)).__name__, error)
        assert works()
        """,
        fixture_device_plugin(),
    )
    assert said.count("InvalidArgumentError") == 2
    assert "FIXTURE:0" in said


def test_tensors_are_counted_before_there_are_kernels(run_python):
    run_python("""
        from modular_tf.native.ffi import lib

        assert lib.mtf_kernel_tensor_handles() == 0
    """)


# -- ends -----------------------------------------------------------------------------------------


def test_a_service_closes_while_a_kernel_computes(run_hostile):
    run_hostile("""
        found = []

        def compute():
            try:
                found.append(hostile(x, case="sleep").to_numpy().tolist())
            except errors.ModularTFError as error:
                found.append(error)

        threads = [threading.Thread(target=compute) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        service.close()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        for each in found:
            assert each == [2, 4, 6] or isinstance(each, errors.ClosedError), each
        for call in (lambda: hostile(x), lambda: device.op("MtfHostile")):
            assert isinstance(error_of(call), errors.ClosedError)
    """)


def test_a_forked_child_leaves_the_kernels_to_its_parent(run_hostile):
    run_hostile("""
        assert works()
        child = os.fork()
        if child == 0:
            try:
                found = hostile(x).to_numpy().tolist() == [2, 4, 6]
            except errors.ModularTFError:
                found = True
            service.close()
            gc.collect()
            os._exit(0 if found else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert works()
    """)


@pytest.mark.parametrize("case", ["none", "never", "late", "sleep"])
def test_the_process_ends_with_kernels_alive(run_hostile, case):
    said = run_hostile(f"""
        assert works()
        op = later if {case!r} in ("never", "late") else hostile
        thread = threading.Thread(target=op, args=(x,), kwargs={{"case": {case!r}}}, daemon=True)
        thread.start()
        time.sleep(0.1)
        print("done")
    """)
    assert said.splitlines()[0] == "done"
