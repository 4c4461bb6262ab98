"""Counting and creating the devices of a loaded plugin: rules SE-040 to SE-045."""

from __future__ import annotations

import json

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.device.registry import DeviceRegistry
from modular_tf.errors import InternalError, ModularTFError, UnavailableError
from tests.device.steering import RAISES_STANDARD_EXCEPTION


@pytest.mark.parametrize(
    ("reported", "count"), [(0, 0), (-1, 0), (-(2**31), 0), (1, 1), (7, 7), (None, 0)]
)
def test_counts(steered, platform, reported, count):
    """None: the plugin leaves the host's variable alone."""
    steered.set_count(reported)
    assert platform.device_count() == count


@pytest.mark.parametrize("count", [4097, 2**31 - 1])
def test_a_count_that_cannot_be(steered, platform, count):
    steered.set_count(count)
    with pytest.raises(InternalError, match=f"found {count}, expected at most 4096") as caught:
        platform.device_count()
    assert caught.value.rule == "SE-041"


def test_a_failing_count_has_the_plugins_code(steered, platform):
    steered.fail("get_device_count", Code.UNAVAILABLE, "driver restarts")
    with pytest.raises(UnavailableError, match="driver restarts") as caught:
        platform.device_count()
    assert (caught.value.rule, caught.value.operation) == ("SE-040", "get_device_count")


def test_a_count_is_asked_at_each_listing(steered, platform):
    registry = DeviceRegistry()
    registry.register(platform, plugin="steered")
    assert len(registry.devices()) == 2
    steered.set_count(5)
    assert len(registry.devices()) == 5


def test_a_failing_ordinal_does_not_hide_the_others(steered, platform):
    registry = DeviceRegistry()
    registry.register(platform, plugin="steered")
    steered.fail_ordinal(0)
    first, second = registry.devices()
    assert second.hardware_name == "Steered 2000"
    with pytest.raises(UnavailableError, match=r"STEERED:0: .*the cable is loose") as caught:
        _ = first.hardware_name
    assert caught.value.rule == "SE-042"
    shown = [json.loads(json.dumps(device.to_dict())) for device in (first, second)]
    assert [row["hardware_name"] for row in shown] == [None, "Steered 2000"]
    assert "the cable is loose" in shown[0]["error"]
    assert shown[1]["error"] is None


def test_a_failed_device_is_tried_again_and_never_destroyed(steered):
    platform = steered.load()
    steered.fail_ordinal(0)
    with pytest.raises(UnavailableError):
        platform.device_details(0)
    steered.fail_ordinal(-1)
    assert platform.device_details(0).vendor == "Nobody"
    platform.close()
    assert steered.calls.count("create_device:0") == 2
    assert steered.calls.count("destroy_device:0") == 1


def test_a_device_without_size_is_warned_of(steered, platform):
    steered.set_field("SP_Device", "struct_size", 0)
    details = platform.device_details(1)
    assert details.hardware_name == "Steered 2000"
    assert [found.rule_id for found in details.warnings] == ["SE-043"]


@pytest.mark.parametrize(
    ("field", "detail"),
    [
        ("hardware_name", "hardware_name"),
        ("device_vendor", "vendor"),
        ("pci_bus_id", "pci_bus_id"),
    ],
)
@pytest.mark.parametrize(
    ("text", "shown", "rules"),
    [(None, None, []), (0x1000, None, ["SE-044"]), (b"caf\xe9", "caf\udce9", [])],
    ids=["null", "unreadable", "bytes"],
)
def test_strings(steered, platform, field, detail, text, shown, rules):
    value = steered.text(text) if isinstance(text, bytes) else text or 0
    steered.set_field("SP_Device", field, value)
    details = platform.device_details(0)
    assert getattr(details, detail) == shown
    assert [found.rule_id for found in details.warnings] == rules


def test_strings_past_the_announced_size_are_not_read(steered, platform):
    steered.set_field("SP_Device", "struct_size", 32)
    details = platform.device_details(0)
    assert (details.hardware_name, details.vendor, details.pci_bus_id) == (None, None, None)
    assert details.numa_node == 3
    assert [found.rule_id for found in details.warnings] == ["SE-030"]


def test_a_device_struct_of_the_plugins_own_is_followed(steered, platform):
    steered.point("SP_Device", "own")
    details = platform.device_details(0)
    assert details.hardware_name == "Steered 1000"
    assert [found.rule_id for found in details.warnings] == ["SE-007"]


def test_a_throwing_destroy_device_does_not_stop_the_rest(steered):
    platform = steered.load()
    platform.device_details(0)
    platform.device_details(1)
    steered.fail("destroy_device", RAISES_STANDARD_EXCEPTION, "busy")
    with pytest.raises(ModularTFError, match="busy"):
        platform.close()
    assert steered.calls[-6:] == [
        "destroy_device:0",
        "destroy_device:1",
        "destroy_device_fns",
        "destroy_stream_executor",
        "destroy_platform",
        "destroy_platform_fns",
    ]


def test_wild_pointers_and_garbage_in_any_field_never_crash(in_child):
    lines = in_child(
        "import random\n"
        "from modular_tf.abi.layouts import layout\n"
        "from modular_tf.errors import FailedPreconditionError, ModularTFError\n"
        "from modular_tf.loading.device_dialect import HOSTED\n"
        "steered.point('SP_Device', 'nowhere')\n"
        "with steered.load() as platform:\n"
        "    try:\n"
        "        platform.device_details(0)\n"
        "    except FailedPreconditionError as error:\n"
        "        print(error.rule)\n"
        "chance = random.Random(20200908)\n"
        "accepted = refused = 0\n"
        "for _ in range(400):\n"
        "    steered.call('reset')\n"
        "    for _ in range(chance.randint(1, 3)):\n"
        "        table = chance.choice(TABLES)\n"
        "        size = layout(table, HOSTED).size\n"
        "        wild = [0, 1, 35, 2**31, 2**48 + 5, 2**64 - 1, chance.getrandbits(64)]\n"
        "        offset = 8 * chance.randrange(size // 8)\n"
        "        steered.set_bytes(table, offset, 8, chance.choice(wild))\n"
        "    try:\n"
        "        with steered.load() as platform:\n"
        "            accepted += 1\n"
        "            platform.device_details(0)\n"
        "    except ModularTFError as error:\n"
        "        assert error.rule, error\n"
        "        refused += 1\n"
        "print(accepted > 20, refused > 20)\n"
    )
    assert lines == ["SE-008", "True True"]
