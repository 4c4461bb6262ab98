"""Checks of what a device says of itself."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from modular_tf.check.check import RAW, CheckList
from modular_tf.check.expectation import Unsupported, expect, expect_equal
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround

CHECKS = CheckList("device", "facts")

_BUS_ID = re.compile(r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_MOST_NODES = 1024  # what kernels are built for
_LEAST_BANDWIDTH = 1_000_000
_MOST_BANDWIDTH = 10**15
_SURROGATES = re.compile("[\udc80-\udcff]")


@CHECKS.check("SE-124", Level.WORKS)
def texts_are_text(ground: DeviceGround) -> None:
    """Tried on those that the plugin gives."""
    facts = ground.subject.facts()
    for name in ("hardware_name", "vendor", "pci_bus_id"):
        text = getattr(facts, name) or ""
        expect(
            text.isprintable() and not _SURROGATES.search(text),
            f"the device's {name} is no printable text",
            expected="UTF-8 without control characters",
            found=ascii(text),
        )


@CHECKS.check("SE-125", Level.WORKS)
def bus_id_has_its_form(ground: DeviceGround) -> None:
    """Tried where the plugin gives one."""
    bus_id = ground.subject.facts().pci_bus_id
    if not bus_id:
        raise Unsupported("the device has no PCI bus id")
    expect(
        _BUS_ID.fullmatch(bus_id),
        "the PCI bus id has another form",
        expected="such as 0000:00:02.1",
        found=bus_id,
    )


@CHECKS.check("SE-126", Level.WORKS, passes=RAW, needs=("get_numa_node",))
def numa_node_is_one(ground: DeviceGround) -> None:
    """Tried once; a negative number is accepted."""
    node = ground.subject.facts().numa_node
    expect(
        node is None or node < _MOST_NODES,
        "the NUMA node is out of range",
        expected=f"less than {_MOST_NODES}",
        found=str(node),
    )


@CHECKS.check("SE-127", Level.WORKS, passes=RAW, needs=("get_memory_bandwidth",))
def bandwidth_is_one(ground: DeviceGround) -> None:
    """Tried once; a negative number is accepted."""
    found = ground.subject.facts().memory_bandwidth
    expect(
        found is None or found < 0 or _LEAST_BANDWIDTH <= found <= _MOST_BANDWIDTH,
        "the memory bandwidth is out of range",
        expected=f"{_LEAST_BANDWIDTH} to {_MOST_BANDWIDTH} bytes per second, or negative",
        found=str(found),
    )


@CHECKS.check("SE-128", Level.WORKS, passes=RAW, needs=("get_gflops",))
def gflops_are_some(ground: DeviceGround) -> None:
    """Tried once; a negative number is accepted."""
    found = ground.subject.facts().gflops
    expect(
        found is None or (math.isfinite(found) and found != 0),
        "the GFLOPS are out of range",
        expected="a finite number that is not 0",
        found=str(found),
    )


@CHECKS.check("SE-129", Level.WORKS)
def facts_stay(ground: DeviceGround) -> None:
    """Asked twice, with work in between."""
    before = ground.subject.facts()
    ground.memory()
    expect_equal(ground.subject.facts(), before, "what the device says of itself")
