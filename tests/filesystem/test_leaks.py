"""Ten thousand files and a thousand services later, the process is as it was."""

from __future__ import annotations

import pytest

# What a child measures: descriptors, mappings, and memory in KiB.
_MEASURE = """
import gc, os, sys
from modular_tf.service.service import PluginService

def measure():
    gc.collect()
    with open("/proc/self/maps") as maps:
        mappings = sum(1 for _ in maps)
    with open("/proc/self/statm") as statm:
        memory = int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024
    return len(os.listdir("/proc/self/fd")), mappings, memory

def grow(work, warm_up, times):
    work()
    # What is imported late is imported now; reading every installed package again takes the time.
    sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry]
    for _ in range(warm_up):
        work()
    before = measure()
    for _ in range(times):
        work()
    after = measure()
    return [b - a for a, b in zip(before, after)]
"""

# An open file that leaks costs the host a struct, a cffi handle and a path: more than 200 bytes.
# So 10 000 of them are 2 000 KiB; half of that is the bound. The allocator's own wavering is less.
_FILES, _FILES_BOUND_KIB = 10_000, 1_000

# A service that leaks keeps registries, records, the probes of its candidates: over 10 KiB each.
_SERVICES, _SERVICES_BOUND_KIB = 1_000, 5_000


@pytest.fixture
def growth(run_python):
    """Run code that prints what `grow` returned; return descriptors, mappings and KiB."""

    def run(code, *arguments):
        told = run_python(_MEASURE + code, *arguments).stdout
        return tuple(map(int, told.strip("[]\n").split(", ")))

    return run


@pytest.mark.parametrize("scheme", ["", "ram"])
def test_files_leave_nothing_behind(scheme, growth, tmp_path):
    descriptors, mappings, memory = growth(
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

print(grow(work, 1000, int(sys.argv[3])))
assert fs.open_count == 0
""",
        scheme,
        f"{scheme}://d/f" if scheme else str(tmp_path / "f"),
        str(_FILES),
    )

    assert descriptors == 0
    assert mappings <= 2  # arenas of the allocators
    assert memory < _FILES_BOUND_KIB


def test_streams_regions_and_failures_leave_nothing_behind(growth, tmp_path):
    descriptors, mappings, memory = growth(
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

print(grow(work, 200, 1000))
assert fs.open_count == 0
""",
        tmp_path / "f",
    )

    assert descriptors == 0
    assert mappings <= 4
    assert memory < _FILES_BOUND_KIB


def test_services_leave_nothing_behind(growth, fixture_plugin):
    """Libraries stay mapped, and are not mapped again; neither are copies, stubs or tables."""
    descriptors, mappings, memory = growth(
        """
def work():
    with PluginService(plugin_paths=sys.argv[1:2]) as service:
        service.load()
        with service.filesystem("fixture").open("fixture://h/f", "w") as file:
            file.write("x")

print(grow(work, 20, int(sys.argv[2])))
""",
        fixture_plugin("good"),
        str(_SERVICES),
    )

    assert descriptors == 0
    assert mappings <= 4
    assert memory < _SERVICES_BOUND_KIB


def test_abandoned_services_leave_nothing_behind(growth, fixture_plugin):
    descriptors, mappings, memory = growth(
        """
def work():
    service = PluginService(plugin_paths=sys.argv[1:2], bundled=False)
    service.load()
    service.filesystem("fixture").new_writable_file("fixture://h/f")

print(grow(work, 20, 200))
""",
        fixture_plugin("good"),
    )

    assert descriptors == 0
    assert mappings <= 4
    assert memory < _SERVICES_BOUND_KIB
