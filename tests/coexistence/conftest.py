"""The plugin that never rests, and work with all kinds of plugins for children to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_library

WORK = """
import os, sys, tempfile
import numpy as np
from modular_tf.service.service import PluginService

def use_files(service, scheme, root):
    fs = service.filesystem(scheme)
    fs.recursively_create_dir(root)
    with fs.open(root + "/f", "wb") as stream:
        stream.write(b"content" * 1000)
    with fs.open(root + "/f", "rb") as stream:
        assert stream.read() == b"content" * 1000
    fs.copy_file(root + "/f", root + "/g")
    assert sorted(fs.get_children(root)) == ["f", "g"]
    with fs.new_read_only_memory_region_from_file(root + "/g") as region:
        assert bytes(region.view()[:7]) == b"content"
    fs.delete_recursively(root)

def use_device(service):
    (device,) = service.devices("CPU")
    source = np.arange(1000, dtype="float32").reshape(10, 100)
    with device.put(source) as put:
        assert np.array_equal(np.from_dlpack(put.to_host()), source)
        assert np.array_equal(put.to_numpy(), source)
    with device.create_stream() as stream:
        called = []
        stream.add_callback(lambda: called.append(True))
        stream.record_event().wait(60)
        stream.block_until_done()
        assert called == [True]

def use_all(service):
    use_files(service, "ram", "ram://coexistence%d" % os.getpid())
    use_files(service, "file", "file://" + tempfile.mkdtemp() + "/d")
    if "fixture" in service.schemes():
        use_files(service, "fixture", "fixture://h/d")
    use_device(service)
"""
"""What a child does with each kind of plugin; `use_all(service)` does it all."""

ALL = (
    WORK
    + """
with PluginService(plugin_paths=sys.argv[1:]) as service:
    service.load()
    assert {"fixture", "ram", "file"} <= service.schemes().keys()
    for _ in range(2):
        use_all(service)
print("reached the end")
"""
)


@pytest.fixture(scope="session")
def restless_plugin():
    """Build the plugin of `restless_plugin.c`."""
    source = Path(__file__).with_name("restless_plugin.c")
    return link_library("librestless.so", [compile_object(source)], ["-lpthread"])
