"""The ranking of factories: which one serves a device type, and why the others do not."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.rules import Violation
from modular_tf.rules.device import DEVICE_TYPE_ENABLED, HIGHEST_PRIORITY, PRIORITIES_DIFFER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.device.factory import DeviceFactory


class FactoryState(Enum):
    """The state of a registered factory."""

    SERVING = "serving"
    SHADOWED = "shadowed"
    DISABLED = "disabled"


class Registration:
    """One registered device factory."""

    __slots__ = ("factory", "is_over", "plugin", "priority")

    def __init__(self, factory: DeviceFactory, plugin: str, priority: int) -> None:
        self.factory = factory  # what brings the devices; a deferred one until that is loaded
        self.plugin = plugin
        self.priority = priority  # as configured, else the factory's own
        self.is_over = False  # it was taken out, for good; set by the registry

    @property
    def label(self) -> str:
        """The name in messages."""
        return f"{self.plugin} (platform {self.factory.platform}, priority {self.priority})"


class FactoryStatus(NamedTuple):
    """The state of one registered factory, and the reason unless it serves."""

    registration: Registration
    state: FactoryState
    reason: Violation | None = None


def rank(
    registrations: Iterable[Registration], enabled_types: frozenset[str] | None
) -> list[FactoryStatus]:
    """Return the status of each factory, in the same order: whether it serves.

    For one type the highest priority serves; of equal ones the first, where TensorFlow aborts.
    Registrations are in order of their arrival; `enabled_types` may serve, None for all.
    """
    arrived = list(registrations)
    winners: dict[str, Registration] = {}
    for registration in arrived:
        best = winners.setdefault(registration.factory.device_type, registration)
        if registration.priority > best.priority:
            winners[registration.factory.device_type] = registration
    return [_status(entry, winners, enabled_types) for entry in arrived]


def _status(
    registration: Registration,
    winners: dict[str, Registration],
    enabled_types: frozenset[str] | None,
) -> FactoryStatus:
    device_type = registration.factory.device_type
    winner = winners[device_type]
    if enabled_types is not None and device_type not in enabled_types:
        found = ",".join(sorted(enabled_types))
        text = f"device type {device_type} is not among TF_ENABLED_DEVICE_TYPES={found}"
        return FactoryStatus(
            registration, FactoryState.DISABLED, Violation(DEVICE_TYPE_ENABLED, text)
        )
    if winner is registration:
        return FactoryStatus(registration, FactoryState.SERVING)
    tie = winner.priority == registration.priority
    relation = "was registered first" if tie else "has the higher priority"
    text = f"device type {device_type}: {winner.label} {relation}, not {registration.label}"
    reason = Violation(PRIORITIES_DIFFER if tie else HIGHEST_PRIORITY, text)
    return FactoryStatus(registration, FactoryState.SHADOWED, reason)
