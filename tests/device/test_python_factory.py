"""Device factories written in Python: what they need, and what comes of wrong answers."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from modular_tf.device.details import DeviceDetails
from modular_tf.device.factory import DeviceFactory, PythonDeviceFactory
from modular_tf.errors import (
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)


class Chips:
    device_type = "CHIP"
    platform = "CHIPS"
    priority = 230

    def __init__(self, count=2, details=MappingProxyType({})):
        self.count = count
        self.details = details
        self.asked = []

    def device_count(self):
        return self.count

    def device_details(self, ordinal):
        self.asked.append(ordinal)
        return self.details


def wrap(factory):
    return PythonDeviceFactory(factory, plugin="chips")


def test_a_whole_factory():
    chips = Chips(details={"hardware_name": "Chip", "gflops": 3, "numa_node": 0})
    factory = wrap(chips)
    assert isinstance(factory, DeviceFactory)
    assert (factory.device_type, factory.platform, factory.priority) == ("CHIP", "CHIPS", 230)
    assert factory.device_count() == 2
    assert factory.device_details(1) == DeviceDetails(hardware_name="Chip", gflops=3, numa_node=0)
    assert factory.device_details(1) is factory.device_details(1)
    assert chips.asked == [1]
    details = DeviceDetails(vendor="me")
    assert wrap(Chips(details=details)).device_details(0) is details


def test_details_may_be_missing():
    class Plain:
        device_type = "PluggableDevice"  # any name that a device's name can hold
        platform = "MyDevice"

        def device_count(self):
            return 1

    factory = wrap(Plain())
    assert (factory.platform, factory.device_type) == ("MyDevice", "PluggableDevice")
    assert factory.priority == 220
    assert factory.device_details(0) == DeviceDetails()


def test_wrong_attributes_are_refused():
    for attribute, values in {
        "device_type": [None, "N-PU", b"GPU", "GPU:0"],
        "platform": ["", 3],
        "priority": ["high", True, 1.5],
        "device_count": [None, 4],
    }.items():
        for value in values:
            chips = Chips()
            setattr(chips, attribute, value)
            with pytest.raises(InvalidArgumentError, match=f"of chips: {attribute}") as caught:
                wrap(chips)
            assert caught.value.rule == "SE-054"


def test_wrong_counts_and_details_are_errors():
    for count, message, rule in (
        *((count, "expected a number", "SE-055") for count in (None, "2", 2.0, True)),
        (10**9, "at most 4096", "SE-041"),
    ):
        with pytest.raises(InternalError, match=message) as caught:
            wrap(Chips(count)).device_count()
        assert caught.value.rule == rule
    assert wrap(Chips(-5)).device_count() == 0
    for details, message in (
        ({"speed": 3}, "unknown device detail 'speed'"),
        ({"vendor": 3}, "vendor is 3"),
        ({"numa_node": "0"}, "numa_node is '0'"),
        ({"numa_node": 1.5}, "numa_node is 1.5"),
        ({"gflops": True}, "gflops is True"),
        *((details, "expected a mapping") for details in ([1], None, "chip")),
    ):
        with pytest.raises(InternalError, match=message) as caught:
            wrap(Chips(details=details)).device_details(0)
        assert caught.value.rule == "SE-055"


def test_numbers_that_are_none_and_devices_outside_the_count():
    for value in (-1, float("nan"), float("inf"), None):
        assert wrap(Chips(details={"gflops": value})).device_details(0).gflops is None
    chips = Chips()
    for ordinal in (-1, 2):
        with pytest.raises(NotFoundError, match="has 2 devices"):
            wrap(chips).device_details(ordinal)
    assert chips.asked == []


def test_exceptions_become_typed_errors_with_their_cause_and_typed_errors_pass():
    class Broken(Chips):
        def device_count(self):
            raise ZeroDivisionError("oops")

    class Shy(Chips):
        @property
        def platform(self):
            raise RuntimeError("not now")

    class Full(Chips):
        def device_details(self, ordinal):
            raise ResourceExhaustedError("no handle left")

    with pytest.raises(InternalError, match=r"device_count.* raised ZeroDivisionError") as caught:
        wrap(Broken()).device_count()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(InvalidArgumentError, match="platform raised RuntimeError: not now"):
        wrap(Shy())
    with pytest.raises(ResourceExhaustedError, match="no handle left"):
        wrap(Full()).device_details(0)
