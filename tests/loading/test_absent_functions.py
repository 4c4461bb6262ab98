"""Plugins that import what the host does not offer: they serve, and a call of it is reported."""

import ctypes
import json

import pytest

from modular_tf.abi.layouts import Dialect
from modular_tf.device.platform import load_device_platform
from modular_tf.errors import PluginError
from modular_tf.loading.binding import bind
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.device.dialects.building import LAYOUTS, Build

NAMES = ["TF_DeleteFunctionLibraryDefinition", "TF_LookUpOpDef", "TF_NewFunctionLibraryDefinition"]
NEWEST = Dialect.DEVICE_V209


@pytest.fixture
def put(tmp_path):
    """Put a plugin that asks for functions of graphs into a file."""

    def put_one(dialect=NEWEST, renamed=None):
        content = library_of(dialect).read_bytes()
        assert content.count(b"\0TF_LookUpOpDef\0") >= 1
        path = tmp_path / "libkernels.so"
        path.write_bytes(content.replace(b"\0TF_LookUpOpDef\0", renamed or b"\0TF_LookUpOpDef\0"))
        return path

    return put_one


def library_of(dialect):
    return Build(dialect, macros={"KERNELS": 1}).compile()


@pytest.mark.parametrize(
    ("dialect", "renamed", "first_contact"),
    [
        *((dialect, None, "never") for dialect in LAYOUTS),
        (NEWEST, b"\0TF_LookUpOpDe\xff\0", "always"),
    ],
)
def test_its_devices_work(dialect, renamed, first_contact, put):
    config = Config(first_contact=first_contact)
    with PluginService(
        config=config, plugin_paths=[put(dialect, renamed)], bundled=False
    ) as service:
        service.load()
        [plugin] = service.plugins()
        assert (plugin.state, plugin.reasons) == (State.LOADED, ())
        reported = {warning.rule: warning.message for warning in plugin.warnings}
        assert "needs 3 symbols" in reported["LD-017"]
        second = "TF_LookUpOpDe\udcff" if renamed else NAMES[1]  # which is no UTF-8
        for name in (NAMES[0], second, NAMES[2]):
            assert name in reported["LD-017"]

        [device, *_] = service.devices()
        assert device.put(b"abcd").to_bytes() == b"abcd"


def test_it_is_answered_and_no_kernel_is_registered():
    library = bind(str(library_of(NEWEST)), [], NAMES)
    calls = ctypes.CFUNCTYPE(ctypes.c_char_p)(library.symbol("dialect_calls"))

    with load_device_platform(library, plugin_name="kernels"):
        called = calls().decode().split()

    assert "absent" in called
    assert "init_kernel" not in called
    assert library.symbol("TF_InitKernel")
    assert library.symbol("TF_LookUpOpDef") is None


def test_without_what_stands_in_it_cannot_be_mapped(put):
    with pytest.raises(PluginError, match="undefined symbol: TF_") as refusal:
        bind(str(put()), [], NAMES[:1])

    assert refusal.value.rule == "LD-050"


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


def test_the_line_is_an_event_of_the_plugin(run_forked, put):
    path = put()

    child = run_forked(SERVE, path)

    assert child.stdout.split() == ["LOADED", "kernels"]
    events = [json.loads(line) for line in child.stderr.splitlines()]
    event = next(event for event in events if event["event"] == "plugin.message")
    assert (event["level"], event["plugin"], event["library"]) == ("error", "kernels", str(path))
    expected = f"{NAMES[2]}, which the host does not offer, was called by {path} (KN-100)"
    assert event["message"] == expected
