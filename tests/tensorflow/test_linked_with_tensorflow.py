"""Plugins that were linked with the libraries of a TensorFlow that was released.

`scripts/try_tensorflow_versions` tries other releases.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.discovery.elf import ElfFile
from tests.fixtures.compiler import compile_object
from tests.fixtures.matrices import sampled
from tests.fixtures.tensorflow import tensorflow_folder
from tests.plugins.build import build_plugin
from tests.plugins.matrix import variants

# Of the functions that the host offers, each release has this one in libtensorflow_cc.so.2.
_OF_CC = """
const char* TF_Version(void);
const char* asks_of_cc(void);
__attribute__((visibility("default"))) const char* asks_of_cc(void) { return TF_Version(); }
"""
_LOAD = """
import sys
from pathlib import Path
from modular_tf.service.service import PluginService

with PluginService(plugin_paths=[sys.argv[1]]) as service:
    (plugin,) = [plugin for plugin in service.load().plugins if plugin.path == sys.argv[1]]
    assert plugin.state.value == "loaded", plugin.reasons
    assert not plugin.warnings, plugin.warnings
    service.filesystem("linked").create_dir("linked://h/x")
    assert service.filesystem("linked").path_exists("linked://h/x")
    assert "libtensorflow" not in Path("/proc/self/maps").read_text()
"""


_WANTED = [("cc",), ("framework",), ("cc", "framework")]


@pytest.mark.parametrize("wanted", sampled(_WANTED, [("cc", "framework")]))
def test_a_plugin_that_was_linked_with_its_libraries_serves(wanted, tmp_path, run_python):
    libraries = [tensorflow_folder() / f"tensorflow/libtensorflow_{name}.so.2" for name in wanted]
    source = tmp_path / "of_cc.c"
    source.write_text(_OF_CC)
    built = build_plugin(
        variants("filesystem")["needed-none"],
        {"FIXTURE_SCHEME": "linked"},
        [compile_object(source)],
        ["-Wl,--no-as-needed,--allow-shlib-undefined", *map(str, libraries)],
    )
    plugin = tmp_path / "libplugin.so"
    plugin.write_bytes(Path(built).read_bytes())
    with ElfFile(str(plugin)) as elf:
        assert {library.name for library in libraries} <= set(elf.dynamic.needed)
        required = {(need.library, need.version) for need in elf.version_needs()}
    assert (("libtensorflow_cc.so.2", "tensorflow") in required) is ("cc" in wanted)

    run_python(_LOAD, plugin)
