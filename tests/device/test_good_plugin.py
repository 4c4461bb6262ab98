from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from modular_tf.abi.layouts import layout
from modular_tf.device.registry import DeviceRegistry
from modular_tf.errors import ClosedError, NotFoundError
from modular_tf.loading.device_dialect import HOSTED

TEAR_DOWN = [
    "destroy_device_fns",
    "destroy_stream_executor",
    "destroy_platform",
    "destroy_platform_fns",
]


def test_is_accepted_without_warnings_and_counting_creates_no_device(steered, platform):
    assert platform.warnings == ()
    assert (platform.platform, platform.device_type) == ("STEERED_PLATFORM", "STEERED")
    assert (platform.priority, platform.plugin) == (220, "steered")
    assert platform.tables.dialect is HOSTED
    assert steered.calls == ["init", "create_device_fns", "create_stream_executor"]
    assert platform.device_count() == 2
    assert steered.calls[3:] == ["get_device_count"]


def test_details_create_each_device_once(steered, platform):
    first = platform.device_details(0)
    assert platform.device_details(0) is first
    assert (first.hardware_name, first.vendor, first.pci_bus_id) == (
        "Steered 1000",
        "Nobody",
        "0000:00:02.1",
    )
    assert (first.numa_node, first.memory_bandwidth, first.gflops) == (3, 900_000_000_000, 12.5)
    second = platform.device_details(1)  # whose numbers are negative
    assert (second.numa_node, second.memory_bandwidth, second.gflops) == (None, None, None)
    for ordinal in (-1, 2):
        with pytest.raises(NotFoundError, match="has 2 devices"):
            platform.device_details(ordinal)
    created = [call for call in steered.calls if call.startswith("create_device:")]
    assert created == ["create_device:0", "create_device:1"]


def test_close_tears_down_in_tensorflows_order(steered):
    platform = steered.load()
    platform.device_details(1)
    platform.device_details(0)
    before = len(steered.calls)
    platform.close()
    platform.close()
    assert steered.calls[before:] == ["destroy_device:1", "destroy_device:0", *TEAR_DOWN]
    assert platform.closed
    for use in (platform.device_count, lambda: platform.device_details(0)):
        with pytest.raises(ClosedError, match="STEERED_PLATFORM was closed"):
            use()


def test_a_second_load_shares_the_platform_and_one_after_the_end_does_not(steered):
    first, second = steered.load(), steered.load()
    assert steered.calls.count("init") == 1
    first.close()
    assert second.device_count() == 2
    assert "destroy_platform" not in steered.calls
    second.close()
    assert steered.calls[-4:] == TEAR_DOWN
    with steered.load() as again:
        assert again.device_count() == 2
    assert steered.calls.count("init") == 2


def test_slots_show_where_they_point(platform):
    slots = {slot.name: slot for slot in platform.tables.executor.slots()}
    expected = layout("SP_StreamExecutor", HOSTED)
    assert list(slots) == [slot.name for slot in expected.slots]
    assert slots["host_callback"].offset == expected.field("host_callback").offset
    assert slots["host_callback"].present
    assert slots["host_callback"].library.endswith("libsteered.so")


def test_tables_fault_when_written(in_child):
    lines = in_child(
        "import ctypes, faulthandler\n"
        "faulthandler.disable()\n"
        "tables = steered.load().tables\n"
        "for table in ('platform', 'platform_fns', 'device_fns', 'executor'):\n"
        "    if os.fork() == 0:\n"
        "        address = getattr(tables, table).address\n"
        "        ctypes.c_uint64.from_address(address + 16).value = 1\n"
        "        os._exit(0)\n"
        "    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)\n"
    )
    assert lines == ["-11"] * 4


# -- several threads ----------------------------------------------------------------------------

THREADS = 8


def together(task):
    """Run `task` in several threads that start at the same time; return what they returned."""
    barrier = threading.Barrier(THREADS)

    def run():
        barrier.wait()
        return task()

    with ThreadPoolExecutor(THREADS) as pool:
        return [future.result() for future in [pool.submit(run) for _ in range(THREADS)]]


def test_a_device_is_created_once_and_one_object_for_all_threads(steered, platform):
    details = together(lambda: platform.device_details(0))
    assert len({id(entry) for entry in details}) == 1
    assert steered.calls.count("create_device:0") == 1

    registry = DeviceRegistry()
    registry.register(platform, plugin="steered")
    listings = together(registry.devices)
    assert len({tuple(map(id, devices)) for devices in listings}) == 1


def test_loading_and_closing_in_parallel_keeps_init_and_destroy_in_pairs(steered):
    def load_and_close():
        with steered.load() as platform:
            return platform.device_count()

    assert together(load_and_close) == [2] * THREADS
    relevant = [call for call in steered.calls if call in {"init", "destroy_platform"}]
    assert relevant == ["init", "destroy_platform"] * (len(relevant) // 2)
