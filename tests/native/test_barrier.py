"""Whatever an entry of the core throws, Python gets an error, or what stands for one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.native.ffi import lib
from tests.fixtures.compiler import compile_object, link_program

_NATIVE = Path(__file__).parents[2] / "modular_tf" / "native"
_CORE = _NATIVE / "core"
_OWN = {"mtf_error_free", "mtf_errors_alive", "mtf_take_error"}
"""What the barrier is made of, and never throws."""
_MINUS_ONE = {
    "mtf_event_poll",
    "mtf_event_status",
    "mtf_exit_without_inherited_destructors",
    "mtf_memory_free_of_host",
    "mtf_leave_on_second_interrupt",
    "mtf_report_crashes",
    "mtf_start_ended_child",
    "mtf_stream_poll",
    "mtf_tell_of_ended_calls",
    "mtf_try_strlen",
}
_OF_THE_C_LIBRARY = {
    "capset",
    "environ",
    "exit",
    "fcloseall",
    "mount",
    "prctl",
    "setlocale",
    "syscall",
    "unshare",
}
_DECLARATION = re.compile(r"((?:const )?\b\w+ ?\*? ?\b(mtf_(?!upcall_)\w+)\([^;{}]*\));")
pytestmark = pytest.mark.xdist_group("barrier")


def _headers():
    """Return the headers of functions that Python calls, as CMake has them."""
    listed = re.search(
        r"cffi_declarations\n(.*?)\)", (_CORE / "CMakeLists.txt").read_text(), re.DOTALL
    )
    assert listed
    here = "${CMAKE_CURRENT_SOURCE_DIR}"
    return [Path(name.replace(here, str(_CORE))).resolve() for name in listed[1].split()]


def _declared():
    """Return the declaration of each entry, without its semicolon."""
    found = {}
    for header in _headers():
        text = re.sub(r"/\*.*?\*/|^#.*?$", "", header.read_text(), flags=re.DOTALL | re.MULTILINE)
        found |= {name: whole for whole, name in _DECLARATION.findall(text)}
    return found


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """What build_core.py makes of the headers."""
    folder = tmp_path_factory.mktemp("generated")
    command = [sys.executable, _NATIVE / "build_core.py", folder, *_headers()]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="module")
def calls(generated):
    """What the caller of each entry got, by the exception."""
    stubs = {name: whole for name, whole in _declared().items() if name not in _OWN}
    includes = "".join(f'#include "{header.name}"\n' for header in _headers())
    bodies = "".join(f'extern "C" {whole} {{ throw_it(); }}\n' for whole in stubs.values())
    (generated / "throwing_stubs.h").write_text(includes + bodies)
    (generated / "throwing_calls.h").write_text("".join(f"CALL({name})\n" for name in stubs))
    runtime = _NATIVE / "host_runtime"
    folders = [generated, _CORE, runtime, runtime / "kernels"]
    options = ["-Wno-unused-parameter"]
    sources = [
        Path(__file__).with_name("throwing_entries.cc"),
        generated / "_barrier.cc",
        _CORE / "error.cc",
    ]
    objects = [compile_object(source, (), folders, options) for source in sources]
    program = link_program("throwing_entries", objects, ["-lpthread"])
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *shown, last = map(json.loads, done.stdout.splitlines())
    assert last == {"alive": 0}
    return shown


def test_every_function_that_python_has_is_guarded(generated):
    functions = {name for name in dir(lib) if callable(getattr(lib, name))}
    functions -= {name for name in functions if name.startswith("mtf_upcall_")}  # Python's own
    functions -= _OF_THE_C_LIBRARY  # which throws nothing

    assert functions == set(_declared())
    barrier = (generated / "_barrier.h").read_text()
    assert functions == set(re.findall(r"^#define (\w+) mtf_guarded_\w+$", barrier, re.MULTILINE))


def test_every_entry_gives_an_error_for_every_exception(calls):
    entries = set(_declared()) - _OWN
    assert {call["entry"] for call in calls} == entries
    expected = [
        (Code.RESOURCE_EXHAUSTED, "out of memory"),
        (Code.INTERNAL, "thrown by the host"),
        (Code.INTERNAL, "an exception that is not a std::exception"),
    ]
    for name in entries:
        of_it = [call for call in calls if call["entry"] == name]
        assert [(call.get("code"), call.get("message")) for call in of_it] == expected, name


def test_a_number_stands_for_the_failure(calls):
    for call in calls:
        expected = -1 if call["entry"] in _MINUS_ONE else 0
        assert call["result"] == expected, call
