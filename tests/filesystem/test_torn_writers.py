"""An append that fails tears the file of a store, also while another thread closes it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from modular_tf.errors import ClosedError, DataLossError
from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.service.service import PluginService
from tests.fixtures.compiler import compile_object, link_library


@pytest.mark.parametrize("is_store", [True, False])
@pytest.mark.parametrize("at_exit", [True, False])
def test_a_close_during_a_failing_append(is_store, at_exit, tmp_path, monkeypatch):
    monkeypatch.setattr(PluginFilesystem, "is_object_store", is_store)
    pipe, stored = tmp_path / "file", tmp_path / "file.stored"
    os.mkfifo(pipe)
    source = compile_object(Path(__file__).with_name("tearing_plugin.c"))
    library = link_library("libtearing.so", [source])
    with PluginService(plugin_paths=[library], bundled=False) as service:
        service.load()
        fs = service.filesystem("tear")
        writer = fs.new_writable_file(f"tear://h{pipe}")
        with ThreadPoolExecutor() as pool:
            appending = pool.submit(writer.append, b"bytes")
            with pipe.open("wb"):  # the append has opened it too
                closing = pool.submit(fs.close, at_exit=at_exit)
                while not is_closed(fs):
                    pass
            with pytest.raises(DataLossError):
                appending.result()
            closing.result()

        assert stored.exists() == (not is_store)


def is_closed(fs):
    """Return whether nothing can be opened any more."""
    try:
        fs.new_writable_file("tear://h/other").discard()
    except ClosedError:
        return True
    return False
