"""The error that all share when there is no memory for another one."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_library

_NATIVE = Path(__file__).parents[2] / "modular_tf" / "native"
_SOURCES = (
    Path(__file__).parent / "errors_without_memory.cc",
    *(_NATIVE / "core" / f"{name}.cc" for name in (
        "arena", "call_counts", "call_trace",
        "error", "float_state", "fork_lock",
    )),
    _NATIVE / "host_runtime" / "status.c",
)  # fmt: skip


@pytest.fixture(scope="module")
def library():
    folders = [_NATIVE / "core", _NATIVE / "host_runtime"]
    objects = [compile_object(source, ["_GNU_SOURCE=1"], folders) for source in _SOURCES]
    name, options = "liberrorswithoutmemory.so", ["-Wl,--wrap=malloc"]
    return ctypes.CDLL(str(link_library(name, objects, options, cxx=True)))


@pytest.mark.parametrize("after_a_closed_one", [False, True])
def test_a_closed_arena_does_not_change_the_error_that_all_share(library, after_a_closed_one):
    assert library.exhausted_is_closed(after_a_closed_one) == 0
