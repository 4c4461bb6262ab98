"""Plugins that compete for a scheme or a device type."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.device.deferred import DeferredFactory
from modular_tf.device.ranking import FactoryState
from modular_tf.errors import ModularTFError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.device.ranking import FactoryStatus
    from modular_tf.rules import Violation
    from modular_tf.service.report import PluginRecord
    from modular_tf.service.service import PluginService


def refused_scheme(
    service: PluginService, scheme: str, owner: str | None
) -> Iterator[tuple[PluginRecord, Violation]]:
    """Yield the plugins besides its owner that did not get a scheme, and why."""
    for record in service.plugins():
        for reason in record.reasons:
            if record.name != owner and reason.scheme == scheme:
                yield record, reason


def count_of(status: FactoryStatus) -> int | None:
    """Return how many devices a factory has; None where it is not loaded, or cannot tell."""
    with suppress(ModularTFError):
        return status.registration.factory.device_count()
    return None


def is_deferred(status: FactoryStatus) -> bool:
    """Return whether a factory is loaded at its first use only."""
    return isinstance(status.registration.factory, DeferredFactory)


def factories_of(service: PluginService, device_type: str) -> list[FactoryStatus]:
    """Return the factories of a device type, the one that serves first."""
    statuses = [
        status
        for status in service.device_registry.factories()
        if status.registration.factory.device_type == device_type
    ]
    return sorted(statuses, key=lambda status: status.state is not FactoryState.SERVING)
