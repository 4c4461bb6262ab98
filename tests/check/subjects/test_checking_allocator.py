"""The checking allocator, and what checks learn from it, in child processes that run with it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from textwrap import dedent

import pytest

from modular_tf.check.memory_watch import Depth, new_violation, watched
from modular_tf.check.native.checking_allocator import (
    LIBRARY,
    allocator_path,
    checking_allocator,
    preload_environment,
)
from tests.check.with_allocator import with_allocator

_PROLOGUE = """
import ctypes, os, sys
from modular_tf.check.expectation import Deviation
from modular_tf.check.memory_watch import Depth, new_violation, watched
from modular_tf.check.native.checking_allocator import checking_allocator
from modular_tf.check.under_load import must_not_grow
heap = checking_allocator()
subject = ctypes.CDLL(sys.argv[1])
subject.allocate.restype = subject.overrun_and_keep.restype = ctypes.c_void_p
subject.allocate_in_a_thread.restype = ctypes.c_void_p
before = heap.inspect()
def found(deep=False):
    return [heap.violation(index) for index in range(before, heap.inspect(deep=deep))]
def release(block):
    subject.release(ctypes.c_void_p(block))
"""


@pytest.fixture
def run_checked(run_python, heap_misuse):
    """Run code in a child with the allocator and a library that misuses the heap."""

    def run(code, timeout=120):
        environment = preload_environment({})
        program = _PROLOGUE + dedent(code)
        child = run_python(program, heap_misuse, env=environment, timeout=timeout)
        return child.stdout.splitlines()

    return run


@with_allocator
def test_a_misuse_is_reported_once_and_the_process_goes_on(run_checked):
    """Each in a fork: it is counted from the process's beginning."""
    sentences = {
        "overrun": "heap block of 10 bytes overrun: byte 10 is 0x78",
        "underrun": "heap block of 10 bytes underrun: the byte 1 before it is 0x78",
        "free_twice": "heap block of 10 bytes freed twice",
        "delete_twice": "heap block of 4 bytes freed twice",
        "write_far_behind": "heap block of 32 bytes overrun: byte 32 is 0x78",
        "free_the_stack": "free of 0x*, where no heap block begins",
        "free_the_middle": "free of 0x*, where no heap block begins",
        "resize_the_stack": "realloc of 0x*",
    }
    code = f"""
        for misuse in {list(sentences)!r}:
            if (child := os.fork()) == 0:
                getattr(subject, misuse)()
                print(*found())
                subject.use_well()
                print(len(found(deep=True)), flush=True)
                os._exit(0)
            os.waitpid(child, 0)
    """

    lines = run_checked(code)
    assert all(map(fnmatchcase, lines[::2], sentences.values())), lines
    assert lines[1::2] == ["1"] * len(sentences)


@with_allocator
def test_many_misuses_are_counted_and_the_last_ones_are_kept(run_checked):
    code = """
        for _ in range(200): subject.overrun()
        count = heap.use().violations
        print(count, heap.violation(0), heap.violation(count - 1), heap.violation(count), sep="; ")
    """

    overrun = "heap block of 10 bytes overrun: byte 10 is 0x78"
    assert run_checked(code) == [f"200; None; {overrun}; None"]


@with_allocator
def test_what_is_right_is_not_reported(run_checked):
    """Neither what Python itself does, nor threads, nor children of a fork among threads."""
    code = """
        import json, subprocess, threading
        thread = threading.Thread(target=lambda: json.dumps(list(range(10000))))
        thread.start(); thread.join()
        subprocess.run(["true"], check=True)
        subject.use_well()
        subject.use_in_threads()
        print(subject.fork_among_threads(), found(deep=True), heap.inspect(deep=True))
    """

    assert run_checked(code, timeout=300) == ["0 [] 0"]


@with_allocator
def test_programs_of_the_process_can_do_without(run_checked):
    code = """
        from modular_tf.native.preloading import forget_preload
        forget_preload()
        print(os.environ.get("LD_PRELOAD"), checking_allocator() is not None)
    """

    assert run_checked(code) == ["None True"]
    assert LIBRARY in (allocator_path() or "")


@with_allocator
def test_preloads_of_the_user_are_there_too_and_a_sanitizer_is_the_only_one():
    made = preload_environment({"LD_PRELOAD": "libother.so /lib/libmore.so", "A": "b"})
    assert made == {"LD_PRELOAD": f"{allocator_path()}:libother.so:/lib/libmore.so", "A": "b"}

    sanitized = {"LD_PRELOAD": "/usr/lib/libasan.so.8:libother.so"}
    assert preload_environment(sanitized) == sanitized


# ---- What checks learn from it ----


def test_without_the_allocator_nothing_is_seen():
    assert checking_allocator() is None
    assert watched(divmod, 7, 2) == (3, 1)
    assert [new_violation(depth) for depth in Depth] == [None, None, None]


@with_allocator
def test_a_look_goes_as_deep_as_it_is_asked_for_and_reports_each_misuse_once(run_checked):
    code = """
        watched(subject.free_twice)
        watched(subject.overrun)
        print(new_violation(), new_violation(Depth.ALL), sep="\\n")
        watched(subject.overrun_and_keep)
        watched(subject.write_to_freed)
        for depth in Depth: print(new_violation(depth))
        blocks = [watched(subject.allocate, 8) for _ in range(3000)]
        watched(subject.overrun_and_keep)  # many blocks are looked at in the end
        print(new_violation(), new_violation(Depth.ALL), sep="\\n")
    """

    assert run_checked(code) == [
        "heap block of 10 bytes freed twice; heap block of 10 bytes overrun: byte 10 is 0x78",
        "None",
        "None",
        "heap block of 24 bytes overrun: byte 30 is 0x78",
        "heap block of 20 bytes written to after it was freed: byte 3 is 0x78",
        "None",
        "heap block of 24 bytes overrun: byte 30 is 0x78",
    ]


@with_allocator
def test_blocks_that_pile_up_are_a_leak(run_checked):
    """Of the plugin alone: a call that raises has ended too, and other threads do not count."""
    code = """
        try: watched(divmod, 1, 0)
        except ZeroDivisionError: pass
        must_not_grow(lambda: subject.allocate(10), 200, "work of the host")
        must_not_grow(lambda: watched(subject.allocate_in_a_thread), 200, "work of a thread")
        def leak(): watched(subject.allocate, 10)
        def give_back(): release(watched(subject.allocate, 10))
        must_not_grow(give_back, 200, "keeping")
        try: must_not_grow(leak, 200, "leaking")
        except Deviation as deviation: print(deviation.message)
    """

    assert run_checked(code) == ["leaking leaves heap blocks behind"]
