"""What checks learn from the checking allocator, and that they work without it."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from modular_tf.check.memory_watch import Depth, HeapWatch
from modular_tf.check.native.checking_allocator import preload_environment
from tests.check.with_allocator import with_allocator
from tests.fixtures.compiler import compile_object, link_library

_PROLOGUE = """
import ctypes, sys
from modular_tf.check.expectation import Deviation
from modular_tf.check.memory_watch import Depth, HeapWatch
from modular_tf.check.under_load import must_not_grow
subject = ctypes.CDLL(sys.argv[1])
subject.allocate.restype = subject.overrun_and_keep.restype = ctypes.c_void_p
heap = HeapWatch()
"""


@pytest.fixture
def run_watched(run_python):
    """Run code in a child with the allocator and a library that misuses the heap."""
    source = Path(__file__).parent / "heap_misuse.cc"
    library = link_library("libheap_misuse.so", [compile_object(source)], ["-lpthread"], cxx=True)

    def run(code):
        child = run_python(_PROLOGUE + code, library, env=preload_environment({}))
        return child.stdout.splitlines()

    return run


def test_without_the_allocator_nothing_is_seen():
    heap = HeapWatch()

    assert heap.call(divmod, 7, 2) == (3, 1)
    assert [heap.new_violation(depth) for depth in Depth] == [None, None, None]
    assert heap.block_size(id(heap)) is None


def test_a_violation_that_two_threads_see_is_told_by_one(monkeypatch):
    seen_by_both = threading.Event()

    class SeenSlowly(int):
        """A number of violations that is compared while another thread looks too."""

        def __le__(self, other):
            found = int(self) <= other
            seen_by_both.wait(0.2)
            return found

    monkeypatch.setattr("modular_tf.check.memory_watch._Process.reported", 0)
    told = []

    def look(count):
        heap = HeapWatch()
        heap._allocator = SimpleNamespace(
            violation=lambda index: f"violation {index}",
            use=lambda: SimpleNamespace(live_blocks=0),
            inspect=lambda: count,
        )
        told.append(heap.new_violation())

    first = threading.Thread(target=look, args=(SeenSlowly(1),))
    first.start()
    look(1)
    seen_by_both.set()
    first.join()

    assert sorted(map(str, told)) == ["None", "violation 0"]


@with_allocator
def test_each_misuse_is_told_once(run_watched):
    code = """
heap.call(subject.free_twice)
heap.call(subject.overrun)
print(heap.new_violation())
print(heap.new_violation(Depth.ALL))
"""

    assert run_watched(code) == [
        "heap block of 10 bytes freed twice; heap block of 10 bytes overrun: byte 10 is 0x78",
        "None",
    ]


@with_allocator
def test_a_look_goes_as_deep_as_it_is_told(run_watched):
    code = """
heap.call(subject.overrun_and_keep)
heap.call(subject.write_to_freed)
for depth in Depth: print(heap.new_violation(depth))
"""

    assert run_watched(code) == [
        "None",
        "heap block of 24 bytes overrun: byte 30 is 0x78",
        "heap block of 20 bytes written to after it was freed: byte 3 is 0x78",
    ]


@with_allocator
def test_many_blocks_are_looked_at_in_the_end(run_watched):
    code = """
blocks = [heap.call(subject.allocate, 8) for _ in range(3000)]
heap.call(subject.overrun_and_keep)
print(heap.new_violation())
print(heap.new_violation(Depth.ALL))
"""

    assert run_watched(code) == ["None", "heap block of 24 bytes overrun: byte 30 is 0x78"]


@with_allocator
def test_the_bracket_ends_with_an_error(run_watched):
    code = """
try: heap.call(divmod, 1, 0)
except ZeroDivisionError: pass
kept = subject.allocate(1000)
from modular_tf.check.native.checking_allocator import checking_allocator
print(checking_allocator().use().live_bytes < 1000)
"""

    assert run_watched(code) == ["True"]


@with_allocator
def test_blocks_that_pile_up_are_a_leak(run_watched):
    code = """
def leak(): heap.call(subject.allocate, 10)
def keep(): subject.release(ctypes.c_void_p(heap.call(subject.allocate, 10)))
must_not_grow(keep, 200, "keeping")
try: must_not_grow(leak, 200, "leaking")
except Deviation as deviation: print(deviation.message)
"""

    assert run_watched(code) == ["leaking leaves heap blocks behind"]
