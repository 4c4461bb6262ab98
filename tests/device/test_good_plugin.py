from __future__ import annotations

import pytest

from modular_tf.abi.layouts import layout
from modular_tf.errors import ClosedError, NotFoundError
from modular_tf.loading.device_dialect import HOSTED

TEAR_DOWN = [
    "destroy_device_fns",
    "destroy_stream_executor",
    "destroy_platform",
    "destroy_platform_fns",
]


def test_is_accepted_without_warnings(platform):
    assert platform.warnings == ()
    assert (platform.platform, platform.device_type) == ("STEERED_PLATFORM", "STEERED")
    assert (platform.priority, platform.plugin) == (220, "steered")
    assert platform.tables.dialect is HOSTED


def test_is_initialised_as_tensorflow_does(steered, platform):
    assert steered.calls == ["init", "create_device_fns", "create_stream_executor"]


def test_counting_creates_no_device(steered, platform):
    assert platform.device_count() == 2
    assert steered.calls[-1] == "get_device_count"
    assert not any(call.startswith("create_device:") for call in steered.calls)


def test_details_create_each_device_once(steered, platform):
    first = platform.device_details(0)
    assert platform.device_details(0) is first
    assert (first.hardware_name, first.vendor, first.pci_bus_id) == (
        "Steered 1000",
        "Nobody",
        "0000:00:02.1",
    )
    assert (first.numa_node, first.memory_bandwidth, first.gflops) == (3, 900_000_000_000, 12.5)
    assert [call for call in steered.calls if call.startswith("create_device:")] == [
        "create_device:0"
    ]


def test_negative_answers_mean_not_known(platform):
    second = platform.device_details(1)
    assert (second.numa_node, second.memory_bandwidth, second.gflops) == (None, None, None)


@pytest.mark.parametrize("ordinal", [-1, 2])
def test_no_device_outside_the_count(platform, ordinal):
    with pytest.raises(NotFoundError, match="has 2 devices"):
        platform.device_details(ordinal)


def test_close_tears_down_in_tensorflows_order(steered):
    platform = steered.load()
    platform.device_details(1)
    platform.device_details(0)
    before = len(steered.calls)
    platform.close()
    assert steered.calls[before:] == ["destroy_device:1", "destroy_device:0", *TEAR_DOWN]
    assert platform.closed


def test_close_twice_is_close_once(steered):
    platform = steered.load()
    platform.close()
    calls = steered.calls
    platform.close()
    assert steered.calls == calls


def test_use_after_close_is_an_error(steered):
    platform = steered.load()
    platform.close()
    with pytest.raises(ClosedError, match="STEERED_PLATFORM was closed"):
        platform.device_count()
    with pytest.raises(ClosedError):
        platform.device_details(0)


def test_a_second_load_shares_the_platform(steered):
    first, second = steered.load(), steered.load()
    assert steered.calls.count("init") == 1
    first.close()
    assert second.device_count() == 2
    assert "destroy_platform" not in steered.calls
    second.close()
    assert steered.calls[-4:] == TEAR_DOWN


def test_can_be_loaded_again_after_close(steered):
    steered.load().close()
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


@pytest.mark.parametrize("table", ["platform", "platform_fns", "device_fns", "executor"])
def test_tables_fault_when_written(in_child, table):
    in_child(
        "import ctypes\n"
        f"table = steered.load().tables.{table}\n"
        "ctypes.c_uint64.from_address(table.address + 16).value = 1\n",
        status=-11,
    )


def test_a_forked_child_does_not_tear_down(in_child):
    output = in_child(
        "import os\n"
        "platform = steered.load()\n"
        "platform.device_details(0)\n"
        "before = len(steered.calls)\n"
        "if os.fork() == 0:\n"
        "    platform.close()\n"
        "    print('child', steered.calls[before:], platform.closed, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print('parent', platform.device_count(), flush=True)\n"
        "platform.close()\n"
        "print(steered.calls[-1])\n"
    )
    assert output.splitlines() == ["child [] True", "parent 2", "destroy_platform_fns"]


def test_a_fork_while_another_thread_is_in_a_call_leaves_no_lock(in_child):
    output = in_child(
        "import os, threading\n"
        "platform = steered.load()\n"
        "held, go = threading.Event(), threading.Event()\n"
        "def hold():\n"
        "    with platform._live._lock:\n"
        "        held.set()\n"
        "        go.wait()\n"
        "thread = threading.Thread(target=hold)\n"
        "thread.start()\n"
        "held.wait()\n"
        "if os.fork() == 0:\n"
        "    print(platform.device_count(), flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "go.set()\n"
        "thread.join()\n"
    )
    assert output == "2\n"
