"""The end of the process comes while a call is in the plugin: that call ends first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_library

_CODE = """
import sys, threading
from modular_tf.service.service import PluginService

service, other = (PluginService(plugin_paths=sys.argv[1:2], bundled=False) for _ in range(2))
service.load(), other.load()
fs, watcher = service.filesystem("watch"), other.filesystem("watch")
SLOW, QUICK = "watch://h/slow", "watch://h/quick"

# What the end meets; each is a call that is prepared first.
def read():
    reader = fs.new_random_access_file(SLOW)
    return lambda: reader.read(0, 5)

def release_reader():
    kept = [fs.new_random_access_file(SLOW)]
    return kept.clear

def append():
    writer = fs.new_writable_file(SLOW)
    return lambda: writer.append(b"x")

def close_writer():
    return fs.new_writable_file(SLOW).close

def release_writer():
    kept = [fs.new_writable_file(SLOW)]
    return kept.clear

def open_region():
    return lambda: fs.new_read_only_memory_region_from_file(SLOW)

def release_region():
    kept = [fs.new_read_only_memory_region_from_file(SLOW)]
    return kept.clear

def release_view():
    kept = [fs.new_read_only_memory_region_from_file(SLOW).view()]
    return kept.clear

def list_children():
    return lambda: fs.get_children(SLOW)

def ask():
    return lambda: fs.path_exists(SLOW)

call = {use.__name__: use for use in (read, release_reader, append, close_writer, release_writer,
        open_region, release_region, release_view, list_children, ask)}[sys.argv[2]]()
seen = fs.new_read_only_memory_region_from_file(QUICK).view()  # rests, as it may
thread = threading.Thread(target=call, daemon=True)
thread.start()
while watcher.get_file_size("watch://h/inside") == 0:
    assert thread.is_alive()
service.close_at_exit()
thread.join()
assert watcher.get_file_size("watch://h/cleanups") == 1
assert bytes(seen) == b"0123456789"
"""

_CALLS = (
    "read",
    "release_reader",
    "append",
    "close_writer",
    "release_writer",
    "open_region",
    "release_region",
    "release_view",
    "list_children",
    "ask",
)


@pytest.fixture(scope="module")
def watchful_plugin():
    source = Path(__file__).with_name("watchful_plugin.c")
    return link_library("libwatchful.so", [compile_object(source, ["PATIENCE_US=200000"])])


@pytest.mark.parametrize("call", _CALLS)
def test_the_filesystem_is_cleaned_up_after_the_call(call, watchful_plugin, run_python):
    run_python(_CODE, watchful_plugin, call)
