"""The details of a device: hardware, vendor, bus, bandwidth."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from modular_tf.errors import InternalError
from modular_tf.rules.device import PYTHON_FACTORY_RETURNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.rules import Violation

_TEXTS = ("hardware_name", "vendor", "pci_bus_id")
_NUMBERS = ("numa_node", "memory_bandwidth", "gflops")


@dataclass(frozen=True, slots=True)
class DeviceDetails:
    """The details of one device; None where the device does not know.

    Attributes:
        hardware_name: For people.
        vendor: For people.
        pci_bus_id: As "0000:00:02.1".
        numa_node: The NUMA node next to the device.
        memory_bandwidth: Bytes per second, of the device's own memory.
        gflops: 1e9 floating point operations per second.
        warnings: Rules that were broken while asking.
    """

    hardware_name: str | None = None
    vendor: str | None = None
    pci_bus_id: str | None = None
    numa_node: int | None = None
    memory_bandwidth: int | None = None
    gflops: float | None = None
    warnings: tuple[Violation, ...] = ()

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> DeviceDetails:
        """Return the details in a mapping of a Python factory; missing keys are unknown.

        Raises:
            InternalError: A key does not exist, or a value has the wrong type (rule SE-055).
        """
        checked: dict[str, object] = {}
        for key, value in values.items():
            if key not in _TEXTS and key not in _NUMBERS:
                known = ", ".join(_TEXTS + _NUMBERS)
                raise InternalError(
                    f"unknown device detail {key!r}; known: {known}", rule=PYTHON_FACTORY_RETURNS
                )
            checked[key] = _text(key, value) if key in _TEXTS else _number(key, value)
        return cls(**checked)  # type: ignore[arg-type]  # checked key by key

    def as_dict(self) -> dict[str, str | int | float | None]:
        """Return the details by name, without the warnings."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "warnings"
        }


def known_or_none(value: float) -> float | None:
    """Return a number that a device gave, None for "not known": negative, infinite or no number."""
    return value if math.isfinite(value) and value >= 0 else None


def _text(key: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    raise InternalError(
        f"device detail {key} is {value!r}, expected text or None", rule=PYTHON_FACTORY_RETURNS
    )


def _number(key: str, value: object) -> float | None:
    if value is None:
        return None
    real = isinstance(value, float) and key == "gflops"
    if real or (isinstance(value, int) and not isinstance(value, bool)):
        return known_or_none(value)  # type: ignore[arg-type]  # an int or a float, as just checked
    raise InternalError(
        f"device detail {key} is {value!r}, expected a number", rule=PYTHON_FACTORY_RETURNS
    )
