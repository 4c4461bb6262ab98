"""Checks of what a device says of itself."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from modular_tf.check.check import RAW, WARNING, Suite
from modular_tf.check.expectation import Unsupported, expect, expect_equal

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround

suite = Suite("device", "facts", source="device.h")

_BUS_ID = re.compile(r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_MOST_NODES = 1024  # what kernels are built for
_LEAST_BANDWIDTH = 1_000_000
_MOST_BANDWIDTH = 10**15
_SURROGATES = re.compile("[\udc80-\udcff]")


@suite.check("SE-124", severity=WARNING)
def texts_are_text(device: DeviceGround) -> None:
    """Hardware name, vendor and bus id are UTF-8, without control characters.

    Otherwise: They cannot be shown, nor written to JSON or logs as they are.
    Remedy: Encode them as UTF-8, and end them where the hardware's own buffer has blanks or NULs.
    """
    facts = device.subject.facts()
    for name in ("hardware_name", "vendor", "pci_bus_id"):
        text = getattr(facts, name) or ""
        expect(
            text.isprintable() and not _SURROGATES.search(text),
            f"the device's {name} is no printable text",
            expected="UTF-8 without control characters",
            found=ascii(text),
        )


@suite.check("SE-125", severity=WARNING)
def bus_id_has_its_form(device: DeviceGround) -> None:
    """The PCI bus id looks like 0000:00:02.1, or is not given.

    Otherwise: The NUMA node and the driver of the device cannot be found by it.
    Remedy: Write domain:bus:device.function in hexadecimal, or leave it NULL.
    """
    bus_id = device.subject.facts().pci_bus_id
    if not bus_id:
        raise Unsupported("the device has no PCI bus id")
    expect(
        _BUS_ID.fullmatch(bus_id),
        "the PCI bus id has another form",
        expected="such as 0000:00:02.1",
        found=bus_id,
    )


@suite.check("SE-126", "get_numa_node", ways=RAW, severity=WARNING)
def numa_node_is_one(device: DeviceGround) -> None:
    """The NUMA node is negative, or the number of a node.

    Otherwise: Threads and memory are bound to a node that is not there.
    Remedy: Return a negative number for what is not known.
    """
    node = device.subject.facts().numa_node
    expect(
        node is None or node < _MOST_NODES,
        "the NUMA node is out of range",
        expected=f"less than {_MOST_NODES}",
        found=str(node),
    )


@suite.check("SE-127", "get_memory_bandwidth", ways=RAW, severity=WARNING)
def bandwidth_is_one(device: DeviceGround) -> None:
    """The memory bandwidth is negative, or a number of bytes per second.

    Otherwise: Lists of devices, and who chooses a device by them, are misled.
    Remedy: The unit is bytes per second. Return a negative number for what is not known.
    """
    found = device.subject.facts().memory_bandwidth
    expect(
        found is None or found < 0 or _LEAST_BANDWIDTH <= found <= _MOST_BANDWIDTH,
        "the memory bandwidth is out of range",
        expected=f"{_LEAST_BANDWIDTH} to {_MOST_BANDWIDTH} bytes per second, or negative",
        found=str(found),
    )


@suite.check("SE-128", "get_gflops", ways=RAW, severity=WARNING)
def gflops_are_some(device: DeviceGround) -> None:
    """The GFLOPS are negative, or a finite number above 0.

    Otherwise: Lists of devices, and who chooses a device by them, are misled.
    Remedy: The unit is 1e9 operations per second. Return a negative number for what is not known.
    """
    found = device.subject.facts().gflops
    expect(
        found is None or (math.isfinite(found) and found != 0),
        "the GFLOPS are out of range",
        expected="a finite number that is not 0",
        found=str(found),
    )


@suite.check("SE-129", severity=WARNING)
def facts_stay(device: DeviceGround) -> None:
    """What a device says of itself does not change.

    Otherwise: Hosts ask once or often: two of them see two devices.
    Remedy: Find the facts out once, in create_device.
    """
    before = device.subject.facts()
    device.memory()
    expect_equal(device.subject.facts(), before, "what the device says of itself")
