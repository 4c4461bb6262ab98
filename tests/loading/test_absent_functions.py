"""Plugins that import what the host does not offer: they serve, and a call of it is told."""

from __future__ import annotations

import ctypes
import json
import shutil

import pytest

from modular_tf.abi.layouts import Dialect
from modular_tf.device.platform import load_device_platform
from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.elf.stub_library import stub_library
from modular_tf.errors import PluginError
from modular_tf.loading.binding import bind
from modular_tf.native.library import Library
from modular_tf.native.runtime_library import absent_function
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.device.dialects.building import LAYOUTS, Build
from tests.fixtures.compiler import compile_object, link_library

GRAPH_FUNCTIONS = [
    "TF_DeleteFunctionLibraryDefinition",
    "TF_LookUpOpDef",
    "TF_NewFunctionLibraryDefinition",
]


def library_of(dialect):
    return Build(dialect, macros={"KERNELS": 1}).compile()


@pytest.mark.parametrize("first_contact", ["always", "never"])
@pytest.mark.parametrize("dialect", LAYOUTS)
def test_its_devices_work(dialect, first_contact, tmp_path):
    path = tmp_path / "libkernels.so"
    shutil.copy(library_of(dialect), path)
    config = Config(first_contact=first_contact)
    with PluginService(config=config, plugin_paths=[str(path)], bundled=False) as service:
        service.load()
        [plugin] = service.plugins()
        assert (plugin.state, plugin.reasons) == (State.LOADED, ())
        told = {warning.rule: warning.message for warning in plugin.warnings}
        assert "needs 3 symbols" in told["LD-017"]
        for name in GRAPH_FUNCTIONS:
            assert name in told["LD-017"]

        [device, *_] = service.devices()
        assert device.put(b"abcd").to_bytes() == b"abcd"


def test_it_is_answered_and_no_kernel_is_registered():
    library = bind(str(library_of(Dialect.DEVICE_V209)), [], frozenset(), GRAPH_FUNCTIONS)
    calls = ctypes.CFUNCTYPE(ctypes.c_char_p)(library.symbol("dialect_calls"))

    with load_device_platform(library, plugin_name="kernels"):
        called = calls().decode().split()

    assert "absent" in called
    assert "init_kernel" not in called
    assert library.symbol("TF_InitKernel")
    assert library.symbol("TF_LookUpOpDef") is None


def test_without_what_stands_in_it_cannot_be_mapped(tmp_path):
    path = tmp_path / "libother.so"
    shutil.copy(library_of(Dialect.DEVICE_V209), path)

    with pytest.raises(PluginError, match="undefined symbol: TF_") as refusal:
        bind(str(path), [], frozenset(), GRAPH_FUNCTIONS[:1])

    assert refusal.value.rule == "LD-050"


@pytest.mark.parametrize("first_contact", ["always", "never"])
def test_a_function_whose_name_is_no_utf_8_is_answered_too(first_contact, tmp_path):
    path = tmp_path / "libkernels.so"
    built = library_of(Dialect.DEVICE_V209).read_bytes()
    assert built.count(b"\0TF_LookUpOpDef\0") >= 1
    path.write_bytes(built.replace(b"\0TF_LookUpOpDef\0", b"\0TF_LookUpOpDe\xff\0"))
    config = Config(first_contact=first_contact)

    with PluginService(config=config, plugin_paths=[str(path)], bundled=False) as service:
        service.load()
        [plugin] = service.plugins()

    assert (plugin.state, plugin.reasons) == (State.LOADED, ())
    [warning] = [found for found in plugin.warnings if found.rule == "LD-017"]
    assert "TF_LookUpOpDe\udcff" in warning.message


QUUX = """
extern long TF_Quux(int, double, const char *);
extern void *TF_Quuz(void);
__attribute__((visibility("default"))) long call_quux(void) { return TF_Quux(1, 2.0, "x"); }
__attribute__((visibility("default"))) long call_quuz(void) { return (long)TF_Quuz(); }
"""


@pytest.fixture
def quux(tmp_path):
    """Return a library with functions that call functions which nobody has."""
    source = tmp_path / "quux.c"
    source.write_text(QUUX)
    built = tmp_path / "libquux.so"
    shutil.copy(link_library("libquux.so", [compile_object(source, [])]), built)
    return built


CALL_BOTH = """
import ctypes, sys
from modular_tf.loading.binding import bind
path = sys.argv[1]
library = bind(path, [], frozenset(), ["TF_Quux", "TF_Quuz"])
for name in ("call_quux", "call_quuz", "call_quux"):
    print(ctypes.CFUNCTYPE(ctypes.c_long)(library.symbol(name))())
"""


def test_a_call_is_logged_with_the_function_and_the_plugin(quux, run_python):
    child = run_python(CALL_BOTH, str(quux))

    assert child.stdout.split() == ["0", "0", "0"]
    lines = [line.partition("plugin] ")[2] for line in child.stderr.splitlines()]
    assert lines == [
        f"{name}, which the host does not offer, was called by {quux} (KN-100)"
        for name in ("TF_Quux", "TF_Quuz", "TF_Quux")
    ]


SERVE = """
import sys
import modular_tf as mtf
from modular_tf.service.configuration import Config

mtf.configure_logging("json")
config = Config(first_contact="never", load="eager")
with mtf.PluginService(config=config, plugin_paths=[sys.argv[1]], bundled=False) as service:
    service.load()
    [plugin] = service.plugins()
    print(plugin.state.name, plugin.name)
"""


def test_the_line_is_an_event_of_the_plugin(run_python, tmp_path):
    path = tmp_path / "libkernels.so"
    shutil.copy(library_of(Dialect.DEVICE_V209), path)

    child = run_python(SERVE, path)

    assert child.stdout.split() == ["LOADED", "kernels"]
    events = [json.loads(line) for line in child.stderr.splitlines()]
    said = next(event for event in events if event["event"] == "plugin.message")
    assert (said["level"], said["plugin"], said["library"]) == ("error", "kernels", str(path))
    assert said["message"] == (
        "TF_NewFunctionLibraryDefinition, which the host does not offer, was called by "
        f"{path} (KN-100)"
    )


@pytest.mark.parametrize("number", [0, 1, 2, 500])
def test_a_stub_s_names_are_found(number, tmp_path):
    path = tmp_path / "libstub.so"
    with ElfFile(str(library_of(Dialect.DEVICE_V209))) as elf:
        machine = elf.image.machine_number
    start = absent_function("TF_Name", str(path))
    functions = {f"TF_Name\udcff{at}": start + at for at in range(number)}
    path.write_bytes(stub_library(f"libstub.so.{number}", ["libc.so.6"], machine, functions))

    library = Library.open(str(path))

    assert {name: library.symbol(name) for name in functions} == functions
    assert library.symbol("TF_NameX") is None
