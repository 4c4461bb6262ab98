"""Device plugins that bring kernels: nobody has the functions for those, and devices serve."""

from __future__ import annotations

import ctypes
import shutil

import pytest

from modular_tf.abi.layouts import Dialect
from modular_tf.device.platform import load_device_platform
from modular_tf.discovery.elf import ElfFile
from modular_tf.errors import PluginError
from modular_tf.loading.binding import bind
from modular_tf.loading.stub_library import stub_library
from modular_tf.native.library import Library, absent_function
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.device.dialects.building import LAYOUTS, Build

KERNEL_FUNCTIONS = ["TF_GetStream", "TF_NewKernelBuilder", "TF_RegisterKernelBuilder"]


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
        for name in KERNEL_FUNCTIONS:
            assert name in told["LD-017"]

        [device, *_] = service.devices()
        assert device.put(b"abcd").to_bytes() == b"abcd"


def test_it_is_answered_and_no_kernel_is_registered():
    library = bind(str(library_of(Dialect.DEVICE_V209)), [], frozenset(), KERNEL_FUNCTIONS)
    calls = ctypes.CFUNCTYPE(ctypes.c_char_p)(library.symbol("dialect_calls"))

    with load_device_platform(library, plugin_name="kernels"):
        called = calls().decode().split()

    assert "absent" in called
    assert "init_kernel" not in called
    assert library.symbol("TF_InitKernel")
    assert library.symbol("TF_GetStream") is None


def test_without_what_stands_in_it_cannot_be_mapped(tmp_path):
    path = tmp_path / "libother.so"
    shutil.copy(library_of(Dialect.DEVICE_V209), path)

    with pytest.raises(PluginError, match="undefined symbol: TF_") as refusal:
        bind(str(path), [], frozenset(), KERNEL_FUNCTIONS[:1])

    assert refusal.value.rule == "LD-050"


@pytest.mark.parametrize("first_contact", ["always", "never"])
def test_a_function_whose_name_is_no_utf_8_is_answered_too(first_contact, tmp_path):
    path = tmp_path / "libkernels.so"
    built = library_of(Dialect.DEVICE_V209).read_bytes()
    assert built.count(b"\0TF_GetStream\0") >= 1
    path.write_bytes(built.replace(b"\0TF_GetStream\0", b"\0TF_GetStrea\xff\0"))
    config = Config(first_contact=first_contact)

    with PluginService(config=config, plugin_paths=[str(path)], bundled=False) as service:
        service.load()
        [plugin] = service.plugins()

    assert (plugin.state, plugin.reasons) == (State.LOADED, ())
    [warning] = plugin.warnings
    assert "TF_GetStrea\udcff" in warning.message


@pytest.mark.parametrize("number", [0, 1, 2, 500])
def test_a_stub_s_names_are_found(number, tmp_path):
    path = tmp_path / "libstub.so"
    with ElfFile(str(library_of(Dialect.DEVICE_V209))) as elf:
        machine = elf.image.machine_number
    functions = {f"TF_Name\udcff{at}": absent_function() + at for at in range(number)}
    path.write_bytes(stub_library(f"libstub.so.{number}", ["libc.so.6"], machine, functions))

    library = Library.open(str(path))

    assert {name: library.symbol(name) for name in functions} == functions
    assert library.symbol("TF_NameX") is None
