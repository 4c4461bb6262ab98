"""The end of the process comes while a call is in the plugin: that call ends first."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from tests.filesystem.plugins import built, service_of
from tests.fixtures.forked_children import in_a_fork

SLOW = "watch://h/slow"


def release(*things):
    """Return a call that drops the last reference to something."""
    last = list(things)
    del things
    return last.clear


# What the end meets; each is a call that is prepared first.
CALLS = {
    "read": lambda fs: partial(fs.new_random_access_file(SLOW).read, 0, 5),
    "release_reader": lambda fs: release(fs.new_random_access_file(SLOW)),
    "append": lambda fs: partial(fs.new_writable_file(SLOW).append, b"x"),
    "close_writer": lambda fs: fs.new_writable_file(SLOW).close,
    "release_writer": lambda fs: release(fs.new_writable_file(SLOW)),
    "open_region": lambda fs: lambda: fs.new_read_only_memory_region_from_file(SLOW),
    "release_region": lambda fs: release(fs.new_read_only_memory_region_from_file(SLOW)),
    "release_view": lambda fs: release(fs.new_read_only_memory_region_from_file(SLOW).view()),
    "list_children": lambda fs: lambda: fs.get_children(SLOW),
    "ask": lambda fs: lambda: fs.path_exists(SLOW),
}


@pytest.fixture(scope="module")
def watchful_plugin():
    return built("watchful", "PATIENCE_US=100000")


@in_a_fork
def test_the_filesystem_is_cleaned_up_after_the_call(watchful_plugin):
    for name, prepare in CALLS.items():
        service, other = service_of(watchful_plugin), service_of(watchful_plugin)
        fs, watcher = service.filesystem("watch"), other.filesystem("watch")
        call = prepare(fs)
        view = fs.new_read_only_memory_region_from_file("watch://h/quick").view()  # it may rest
        cleanups = watcher.get_file_size("watch://h/cleanups")
        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        while watcher.get_file_size("watch://h/inside") == 0:
            assert thread.is_alive(), name
        service.close_at_exit()
        thread.join()
        assert watcher.get_file_size("watch://h/cleanups") == cleanups + 1, name
        assert bytes(view) == b"0123456789"
