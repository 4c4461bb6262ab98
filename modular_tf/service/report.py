"""What became of each plugin, as values that can be shown, compared and serialised."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.device.registry import FactoryState
from modular_tf.errors import ModularTFError
from modular_tf.rules import Violation
from modular_tf.rules.filesystem import SCHEME_FREE, scheme_taken

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.device.registry import DeviceRegistry
    from modular_tf.discovery.sources.search_log import SearchedPlace
    from modular_tf.filesystem.registry import Registered
    from modular_tf.first_contact.finding import Finding

PYTHON_SOURCE = "python"
"""The source of filesystems and devices that Python code registered."""
CONFIGURATION_SOURCE = "configuration"
"""The source of filesystems that `[filesystems]` of the configuration names."""


class State(Enum):
    """What became of a plugin."""

    FOUND = "found"
    REJECTED = "rejected"
    DISABLED = "disabled"
    SHADOWED = "shadowed"
    LOADED = "loaded"
    FAILED = "failed"
    QUARANTINED = "quarantined"

    def __str__(self) -> str:
        return self.value


class Decision(NamedTuple):
    """One step of the processing of a plugin, passed or refused.

    Attributes:
        stage: As a violation's.
        passed: Whether the plugin went on.
        rule: Id of the rule that decided, None where no single one did.
        text: What was decided and why, one sentence without a full stop.
    """

    stage: str
    passed: bool
    rule: str | None
    text: str

    def as_dict(self) -> dict[str, str | bool | None]:
        """Return it as JSON knows it."""
        return {
            "stage": self.stage,
            "passed": self.passed,
            "rule": self.rule,
            "text": self.text,
        }


class PluginRecord(NamedTuple):
    """One plugin, as it is now.

    Attributes:
        name: Short name, unique in a service.
        path: Its file; None for what Python code registered.
        source: What found it.
        kinds: What it brings.
        state: What became of it.
        schemes: URI schemes that it serves.
        device_types: Device types that it serves.
        reason: Why it does not serve, or the first of several; None where all is well.
        reasons: All of them.
        warnings: Rules that it broke without being refused.
        decisions: The steps that were decided, in order.
        kernels: How many kernels it brings.
        ops: How many operations of its own it defines.
        distribution: Name and version of the distribution that brings it, if known.
    """

    name: str
    path: str | None
    source: str
    kinds: tuple[str, ...] = ()
    state: State = State.FOUND
    schemes: tuple[str, ...] = ()
    device_types: tuple[str, ...] = ()
    reasons: tuple[Violation, ...] = ()
    warnings: tuple[Violation, ...] = ()
    decisions: tuple[Decision, ...] = ()
    kernels: int = 0
    ops: int = 0
    distribution: str | None = None

    @property
    def where(self) -> str:
        """Its file, or who named it where it has none."""
        is_configured = self.source == CONFIGURATION_SOURCE
        unnamed = "named by the configuration" if is_configured else "registered by Python code"
        return self.path or unnamed

    @property
    def reason(self) -> Violation | None:
        """The first reason."""
        return self.reasons[0] if self.reasons else None

    def as_dict(self) -> dict[str, Any]:
        """Return it as `list --json` prints it."""
        return {
            "name": self.name,
            "path": self.path,
            "source": self.source,
            "distribution": self.distribution,
            "kinds": list(self.kinds),
            "state": self.state._value_,  # `value` takes three calls
            "schemes": list(self.schemes),
            "device_types": list(self.device_types),
            "kernels": self.kernels,
            "ops": self.ops,
            "reason": self.reason.as_dict() if self.reason else None,
        }


class HookFunction(NamedTuple):
    """One function that an installed package or the application has for a hook.

    Attributes:
        hook: The hook's name.
        implementation: Who has it: the distribution with its entry point, or the object's name.
        order: "tryfirst" or "trylast" where the function asks for that; None for neither.
        wrapper: Whether it is called round the functions of others, and may replace their answers.
    """

    hook: str
    implementation: str
    order: str | None
    wrapper: bool

    def as_dict(self) -> dict[str, Any]:
        """Return it as `paths --json` prints it."""
        return self._asdict()


@dataclass(frozen=True, slots=True)
class Report:
    """What a service knows after a step.

    Attributes:
        plugins: One record per plugin, in order of precedence.
        problems: What went wrong while searching.
        searched: The places that were looked at.
        hook_failures: What went wrong in hooks that installed packages or the application bring;
            of many failures the first hundred, each once.
        hooks: The functions of hooks that were found, in the order in which they are called.
    """

    plugins: tuple[PluginRecord, ...]
    problems: tuple[Violation, ...]
    searched: tuple[SearchedPlace, ...]
    hook_failures: tuple[Violation, ...] = ()
    hooks: tuple[HookFunction, ...] = ()

    def __getitem__(self, name: str) -> PluginRecord:
        for record in self.plugins:
            if record.name == name:
                return record
        raise KeyError(name)


class ChangeKind(Enum):
    """What happened to a plugin's file."""

    APPEARED = "appeared"
    REPLACED = "replaced"
    REMOVED = "removed"

    def __str__(self) -> str:
        return self.value


class PluginChange(NamedTuple):
    """One change that a service took note of.

    Attributes:
        kind: What happened to the file.
        path: The file.
        plugin: The plugin's name.
        record: The plugin as it is now; of a removed one, as it was last.
        refusal: Why the new file does not serve and the library before it goes on; None where
            that did not happen.
    """

    kind: ChangeKind
    path: str
    plugin: str
    record: PluginRecord
    refusal: Violation | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            "change": self.kind.value,
            "path": self.path,
            "plugin": self.plugin,
            "state": self.record.state.value,
            "schemes": list(self.record.schemes),
            "device_types": list(self.record.device_types),
            "reason": self.record.reason.as_dict() if self.record.reason else None,
            "refusal": self.refusal.as_dict() if self.refusal else None,
        }


# -- what became of a plugin -----------------------------------------------------------------------


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
    taken = [
        scheme_taken(scheme, name, serving[scheme].plugin, "was taken over by").at("register")
        for scheme in lost
        if scheme in serving
    ]
    return Lost(schemes=(*lost,), reasons=(*taken,))


def lost_devices(devices: DeviceRegistry) -> dict[str, Lost]:
    """Return which plugins' devices do not serve or cannot be counted, by the plugin's name."""
    found = {}
    for status in devices.factories():
        if status.reason is not None:
            reason = status.reason.at("register")
            lost = Lost(devices=_STATES[status.state], reasons=(reason,))
            found[status.registration.plugin] = lost
    with suppress(ModularTFError):  # a bad choice of visible devices; devices() raises it
        for problem in devices.listing(load_deferred=False).problems:
            reason = Violation.of_error(problem.error, "list")
            lost = Lost(devices=State.LOADED, reasons=(reason,))
            found[problem.registration.plugin] = lost
    return found
