"""The checking allocator, in child processes that run with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.check.native.checking_allocator import (
    LIBRARY,
    allocator_path,
    checking_allocator,
    preload_environment,
)
from tests.check.with_allocator import with_allocator
from tests.fixtures.compiler import compile_object, link_library

pytestmark = with_allocator

_SOURCE = Path(__file__).parent / "heap_misuse.cc"
_PROLOGUE = """
import ctypes, sys
from modular_tf.check.native.checking_allocator import checking_allocator
heap = checking_allocator()
subject = ctypes.CDLL(sys.argv[1])
subject.allocate.restype = subject.overrun_and_keep.restype = ctypes.c_void_p
subject.allocate_in_a_thread.restype = ctypes.c_void_p
before = heap.inspect()
def found(deep=False):
    return [heap.violation(index) for index in range(before, heap.inspect(deep=deep))]
"""


@pytest.fixture
def run_checked(run_python, plain_environment):
    """Run code in a child with the allocator and a library that misuses the heap."""
    objects = [compile_object(_SOURCE)]
    library = link_library("libheap_misuse.so", objects, ["-lpthread"], cxx=True)

    def run(code, **options):
        child = run_python(_PROLOGUE + code, library, env=plain_environment, **options)
        return child.stdout.splitlines()

    return run


@pytest.fixture
def plain_environment():
    """Return what makes a child run with the allocator."""
    return preload_environment({})


def test_python_itself_misuses_nothing(run_checked):
    code = """
import json, sqlite3, ssl, subprocess, threading
thread = threading.Thread(target=lambda: json.dumps(list(range(10000))))
thread.start(); thread.join()
subprocess.run(["true"], check=True)
print(heap.inspect(deep=True))
"""

    assert run_checked(code) == ["0"]


@pytest.mark.parametrize(
    ("misuse", "sentence"),
    [
        ("overrun", "heap block of 10 bytes overrun: byte 10 is 0x78"),
        ("underrun", "heap block of 10 bytes underrun: the byte 1 before it is 0x78"),
        ("free_twice", "heap block of 10 bytes freed twice"),
        ("delete_twice", "heap block of 4 bytes freed twice"),
        ("write_far_behind", "heap block of 32 bytes overrun: byte 32 is 0x78"),
    ],
)
def test_a_misuse_is_told_once_and_the_process_goes_on(run_checked, misuse, sentence):
    code = f"subject.{misuse}(); print(*found()); subject.use_well(); print(len(found(deep=True)))"

    assert run_checked(code) == [sentence, "1"]


@pytest.mark.parametrize("misuse", ["free_the_stack", "free_the_middle"])
def test_the_free_of_no_block_does_nothing(run_checked, misuse):
    (told,) = run_checked(f"subject.{misuse}(); subject.use_well(); print(*found(deep=True))")

    assert told.startswith("free of 0x")
    assert told.endswith("where no heap block begins")


def test_the_resizing_of_no_block_fails(run_checked):
    answer, told = run_checked("print(subject.resize_the_stack()); print(*found())")

    assert answer == "1"
    assert told.startswith("realloc of 0x")


def test_an_overrun_is_seen_before_the_block_is_freed(run_checked):
    code = """
heap.enter(); block = subject.overrun_and_keep(); heap.leave()
print(*found())
subject.release(ctypes.c_void_p(block))
print(len(found()))
"""

    assert run_checked(code) == ["heap block of 24 bytes overrun: byte 30 is 0x78", "1"]


def test_a_write_to_freed_memory_is_seen_by_a_deep_look(run_checked):
    code = "subject.write_to_freed(); print(len(found())); print(*found(deep=True))"

    assert run_checked(code) == [
        "0",
        "heap block of 20 bytes written to after it was freed: byte 3 is 0x78",
    ]


def test_a_misuse_is_written_to_stderr(run_python, run_checked, plain_environment):
    library = link_library("libheap_misuse.so", [compile_object(_SOURCE)], ["-lpthread"], cxx=True)
    child = run_python(_PROLOGUE + "subject.free_twice()", library, env=plain_environment)

    assert child.stderr == "checking allocator: heap block of 10 bytes freed twice\n"


def test_many_misuses_are_counted_and_the_last_ones_kept(run_checked):
    code = """
for _ in range(200): subject.overrun()
count = heap.use().violations
print(count, heap.violation(0), heap.violation(count - 1) is None, heap.violation(count))
"""

    assert run_checked(code) == ["200 None False None"]


@pytest.mark.parametrize("use", ["use_well", "use_in_threads"])
def test_what_is_right_is_not_told(run_checked, use):
    assert run_checked(f"subject.{use}(); print(found(deep=True))", timeout=300) == ["[]"]


def test_children_of_a_fork_can_allocate(run_checked):
    assert run_checked("print(subject.fork_among_threads(), found(deep=True))", timeout=300) == [
        "0 []"
    ]


def test_what_is_allocated_in_a_bracket_is_counted(run_checked):
    code = """
heap.enter()
blocks = [subject.allocate(100) for _ in range(3)]
heap.leave()
inside = heap.use()
uncounted = subject.allocate(100)
print(inside.live_blocks >= 3, inside.live_bytes >= 300, heap.use().live_bytes - inside.live_bytes)
for block in blocks: subject.release(ctypes.c_void_p(block))
after = heap.use()
print(inside.live_blocks - after.live_blocks, inside.live_bytes - after.live_bytes)
print(after.allocations == inside.allocations)
"""

    assert run_checked(code) == ["True True 0", "3 300", "True"]


def test_other_threads_do_not_count(run_checked):
    code = """
before = heap.use().live_bytes
block = subject.allocate_in_a_thread()
print(heap.use().live_bytes - before)
subject.release(ctypes.c_void_p(block))
print(heap.use().live_bytes - before)
"""

    assert run_checked(code) == ["0", "0"]


def test_the_size_of_a_block_is_what_was_asked_for(run_checked):
    code = """
block = subject.allocate(77)
print(heap.size_of(block), heap.size_of(block + 16))
subject.release(ctypes.c_void_p(block))
print(heap.size_of(block))
"""

    assert run_checked(code) == ["77 None", "None"]


def test_without_the_preload_there_is_none():
    assert checking_allocator() is None


def test_a_preload_is_added_to_those_of_the_user():
    made = preload_environment({"LD_PRELOAD": "libother.so /lib/libmore.so", "A": "b"})

    assert made == {"LD_PRELOAD": f"{allocator_path()}:libother.so:/lib/libmore.so", "A": "b"}


def test_a_sanitizer_stays_the_only_one():
    environment = {"LD_PRELOAD": "/usr/lib/libasan.so.8:libother.so"}

    assert preload_environment(environment) == environment


def test_programs_of_the_process_can_do_without(run_python):
    code = """
        import os
        from modular_tf.check.native.checking_allocator import checking_allocator
        from modular_tf.native.preloading import forget_preload
        forget_preload()
        print(os.environ.get("LD_PRELOAD"), checking_allocator() is not None)
        """
    child = run_python(code, env=preload_environment({}))

    assert child.stdout == "None True\n"
    assert LIBRARY in (allocator_path() or "")
