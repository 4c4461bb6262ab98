"""The registry of devices: who serves, under which names."""

from __future__ import annotations

import pytest

from modular_tf.device.factory import PythonDeviceFactory
from modular_tf.device.registry import DeviceRegistry, FactoryState, PhysicalDevice
from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
)


class Source:
    def __init__(self, device_type, platform=None, priority=220, count=1):
        self.device_type = device_type
        self.platform = platform or device_type
        self.priority = priority
        self.count = count

    def device_count(self):
        if self.count is None:
            raise RuntimeError("driver is gone")
        return self.count


def add(registry, *arguments, plugin=None, **options):
    source = Source(*arguments, **options)
    name = plugin or source.platform.lower()
    return registry.register(PythonDeviceFactory(source, plugin=name), plugin=name)


def names(registry, device_type=None):
    return [device.name for device in registry.devices(device_type)]


def states(registry):
    return {
        status.registration.plugin: (status.state, status.reason and status.reason.rule_id)
        for status in registry.factories()
    }


SERVING = (FactoryState.SERVING, None)


def test_cpu_comes_first_then_the_order_of_registration():
    registry = DeviceRegistry()
    add(registry, "NPU", count=2)
    add(registry, "GPU")
    add(registry, "CPU", priority=60)
    add(registry, "APU")
    assert names(registry) == ["CPU:0", "NPU:0", "NPU:1", "GPU:0", "APU:0"]
    assert registry.devices()[2] is registry.device("NPU:1") is registry.device("/device:NPU:1")
    assert names(registry, "NPU") == ["NPU:0", "NPU:1"]
    assert names(registry, "TPU") == []


def test_the_highest_priority_serves_and_the_loser_is_shadowed():
    registry = DeviceRegistry()
    add(registry, "GPU", "SLOW", priority=210)
    add(registry, "GPU", "FAST", priority=220, count=3)
    assert names(registry) == ["GPU:0", "GPU:1", "GPU:2"]
    assert {device.platform for device in registry.devices()} == {"FAST"}
    assert states(registry) == {"slow": (FactoryState.SHADOWED, "SE-052"), "fast": SERVING}
    reason = registry.factories()[0].reason
    assert "fast" in reason.message
    assert "slow" in reason.message


def test_equal_priorities_keep_the_first_and_name_both():
    registry = DeviceRegistry()
    add(registry, "GPU", "FIRST")
    add(registry, "GPU", "SECOND")
    assert states(registry) == {"first": SERVING, "second": (FactoryState.SHADOWED, "SE-051")}
    message = registry.factories()[1].reason.message
    assert "first (platform FIRST, priority 220)" in message
    assert "second (platform SECOND, priority 220)" in message


@pytest.mark.parametrize("priorities", [{"GPU:FAST": 1}, {"GPU": 5, "GPU:SLOW": 6, "SLOW": 0}])
def test_the_configuration_decides(priorities):
    registry = DeviceRegistry(priorities=priorities)
    add(registry, "GPU", "FAST", priority=220)
    add(registry, "GPU", "SLOW", priority=210)
    device = registry.device("GPU:0")
    assert device.platform == "SLOW"
    assert device.priority == priorities.get("GPU:SLOW", 210)


def test_a_platform_name_is_taken_once_in_any_case():
    registry = DeviceRegistry()
    add(registry, "GPU", "CHIP", plugin="one")
    for name in ("CHIP", "chip"):
        with pytest.raises(
            AlreadyExistsError, match=r"(?i)CHIP of two is registered .* by one"
        ) as e:
            registry.register(Source("NPU", name), plugin="two")
        assert (e.value.rule, e.value.plugin) == ("SE-050", "two")
    assert list(states(registry)) == ["one"]


def test_types_that_are_not_enabled_are_disabled():
    registry = DeviceRegistry(enabled_types=frozenset({"CPU", "NPU"}))
    add(registry, "CPU")
    add(registry, "GPU")
    assert names(registry) == ["CPU:0"]
    assert states(registry) == {"cpu": SERVING, "gpu": (FactoryState.DISABLED, "SE-053")}
    assert "TF_ENABLED_DEVICE_TYPES=CPU,NPU" in registry.factories()[1].reason.message


def test_visible_devices_are_renumbered_in_the_written_order():
    registry = DeviceRegistry(visible="GPU:2,GPU:0")
    add(registry, "GPU", count=3)
    assert [(device.name, device.ordinal) for device in registry.devices()] == [
        ("GPU:0", 2),
        ("GPU:1", 0),
    ]
    assert registry.device("/device:GPU:0").ordinal == 2
    assert registry.device("/physical_device:GPU:0").name == "GPU:1"
    assert registry.device("GPU:1").physical_name == "/physical_device:GPU:0"
    with pytest.raises(NotFoundError):
        registry.device("/physical_device:GPU:1")
    assert registry.physical_devices("GPU") == [
        PhysicalDevice(f"/physical_device:GPU:{ordinal}", "GPU") for ordinal in range(3)
    ]


def test_an_unknown_device_lists_the_known_ones():
    registry = DeviceRegistry(visible="GPU:3")
    add(registry, "GPU", count=3)
    with pytest.raises(InvalidArgumentError, match="GPU:3 is out of range"):
        registry.devices()

    registry = DeviceRegistry()
    add(registry, "CPU")
    add(registry, "GPU")
    with pytest.raises(NotFoundError, match=r"no device 'GPU:1'; visible devices: \['CPU:0'"):
        registry.device("GPU:1")


def test_a_failing_factory_does_not_hide_the_others():
    registry = DeviceRegistry(visible="NPU:1")
    add(registry, "NPU", count=None)
    add(registry, "GPU")
    listing = registry.listing()
    assert [device.name for device in listing.devices] == ["GPU:0"]
    [problem] = listing.problems
    assert problem.registration.plugin == "npu"
    assert "driver is gone" in problem.error.message
    assert registry.physical_devices("NPU") == []
    with pytest.raises(InternalError, match="driver is gone"):
        registry.device("NPU:0")


def test_a_device_shows_itself_as_a_dictionary():
    registry = DeviceRegistry()
    add(registry, "GPU", "CHIP", priority=5, plugin="chips")
    assert registry.device("GPU:0").to_dict() == {
        "name": "GPU:0",
        "device_type": "GPU",
        "platform": "CHIP",
        "ordinal": 0,
        "priority": 5,
        "plugin": "chips",
        "hardware_name": None,
        "vendor": None,
        "pci_bus_id": None,
        "numa_node": None,
        "memory_bandwidth": None,
        "gflops": None,
        "error": None,
        "memory_free": None,
        "memory_total": None,
        "streams": None,
    }


def python_factory(*arguments, **options):
    return PythonDeviceFactory(Source(*arguments, **options), plugin="p")


def test_a_factory_takes_the_place_of_another():
    registry = DeviceRegistry()
    old, new = python_factory("GPU", count=1), python_factory("GPU", priority=300, count=2)
    registration = registry.registration_of(old, plugin="p")
    registry.enter(registration)
    add(registry, "XPU")
    before = registry.device("GPU:0")

    registry.fulfil(registration, new)

    assert before.factory is old
    assert registry.device("GPU:0").factory is new
    assert names(registry) == ["GPU:0", "GPU:1", "XPU:0"]
    assert registry.listed_devices(old) == []
    assert registry.listed_devices(new) == registry.devices("GPU")
    add(registry, "GPU", "RIVAL", priority=250)
    assert registry.device("GPU:0").factory is new  # by the rank of its own
    with pytest.raises(AlreadyExistsError, match="RIVAL"):
        registry.fulfil(registration, python_factory("GPU", "RIVAL"))

    registry.leave(registration)
    registry.leave(registration)
    assert names(registry) == ["XPU:0", "GPU:0"]
    with pytest.raises(ClosedError, match="is closed"):
        registry.enter(registration)


@pytest.mark.parametrize("is_registered", [True, False])
def test_a_registration_takes_the_position_of_another_and_enters_once(is_registered):
    registry = DeviceRegistry()
    old, new = (registry.registration_of(python_factory("GPU"), plugin="p") for _ in range(2))
    if is_registered:
        registry.enter(old)
    add(registry, "XPU")
    for _ in range(2):
        registry.enter(new, instead_of=old)
        registry.leave(old)

    entered = [status.registration for status in registry.factories()]
    assert (entered.index(new), len(entered)) == (0 if is_registered else 1, 2)
    with pytest.raises(ClosedError, match="is closed"):
        registry.enter(old)
