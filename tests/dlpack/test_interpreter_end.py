"""Deleters that are called while Python ends, and afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_library

PRODUCE = """
    import builtins, os, sys
    import numpy
    from modular_tf.native.tensor import Tensor, consume, import_by_table
    from tests.dlpack.memory import Memory

    class Owner(Memory):
        def __del__(self, write=os.write):
            write(1, b"freed ")

    def produce():
        owner = Owner(4)
        return Tensor(owner.address, (1,), None, (2, 32, 1), (1, 0), owner)
"""
TAKEN = {
    "versioned": "produce().__dlpack__(max_version=(1, 0))",
    "legacy": "produce().__dlpack__()",
    "table": "import_by_table(produce())",
    "numpy": "numpy.from_dlpack(produce())",
}


@pytest.mark.parametrize("taken", TAKEN.values(), ids=TAKEN)
def test_what_goes_with_the_last_modules_is_freed(run_forked, taken):
    child = run_forked(f"""{PRODUCE}
    sys.kept, builtins.kept = {taken}, {taken}
    """)

    assert child.stdout == "freed freed "


@pytest.fixture(scope="module")
def late_deleter():
    made = compile_object(Path(__file__).with_name("late_deleter.c"))
    return link_library("liblate_deleter.so", [made], ["-pthread"])


LATE = f"""{PRODUCE}
    import ctypes
    from tests.dlpack.exchange import managed_from
    late = ctypes.CDLL(sys.argv[1])
    managed = ctypes.c_void_p(ctypes.addressof(managed_from(produce())))

    class Last:
        def __init__(self, call, argument):
            self.call, self.argument = call, argument

        def __del__(self, write=os.write):
            write(1, b"%d" % self.call(self.argument))
"""
DELETED = {
    "while Python runs": ("print(late.delete_on_thread(managed), end='')", "freed 0"),
    "while Python ends, which leaks": ("sys.kept = Last(late.delete_on_thread, managed)", "0"),
    "after Python, which leaks": ("print(late.delete_at_exit(managed), end='')", "0"),
}


@pytest.mark.parametrize("moment", DELETED)
def test_a_thread_may_delete(run_forked, late_deleter, moment):
    use, said = DELETED[moment]

    assert run_forked(f"{LATE}\n    {use}\n", late_deleter).stdout == said
