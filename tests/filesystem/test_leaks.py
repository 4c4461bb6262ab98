"""Thousands of files and hundreds of services later, the process is as it was."""

from __future__ import annotations

import pytest

from tests.fixtures.memory_in_use import COUNTED, Growth

# What an open file or a service keeps for itself is a multiple of these bytes: a file a struct, a
# cffi handle and a path; a service its registries, records, and the probes of its candidates.
_OF_A_FILE, _OF_A_SERVICE = 100, 2_000

_START = """
import sys
from modular_tf.service.service import PluginService
from tests.fixtures.memory_in_use import growth

def judge(work, times):
    work()
    # What is imported late is imported now; reading every installed package again takes the time.
    sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry]

    def one_round():
        for _ in range(times):
            work()

    print(*growth(one_round))
"""

_FILES, _STREAMS, _SERVICES = 500, 100, 20  # in a round


@pytest.fixture
def growth_of(run_python):
    """Run code that calls `judge`; return what its rounds left."""

    def run(code, *arguments):
        told = run_python(_START + code, *arguments, env=COUNTED).stdout
        return Growth(*map(int, told.split()))

    return run


@pytest.mark.parametrize("scheme", ["", "ram"])
def test_files_leave_nothing_behind(scheme, growth_of, tmp_path):
    growth = growth_of(
        """
service = PluginService()
service.load()
fs = service.filesystem(sys.argv[1])
uri = sys.argv[2]
fs.recursively_create_dir(uri.rpartition("/")[0])
with fs.new_writable_file(uri) as file:
    file.append(bytes(5000))

def work():
    with fs.new_random_access_file(uri) as file:
        file.read(0, 5000)
        file.readinto(10, bytearray(100))

judge(work, int(sys.argv[3]))
assert fs.open_count == 0
""",
        scheme,
        f"{scheme}://d/f" if scheme else str(tmp_path / "f"),
        str(_FILES),
    )

    assert growth.memory < _FILES * _OF_A_FILE
    assert growth.descriptors == 0
    assert growth.threads == 1


def test_streams_regions_and_failures_leave_nothing_behind(growth_of, tmp_path):
    growth = growth_of(
        """
service = PluginService()
service.load()
fs = service.filesystem("")
uri = sys.argv[1]

def work():
    with fs.open(uri, "w") as file:
        file.write("content")
    with fs.open(uri) as file:
        file.read()
    with fs.new_read_only_memory_region_from_file(uri) as region:
        region.view()
    fs.open(uri, "ab", 0)  # left to the collector
    try:
        fs.open(uri + "/x")
    except OSError:
        pass
    fs.get_children("/proc/self")
    fs.paths_exist([uri, uri + "2"])

judge(work, int(sys.argv[2]))
assert fs.open_count == 0
""",
        tmp_path / "f",
        str(_STREAMS),
    )

    assert growth.memory < _STREAMS * _OF_A_FILE
    assert growth.descriptors == 0
    assert growth.threads == 1


def test_services_leave_nothing_behind(growth_of, fixture_plugin):
    """Libraries stay mapped, and are not mapped again; neither are copies, stubs or tables."""
    growth = growth_of(
        """
def work():
    with PluginService(plugin_paths=sys.argv[1:2]) as service:
        service.load()
        with service.filesystem("fixture").open("fixture://h/f", "w") as file:
            file.write("x")

judge(work, int(sys.argv[2]))
""",
        fixture_plugin("good"),
        str(_SERVICES),
    )

    assert growth.memory < _SERVICES * _OF_A_SERVICE
    assert growth.descriptors == 0
    assert growth.threads == 1


def test_abandoned_services_leave_nothing_behind(growth_of, fixture_plugin):
    growth = growth_of(
        """
def work():
    service = PluginService(plugin_paths=sys.argv[1:2], bundled=False)
    service.load()
    service.filesystem("fixture").new_writable_file("fixture://h/f")

judge(work, int(sys.argv[2]))
""",
        fixture_plugin("good"),
        str(_SERVICES),
    )

    assert growth.memory < _SERVICES * _OF_A_SERVICE
    assert growth.descriptors == 0
    assert growth.threads == 1
