"""Parts of the core as programs of their own, which judge themselves: status 0 is all well."""

from __future__ import annotations

import ctypes
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_library, link_program

_HERE = Path(__file__).parent
_CORE = _HERE.parents[1] / "modular_tf" / "native" / "core"
_RUNTIME = _CORE.parent / "host_runtime"
_OF_THE_ARENA = ("arena", "call_counts", "call_trace", "error", "float_state", "fork_lock")
_LOCK_CASES = re.findall(r'^    \{"(\w+)"', (_HERE / "fork_locks.cc").read_text(), re.MULTILINE)


def _objects(name, *parts):
    """Compile a program of this folder and parts of the core."""
    sources = [_HERE / f"{name}.cc", *(_CORE / f"{part}.cc" for part in parts)]
    if "error" in parts:
        sources.append(_RUNTIME / "status.c")
    return [compile_object(source, ["_GNU_SOURCE=1"], [_CORE, _RUNTIME]) for source in sources]


@cache
def _program(name, *parts):
    return link_program(name, _objects(name, *parts), ["-lpthread", "-ldl"])


def _output(name, *parts, arguments=()):
    command = [_program(name, *parts), *arguments]
    done = subprocess.run(command, timeout=60, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_arena_that_another_thread_changes_at_a_fork_refuses_the_child():
    _output("abandoned_arena", *_OF_THE_ARENA)


@pytest.mark.parametrize("case", _LOCK_CASES)
def test_a_lock_keeps_threads_apart_and_is_free_in_a_child(case):
    _output("fork_locks", "fork_lock", arguments=[case])


def test_a_call_that_was_running_at_a_fork_may_end_in_the_child():
    _output("gate_after_fork")


def test_only_a_document_without_element_that_can_be_read_counts_as_nothing():
    """A stream that only takes bytes is no answer of a store, and cannot be looked into."""
    said = _output("stream_guard", "stream_guard").split()
    assert list(map(int, said)) == [0, 11, 3, 3, 7, 0, 7, 7, 0]


@pytest.mark.parametrize("after_a_closed_one", [False, True])
def test_a_closed_arena_does_not_change_the_error_that_all_share(after_a_closed_one):
    objects = _objects("errors_without_memory", *_OF_THE_ARENA)
    options = ["-Wl,--wrap=malloc"]
    library = link_library("liberrorswithoutmemory.so", objects, options, cxx=True)

    assert ctypes.CDLL(str(library)).exhausted_is_closed(after_a_closed_one) == 0
