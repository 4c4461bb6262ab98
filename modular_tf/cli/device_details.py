"""The details of a device as JSON, also for a device that does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.errors import DeadlineExceededError

if TYPE_CHECKING:
    from modular_tf.cli.time_limit import TimeLimit
    from modular_tf.device.device import Device

_PROMISED = ("name", "device_type", "platform", "ordinal", "priority", "plugin")
_ASKED = (
    "hardware_name", "vendor", "pci_bus_id", "numa_node", "memory_bandwidth", "gflops", "error",
    "memory_free", "memory_total", "streams",
)  # fmt: skip


def described(device: Device, limit: TimeLimit) -> dict[str, Any]:
    """Return a device's details as values of JSON."""
    try:
        return limit.call(f"{device.name}: the look at its details", device.to_dict)
    except DeadlineExceededError as error:
        return without_details(device, error.message)


def without_details(device: Device, why: str) -> dict[str, Any]:
    """Return the same for a device that does not answer."""
    promised = {field: getattr(device, field) for field in _PROMISED}
    return promised | dict.fromkeys(_ASKED) | {"error": why}
