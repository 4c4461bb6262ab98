"""LD-112: a plugin without devices whose backend cannot be linked without TensorFlow."""

import shutil
from pathlib import Path

import pytest

from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.fixtures.compiler import compile_object, link_library
from tests.plugins.build import build_plugin, framework_stub
from tests.plugins.matrix import variants

SOURCE = Path(__file__).with_name("dlopen_backend.c")
BACKEND = "libbackend.so"
OF_TENSORFLOW = "_pywrap_tensorflow_internal.so"


def put_plugin(place, variant="count-0"):
    """Put a device plugin into a place that opens a backend beside it."""
    settings = {"FIXTURE_TYPE": "BACKED", "FIXTURE_PLATFORM": "BACKED"}
    opener = compile_object(SOURCE, [f'BACKEND="{BACKEND}"'])
    options = ["-Wl,-rpath,$ORIGIN"]
    built = build_plugin(variants("device")[variant], settings, [opener], options)
    return Path(shutil.copy(built, place))


def put_backend(place, needed=OF_TENSORFLOW):
    options = ["-Wl,--no-as-needed", str(framework_stub(needed))] if needed else []
    macros = ["NEEDS_INSIDE"] if needed else []
    return Path(
        shutil.copy(link_library(BACKEND, [compile_object(SOURCE, macros)], options), place)
    )


def warnings_of(plugin):
    with PluginService(plugin_paths=[plugin], bundled=False) as service:
        (record,) = service.load().plugins
    assert (record.state, record.reasons) == (State.LOADED, ())
    return [(warning.rule, warning.message) for warning in record.warnings]


def test_a_backend_that_cannot_be_linked_is_told_once_until_it_is_exchanged(tmp_path):
    plugin, backend = put_plugin(tmp_path / "libx.so"), put_backend(tmp_path / BACKEND)

    with PluginService(plugin_paths=[plugin], bundled=False) as service:
        service.load()
        assert service.devices("BACKED") == []  # so it is mapped
        (record,) = service.plugins()

    ((rule, message),) = [(warning.rule, warning.message) for warning in record.warnings]
    assert rule == "LD-112"
    assert f"{backend}, which the plugin may open by itself, needs {OF_TENSORFLOW} " in message
    put_backend(backend, needed="")
    assert warnings_of(plugin) == []


@pytest.mark.parametrize(
    ("variant", "name", "needed"),
    [
        pytest.param("count-0", "libother.so", OF_TENSORFLOW, id="not named by the plugin"),
        pytest.param("good", BACKEND, OF_TENSORFLOW, id="a plugin with devices"),
        pytest.param("count-0", BACKEND, "libnobody_has_this.so.1", id="no matter of TensorFlow"),
    ],
)
def test_what_is_not_told(variant, name, needed, tmp_path):
    plugin = put_plugin(tmp_path / "libx.so", variant)
    put_backend(tmp_path / name, needed)

    assert warnings_of(plugin) == []
