from __future__ import annotations

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

    def __init__(self, count=2, details=None):
        self.count = count
        self.details = {} if details is None else details
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


def test_details_are_kept():
    chips = Chips()
    factory = wrap(chips)
    assert factory.device_details(0) is factory.device_details(0)
    assert chips.asked == [0]
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


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("device_type", None),
        ("device_type", "N-PU"),
        ("device_type", b"GPU"),
        ("device_type", "GPU:0"),
        ("platform", ""),
        ("platform", 3),
        ("priority", "high"),
        ("priority", True),
        ("priority", 1.5),
        ("device_count", None),
        ("device_count", 4),
    ],
)
def test_wrong_attributes_are_refused(attribute, value):
    chips = Chips()
    setattr(chips, attribute, value)
    with pytest.raises(InvalidArgumentError, match=f"Chips of chips: {attribute}") as caught:
        wrap(chips)
    assert caught.value.rule == "SE-054"


def test_a_raising_property_is_refused():
    class Broken(Chips):
        @property
        def platform(self):
            raise RuntimeError("not now")

    with pytest.raises(InvalidArgumentError, match="platform raised RuntimeError: not now"):
        wrap(Broken())


@pytest.mark.parametrize(
    ("count", "message"),
    [
        *((count, "expected a number") for count in (None, "2", 2.0, True)),
        (10**9, "at most 4096"),
    ],
)
def test_a_count_that_is_none(count, message):
    with pytest.raises(InternalError, match=message) as caught:
        wrap(Chips(count)).device_count()
    assert caught.value.rule == ("SE-041" if count == 10**9 else "SE-055")
    assert wrap(Chips(-5)).device_count() == 0


def test_exceptions_become_typed_errors_with_their_cause():
    class Broken(Chips):
        def device_count(self):
            raise ZeroDivisionError("oops")

    with pytest.raises(InternalError, match=r"device_count.* raised ZeroDivisionError") as caught:
        wrap(Broken()).device_count()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_own_typed_errors_pass():
    class Full(Chips):
        def device_details(self, ordinal):
            raise ResourceExhaustedError("no handle left")

    with pytest.raises(ResourceExhaustedError, match="no handle left"):
        wrap(Full()).device_details(0)


@pytest.mark.parametrize(
    ("details", "text"),
    [
        ({"speed": 3}, "unknown device detail 'speed'"),
        ({"vendor": 3}, "vendor is 3"),
        ({"numa_node": "0"}, "numa_node is '0'"),
        ({"numa_node": 1.5}, "numa_node is 1.5"),
        ({"gflops": True}, "gflops is True"),
        ([1], "expected a mapping"),
        (None, "expected a mapping"),
    ],
)
def test_wrong_details(details, text):
    chips = Chips()
    chips.details = details
    with pytest.raises(InternalError, match=text) as caught:
        wrap(chips).device_details(0)
    assert caught.value.rule == "SE-055"


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), None])
def test_numbers_that_are_none(value):
    assert wrap(Chips(details={"gflops": value})).device_details(0).gflops is None


def test_no_details_outside_the_count():
    chips = Chips()
    for ordinal in (-1, 2):
        with pytest.raises(NotFoundError, match="has 2 devices"):
            wrap(chips).device_details(ordinal)
    assert chips.asked == []
