"""A plugin changes its strings while the host copies them: no byte is read or written elsewhere."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_program

_CHECKOUT = Path(__file__).parents[2]
_NATIVE = _CHECKOUT / "modular_tf" / "native"
_LOCAL_FILES = _CHECKOUT / "contrib" / "posix_filesystem" / "src"
_CORE = (
    "call_counts",
    "call_trace",
    "error",
    "filesystem",
    "filesystem_operations",
    "float_state",
    "fork_lock",
    "library",
    "plugin_messages",
    "stream_guard",
)
_WRAPPED = ("strlen", "strnlen", "strdup", "strcpy")
_SANITIZER = "-fsanitize=address"
_CASES = (
    "names",
    "message_of_a_status",
    "payload_of_a_status",
    "context_of_an_errno",
    "message_of_an_error",
    "writable_file",
    "temporary_file",
    "removal",
    "name_of_a_thread",
    "log_line",
    "filesystem",
)
pytestmark = pytest.mark.xdist_group("changing strings")


@pytest.fixture(scope="module")
def program():
    """The core and the host runtime as one program, in which measuring a string changes it."""
    folders = [_NATIVE / "core", _NATIVE / "host_runtime", _LOCAL_FILES]
    sources = [Path(__file__).with_name("changing_strings.cc")]
    sources += [folders[0] / f"{name}.cc" for name in _CORE]
    sources += [*sorted(folders[1].glob("*.c")), *sorted(folders[1].glob("*.cc"))]
    sources += [_LOCAL_FILES / "tree_removal.c"]
    objects = [
        compile_object(
            source,
            ["_GNU_SOURCE=1", 'MODULAR_TF_VERSION="0"'],
            folders,
            [
                f"-I{_CHECKOUT}",
                "-O0",  # half of the time of -O1
                "-g0",
                _SANITIZER,
                "-fno-builtin",
                "-Wno-reserved-identifier",
                "-Wno-pedantic",
            ],
        )
        for source in sources
    ]
    wrapped = [f"-Wl,--wrap={name}" for name in _WRAPPED]
    return link_program("changing_strings", objects, [_SANITIZER, "-lpthread", "-ldl", *wrapped])


@pytest.mark.parametrize("case", _CASES)
def test_a_string_is_measured_once(case, program):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "TMPDIR": folder}
        done = subprocess.run(
            [program, case, folder],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    assert done.returncode == 0, done.stderr
