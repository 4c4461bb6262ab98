"""What became of the devices of each plugin, told where they do not serve."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.device.ranking import FactoryState
from modular_tf.errors import ModularTFError
from modular_tf.rules import Violation
from modular_tf.service.report import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from modular_tf.device.registry import DeviceRegistry
    from modular_tf.service.report import PluginRecord

_STATES = {FactoryState.SHADOWED: State.SHADOWED, FactoryState.DISABLED: State.DISABLED}


def with_device_outcomes(
    records: Iterable[PluginRecord], devices: DeviceRegistry
) -> list[PluginRecord]:
    """Return the records, with a reason where a plugin's devices do not serve.

    Args:
        records: What each plugin registered.
        devices: Where their factories were registered; those that are loaded are asked for their
            counts.
    """
    outcomes = dict(_outcomes(devices))
    return [
        _with_outcome(record, *outcomes[record.name]) if record.name in outcomes else record
        for record in records
    ]


def _outcomes(devices: DeviceRegistry) -> Iterator[tuple[str, tuple[State, Violation]]]:
    """Yield the plugins whose devices do not serve or cannot be counted, and why."""
    for status in devices.factories():
        if status.reason is not None:
            reason = status.reason.at("register")
            yield status.registration.plugin, (_STATES[status.state], reason)
    with suppress(ModularTFError):  # a bad choice of visible devices; devices() raises it
        for problem in devices.listing(load_deferred=False).problems:
            reason = Violation.of_error(problem.error, "list")
            yield problem.registration.plugin, (State.LOADED, reason)


def _with_outcome(record: PluginRecord, state: State, reason: Violation) -> PluginRecord:
    kept = State.LOADED if record.schemes else state
    types = record.device_types if state is State.LOADED else ()
    return record._replace(state=kept, device_types=types, reasons=(*record.reasons, reason))
