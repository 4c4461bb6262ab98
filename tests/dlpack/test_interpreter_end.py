"""Deleters, and a table, that are called while Python ends, and afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_library

PRODUCE = """
    import builtins, os, sys
    from modular_tf.native.tensor import Tensor, consume
    from tests.dlpack.memory import Memory

    class Owner(Memory):
        def __del__(self, write=os.write):
            write(1, b"freed")

    def produce():
        owner = Owner(4)
        return Tensor(owner.address, (1,), None, (2, 32, 1), (1, 0), owner)
"""

TAKEN = {
    "versioned": "produce().__dlpack__(max_version=(1, 0))",
    "legacy": "produce().__dlpack__()",
    "consumed": "consume(produce().__dlpack__())",
    "numpy": "__import__('numpy').from_dlpack(produce())",
}


@pytest.mark.parametrize("taken", TAKEN.values(), ids=TAKEN)
@pytest.mark.parametrize("module", ["sys", "builtins"])
def test_what_goes_with_the_last_modules_is_freed(run_python, taken, module):
    child = run_python(f"{PRODUCE}\n    {module}.kept = {taken}")

    assert child.stdout == "freed"


def test_so_is_what_goes_with_the_modules_of_a_forked_child(run_python):
    code = f"""{PRODUCE}
    if os.fork() == 0:
        sys.kept = produce().__dlpack__()
    else:
        os.wait()
    """

    assert run_python(code).stdout == "freed"


@pytest.fixture(scope="module")
def late_deleter():
    made = compile_object(Path(__file__).with_name("late_deleter.c"))
    return link_library("liblate_deleter.so", [made], ["-pthread"])


LATE = f"""{PRODUCE}
    import ctypes
    from tests.dlpack.exchange import managed_from
    managed = ctypes.addressof(managed_from(produce()))
    late = ctypes.CDLL(sys.argv[1])
"""


def test_a_thread_that_deletes_while_python_runs_frees(run_python, late_deleter):
    code = f"""{LATE}
    print(late.delete_on_thread(ctypes.c_void_p(managed)), end="", flush=True)
    """

    assert run_python(code, late_deleter).stdout == "freed0"


def test_a_thread_that_deletes_while_python_ends_leaks_and_goes_on(run_python, late_deleter):
    code = f"""{LATE}
    class Last:
        def __del__(self, late=late, managed=ctypes.c_void_p(managed), write=os.write):
            write(1, b"%d" % late.delete_on_thread(managed))

    sys.kept = Last()
    """

    assert run_python(code, late_deleter).stdout == "0"


def test_a_deleter_after_python_leaks(run_python, late_deleter):
    code = f"""{LATE}
    print(late.delete_at_exit(ctypes.c_void_p(managed)))
    """

    assert run_python(code, late_deleter).stdout == "0\n"


ASK = f"""{LATE}
    import modular_tf.device.arrays.dlpack_devices
    from tests.dlpack.exchange import OURS
    table = ctypes.c_void_p(ctypes.addressof(OURS))
"""


def test_a_thread_that_asks_for_a_work_stream_while_python_runs_is_told(run_python, late_deleter):
    code = f"""{ASK}
    late.ask_on_thread(table)
    """

    assert run_python(code, late_deleter).stdout.startswith("0")


def test_one_that_asks_while_python_ends_goes_on_without(run_python, late_deleter):
    code = f"""{ASK}
    class Last:
        def __del__(self, late=late, table=table):
            late.ask_on_thread(table)

    sys.kept = Last()
    """

    assert "-1" in run_python(code, late_deleter).stdout


def test_one_that_asks_after_python_goes_on_without(run_python, late_deleter):
    code = f"""{ASK}
    late.ask_at_exit(table)
    """

    assert "-1" in run_python(code, late_deleter).stdout
