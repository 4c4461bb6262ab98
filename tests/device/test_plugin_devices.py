"""Counting and creating the devices of a loaded plugin: rules SE-040 to SE-045."""

from __future__ import annotations

import json

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.device.registry import DeviceRegistry
from modular_tf.errors import InternalError, UnavailableError
from tests.device.steering import RAISES_INT


@pytest.mark.parametrize(
    ("reported", "count"), [(0, 0), (-1, 0), (-(2**31), 0), (1, 1), (7, 7), (None, 0)]
)
def test_counts(steered, platform, reported, count):
    """None: the plugin leaves the host's variable alone."""
    steered.set_count(reported)
    assert platform.device_count() == count


def test_a_count_that_cannot_be_or_fails(steered, platform):
    for count in (4097, 2**31 - 1):
        steered.set_count(count)
        with pytest.raises(InternalError, match=f"found {count}, expected at most 4096") as found:
            platform.device_count()
        assert found.value.rule == "SE-041"
    for how, error in ((Code.UNAVAILABLE, UnavailableError), (RAISES_INT, InternalError)):
        steered.fail("get_device_count", how, "driver restarts")
        with pytest.raises(error, match="get_device_count") as caught:
            platform.device_count()
        assert caught.value.rule == "SE-040"


def test_a_count_is_asked_at_each_listing(steered, platform):
    registry = DeviceRegistry()
    registry.register(platform, plugin="steered")
    assert len(registry.devices()) == 2
    steered.set_count(5)
    assert len(registry.devices()) == 5


def test_a_failing_ordinal_does_not_hide_the_others(steered, platform):
    registry = DeviceRegistry()
    registry.register(platform, plugin="steered")
    steered.failing_ordinal(0)
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
    steered.failing_ordinal(0)
    with pytest.raises(UnavailableError):
        platform.device_details(0)
    steered.failing_ordinal(-1)
    assert platform.device_details(0).vendor == "Nobody"
    platform.close()
    assert steered.calls.count("create_device:0") == 2
    assert steered.calls.count("destroy_device:0") == 1


@pytest.mark.parametrize("field", ["hardware_name", "device_vendor", "pci_bus_id"])
def test_strings(steered, field):
    for value, shown, rules in (
        (0, None, []),
        (0x1000, None, ["SE-044"]),  # unreadable
        (steered.text(b"caf\xe9"), "caf\udce9", []),
    ):
        steered.set_field("SP_Device", field, value)
        with steered.load() as platform:
            details = platform.device_details(0)
        assert getattr(details, field.removeprefix("device_")) == shown
        assert [found.rule_id for found in details.warnings] == rules


def test_strings_past_the_announced_size_are_not_read(steered, platform):
    steered.set_field("SP_Device", "struct_size", 0)
    details = platform.device_details(1)
    assert details.hardware_name == "Steered 2000"
    assert [found.rule_id for found in details.warnings] == ["SE-043"]
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
        "for _ in range(100):\n"
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
        "print(accepted > 10, refused > 10)\n"
    )
    assert lines == ["SE-008", "True True"]
