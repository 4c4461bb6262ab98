"""What became of a plugin: the state that follows from its stages, and what others took from it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.device.ranking import FactoryState
from modular_tf.errors import ModularTFError
from modular_tf.rules import Violation
from modular_tf.rules.filesystem import SCHEME_FREE, scheme_taken
from modular_tf.service.report import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from modular_tf.device.registry import DeviceRegistry
    from modular_tf.filesystem.registry import Registered
    from modular_tf.first_contact.finding import Finding
    from modular_tf.service.report import PluginRecord

_STATES = {FactoryState.SHADOWED: State.SHADOWED, FactoryState.DISABLED: State.DISABLED}


class Outcome(NamedTuple):
    """What the registration of a plugin, or of an object of Python code, came to."""

    schemes: tuple[str, ...] = ()  # that it registered
    device_types: tuple[str, ...] = ()  # that it registered
    reasons: tuple[Violation, ...] = ()  # why it, or a part of it, does not serve
    warnings: tuple[Violation, ...] = ()  # rules that it broke without being refused
    finding: Finding | None = None  # of loading the library; None while it is not mapped
    kernels: int = 0  # how many it registered, or will when it is mapped
    ops: int = 0  # how many operations of its own it defines, or will when it is mapped


class Lost(NamedTuple):
    """What was registered and does not serve now."""

    schemes: tuple[str, ...] = ()  # registered anew by others with `replace=True`
    # the state of devices that do not serve or cannot be counted; None where they do
    devices: State | None = None
    reasons: tuple[Violation, ...] = ()  # why each of them does not serve


NOTHING_LOST = Lost()


def state_of(ended: State | None, outcome: Outcome | None, lost: Lost = NOTHING_LOST) -> State:
    """Return the state of a plugin; nothing else decides it."""
    if ended is not None:
        return ended
    if outcome is None:
        return State.FOUND
    if outcome.reasons and not (outcome.schemes or outcome.device_types or outcome.kernels):
        is_shadowed = all(reason.rule == SCHEME_FREE for reason in outcome.reasons)
        return State.SHADOWED if is_shadowed else State.FAILED
    if lost is NOTHING_LOST or outcome.kernels or not set(outcome.schemes).issubset(lost.schemes):
        return State.LOADED
    if outcome.device_types:
        return lost.devices or State.LOADED
    return State.SHADOWED if lost.reasons else State.LOADED


def without(record: PluginRecord, lost: Lost) -> PluginRecord:
    """Return the record of a plugin that has lost something since it registered that."""
    if lost is NOTHING_LOST or record.state is State.FOUND:  # which registers just now
        return record
    registered = Outcome(record.schemes, record.device_types, kernels=record.kernels)
    serves_devices = lost.devices in (None, State.LOADED)
    return record._replace(
        state=state_of(None, registered, lost),
        schemes=tuple(scheme for scheme in record.schemes if scheme not in lost.schemes),
        device_types=record.device_types if serves_devices else (),
        reasons=(*record.reasons, *lost.reasons),
    )


def lost_schemes(
    name: str, filesystems: Mapping[str, Registered], serving: Mapping[str, Registered]
) -> Lost:
    """Return what a plugin has lost of its schemes.

    What another library of the same plugin serves, during a reload or from its first use on, is
    not lost.
    """
    lost = [
        scheme
        for scheme, own in filesystems.items()
        if (winner := serving.get(scheme)) is not own and (winner is None or winner.plugin != name)
    ]
    if not lost:
        return NOTHING_LOST
    taken = [_taken(scheme, name, serving[scheme]) for scheme in lost if scheme in serving]
    return Lost(schemes=(*lost,), reasons=(*taken,))


def _taken(scheme: str, loser: str, winner: Registered) -> Violation:
    return scheme_taken(scheme, loser, winner.plugin, "was taken over by").at("register")


def lost_devices(devices: DeviceRegistry) -> dict[str, Lost]:
    """Return which plugins' devices do not serve or cannot be counted, by the plugin's name."""
    return dict(_lost_devices(devices))


def _lost_devices(devices: DeviceRegistry) -> Iterator[tuple[str, Lost]]:
    for status in devices.factories():
        if status.reason is not None:
            reason = status.reason.at("register")
            lost = Lost(devices=_STATES[status.state], reasons=(reason,))
            yield status.registration.plugin, lost
    with suppress(ModularTFError):  # a bad choice of visible devices; devices() raises it
        for problem in devices.listing(load_deferred=False).problems:
            reason = Violation.of_error(problem.error, "list")
            yield problem.registration.plugin, Lost(devices=State.LOADED, reasons=(reason,))
