"""Facts about what plugins serve: schemes, device types, devices and operations."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from modular_tf.device.names import parse_device_name
from modular_tf.errors import InvalidArgumentError, ModularTFError
from modular_tf.service.report import PYTHON_SOURCE, State
from modular_tf.service.why.answer import ABSENT, STATE, Fact
from modular_tf.service.why.plugins import count_of, factories_of, outcome, refused_scheme

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.device.names import DeviceName
    from modular_tf.device.ranking import FactoryStatus
    from modular_tf.kernel.registry import KernelRegistry
    from modular_tf.service.service import PluginService

_OP_NAME = re.compile(r"[A-Z_][A-Za-z0-9_>]*")


def about_scheme(service: PluginService, scheme: str) -> Iterator[Fact]:
    """Yield facts about a scheme ("" for local paths); none if no plugin knows it.

    It is known as soon as a plugin brought it, whether that serves it or not.
    """
    subject = f"scheme {scheme!r}"
    owner = service.owner(scheme)
    contest = list(refused_scheme(service, scheme, owner))
    pinned = service.config.scheme_pins.get(scheme)
    if owner is not None:
        is_fallback = service.is_fallback(scheme)
        served = f"{subject} is served by {owner}"
        yield Fact(subject, STATE, service.fallback_sentence(scheme) if is_fallback else served)
        yield from (outcome(subject, "serves", r) for r in service.plugins() if r.name == owner)
        problem, remedy = service.foreseen_problem(scheme)
        if problem:
            yield Fact(subject, "problem", problem, None, remedy)
    elif contest:
        yield Fact(subject, STATE, f"{subject} is not served, though a plugin offers it")
        if step := service.next_step(scheme):
            yield Fact(subject, "next", step)
    for record, reason in contest:
        yield Fact.of(subject, reason, "contest", prefix=record.name)
    if pinned is not None:
        yield _pin(service, subject, pinned, owner)
    elif owner is not None and contest:
        yield Fact(subject, "next", f"to choose another: scheme_pins = {{ {scheme!r} = NAME }}")


def _pin(service: PluginService, subject: str, pinned: str, owner: str | None) -> Fact:
    where = f"pinned to {pinned!r} in {service.config.origin}"
    if owner == pinned:
        return Fact(subject, "contest", where)
    states = {record.name: record for record in service.plugins()}
    if pinned not in states:
        return Fact(
            subject, "contest", f"{where}, and there is no plugin of that name", None,
            "Name a plugin as `modular-tf list` does, or take the pin away.",
        )  # fmt: skip
    record = states[pinned]
    if record.source == PYTHON_SOURCE or record.state is State.LOADED:
        return Fact(subject, "contest", f"{where}, which does not offer it")
    return Fact(subject, "contest", f"{where}, which is {record.state}")


# -- devices ---------------------------------------------------------------------------------------


def about_device(service: PluginService, name: str) -> Iterator[Fact]:
    """Yield facts about a device type, or a device in any form of its name."""
    asked = device_named(name)
    device_type = asked.device_type if asked is not None else name
    statuses = factories_of(service, device_type)
    if not statuses:
        return
    if asked is not None:
        yield from _numbered(service, name)
    yield from _type(service, device_type, statuses, told=STATE if asked is None else "serves")


def device_named(name: str) -> DeviceName | None:
    """Return the parts of a device's name, None for another name."""
    try:
        return parse_device_name(name)
    except InvalidArgumentError:
        return None


def _numbered(service: PluginService, name: str) -> Iterator[Fact]:
    subject = f"device {name}"
    try:
        device = service.device(name)
    except ModularTFError as error:
        yield Fact(subject, ABSENT, error.message, error.rule)
    else:
        yield Fact(subject, STATE, f"{subject} is {device.name}, served by {device.plugin}")
        return
    if service.config.visible_devices:
        chosen = ", ".join(service.config.visible_devices)
        text = f"`visible_devices` in {service.config.origin} chooses {chosen}"
        yield Fact(subject, "contest", text)


def _type(
    service: PluginService, device_type: str, statuses: list[FactoryStatus], *, told: str
) -> Iterator[Fact]:
    subject = f"device type {device_type}"
    for status in statuses:
        told_as = told if status is statuses[0] else "contest"
        text = f"{subject}: {status.registration.label} is {status.state.value}"
        reason = status.reason
        if reason is None:
            without = ", but has no device here" if count_of(status) == 0 else ""
            yield Fact(subject, told_as, text + without)
        else:
            yield Fact.of(subject, reason, told_as, prefix=text)
    for key, priority in service.config.priorities.items():
        if key.partition(":")[0] == device_type:
            text = f"priority {priority} for {key} is set in {service.config.origin}"
            yield Fact(subject, "contest", text)


# -- operations ------------------------------------------------------------------------------------


def may_be_op(name: str) -> bool:
    """Return whether a name has an operation's form; in capitals it must be a standard one."""
    if _OP_NAME.fullmatch(name) is None:
        return False
    if not name.isupper():
        return True
    from modular_tf.kernel.standard_ops import standard_ops  # noqa: PLC0415  (for operations)

    return name in standard_ops()


def about_op(service: PluginService, name: str) -> Iterator[Fact]:
    """Yield facts about an operation; none if nobody defines it or has a kernel of it.

    Libraries that bring kernels are mapped where the name has the form of an operation's.
    """
    if not may_be_op(name):
        return
    from modular_tf.kernel.aliases import aliases_of, computed_by  # noqa: PLC0415  (for operations)

    registry = service.kernel_registry
    definition = registry.find_definition(name)
    aliases = [alias.own for alias in aliases_of(name)]
    kernels = [each for op in (name, *aliases) for each in registry.kernels_of(op)]
    if definition is None and not kernels:
        return
    subject = f"operation {name}"
    yield Fact(subject, STATE, f"{subject} {_computed(len(kernels))}")
    yield from _sources(subject, registry, name)
    for op in (name, *aliases):
        yield from _kernels(subject, service, registry, op, name)
    for standard in computed_by(name):
        yield Fact(subject, "serves", f"its kernels compute {standard} as well")
    yield _next(subject, name, has_kernels=bool(kernels))


def _computed(n_kernels: int) -> str:
    if not n_kernels:
        return "is computed by no kernel of a loaded plugin"
    return "is computed by 1 kernel" if n_kernels == 1 else f"is computed by {n_kernels} kernels"


def _sources(subject: str, registry: KernelRegistry, name: str) -> Iterator[Fact]:
    """Yield who defines it; the first one counts."""
    used = registry.find_definition(name)
    if used is None:
        yield Fact(subject, "problem", "nobody defines it, so its kernels cannot run")
        return
    yield Fact(subject, "source", f"defined by {used.source}: {used!r}")
    for other in registry.plugin_definitions():
        if other.name == name and other is not used:
            alike = "in the same way" if other == used else "in another way, which is not used"
            yield Fact(subject, "contest", f"{other.source} defines it too, {alike}")


def _kernels(
    subject: str, service: PluginService, registry: KernelRegistry, op: str, name: str
) -> Iterator[Fact]:
    """Yield how many kernels each plugin has for a type of devices, and which devices these are."""
    from modular_tf.kernel.selection import device_types_of  # noqa: PLC0415  (for operations)

    counts = Counter((each.plugin, each.device_type) for each in registry.kernels_of(op))
    devices = service.devices() if counts else []
    for (plugin, device_type), count in counts.items():
        served = [
            device.name
            for device in devices
            if device_type in device_types_of(device.device_type, is_pluggable=not device.is_host)
        ]
        kernels = "1 kernel" if count == 1 else f"{count} kernels"
        where = ", ".join(served) or "no visible device"
        under = f", under the name {op}" if op != name else ""
        text = f"{kernels} of {plugin} for device type {device_type} ({where}){under}"
        yield Fact(subject, "serves", text)


def _next(subject: str, name: str, *, has_kernels: bool) -> Fact:
    if has_kernels:
        return Fact(subject, "next", f"`modular-tf ops {name}` shows its attributes and kernels")
    return Fact(subject, "next", "load a plugin that has kernels of it; `modular-tf ops` lists all")
