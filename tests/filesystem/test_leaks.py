"""Thousands of files and hundreds of services later, the process is as it was."""

from __future__ import annotations

import pytest

from tests.fixtures.memory_in_use import COUNTED, Growth

_START = """
import sys
from modular_tf.service.service import PluginService
from tests.fixtures.memory_in_use import growth

times, *given = sys.argv[1:]

def judge(work):
    work()
    # What is imported late is imported now; reading every installed package again takes the time.
    sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry]

    def one_round():
        for _ in range(int(times)):
            work()

    print(*growth(one_round))
"""

_FILES_AND_FAILURES = """
service = PluginService()
service.load()
fs = service.filesystem("")

def work():
    with fs.open("f", "w") as file:
        file.write("content")
    with fs.new_random_access_file("f") as file:
        file.read(0, 5000)
        file.readinto(1, bytearray(100))
    with fs.open("f") as file:
        file.read()
    with fs.new_read_only_memory_region_from_file("f") as region:
        region.view()
    fs.open("f", "ab", 0)  # left to the collector
    try:
        fs.open("f/x")
    except OSError:
        pass
    fs.get_children("/proc/self")
    fs.paths_exist(["f", "f2"])

judge(work)
assert fs.open_count == 0
"""
# Libraries stay mapped, and are not mapped again; neither are copies, stubs or tables.
_SERVICES = """
def work():
    with PluginService(plugin_paths=given) as service:
        service.load()
        with service.filesystem("fixture").open("fixture://h/f", "w") as file:
            file.write("x")

judge(work)
"""
_ABANDONED_SERVICES = """
def work():
    service = PluginService(plugin_paths=given, bundled=False)
    service.load()
    service.filesystem("fixture").new_writable_file("fixture://h/f")

judge(work)
"""

# What an open file or a service keeps for itself is a multiple of these bytes: a file a struct, a
# cffi handle and a path; a service its registries, records, and the probes of its candidates.
_OF_A_FILE, _OF_A_SERVICE = 100, 2_000
_WORK = {
    "files and failures": (_FILES_AND_FAILURES, 100, _OF_A_FILE),
    "services": (_SERVICES, 20, _OF_A_SERVICE),
    "abandoned services": (_ABANDONED_SERVICES, 20, _OF_A_SERVICE),
}


@pytest.mark.parametrize("work", _WORK)
def test_work_leaves_nothing_behind(work, fixture_plugin, run_python):
    code, times, most = _WORK[work]
    plugin = fixture_plugin("good")
    found = run_python(_START + code, str(times), plugin, env=COUNTED).stdout
    growth = Growth(*map(int, found.split()))

    assert growth.memory < times * most
    assert growth.descriptors == 0
    assert growth.threads == 1
