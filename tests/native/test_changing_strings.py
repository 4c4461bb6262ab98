"""A plugin changes its strings while the host copies them: no byte is read or written elsewhere."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_program

_NATIVE = Path(__file__).parents[2] / "modular_tf" / "native"
_SOURCES = (
    "core/call_counts.cc",
    "core/call_trace.cc",
    "core/error.cc",
    "core/filesystem.cc",
    "core/filesystem_operations.cc",
    "core/float_state.cc",
    "core/fork_lock.cc",
    "core/library.cc",
    "core/plugin_messages.cc",
    "core/stream_guard.cc",
    "host_runtime/log_line.c",
    "host_runtime/status.c",
)
_WRAPPED = ("strlen", "strnlen", "strdup", "strcpy")
_SANITIZER = "-fsanitize=address"
_OPTIONS = (
    "-O0",  # half of the time of -O1
    "-g0",
    _SANITIZER,
    "-fno-builtin",
    "-Wno-reserved-identifier",
    "-Wno-pedantic",
)
_CASES = ("names", "message_of_a_status", "message_of_an_error", "log_line", "filesystem")
pytestmark = pytest.mark.xdist_group("changing strings")


@pytest.fixture(scope="module")
def program():
    """The core and the host runtime as one program, in which measuring a string changes it."""
    folders = [_NATIVE / "core", _NATIVE / "host_runtime"]
    sources = [Path(__file__).with_name("changing_strings.cc"), *map(_NATIVE.joinpath, _SOURCES)]
    objects = [compile_object(source, ["_GNU_SOURCE=1"], folders, _OPTIONS) for source in sources]
    wrapped = [f"-Wl,--wrap={name}" for name in _WRAPPED]
    return link_program("changing_strings", objects, [_SANITIZER, "-lpthread", "-ldl", *wrapped])


@pytest.mark.parametrize("case", _CASES)
def test_a_string_is_measured_once(case, program):
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(
        [program, case], env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
