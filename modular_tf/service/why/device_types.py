"""Facts about a device type or a device: its plugin, competing plugins, what decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.device.names import parse_device_name
from modular_tf.errors import InvalidArgumentError, ModularTFError
from modular_tf.service.why.answer import ABSENT, STATE, Fact
from modular_tf.service.why.conflicts import count_of, factories_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.device.names import DeviceName
    from modular_tf.device.ranking import FactoryStatus
    from modular_tf.service.service import PluginService


def about_device(service: PluginService, name: str) -> Iterator[Fact]:
    """Yield facts about a device type, or a device in any form of its name."""
    asked = _device(name)
    device_type = asked.device_type if asked is not None else name
    statuses = factories_of(service, device_type)
    if not statuses:
        return
    if asked is not None:
        yield from _numbered(service, name)
    yield from _type(service, device_type, statuses, told=STATE if asked is None else "serves")


def _device(name: str) -> DeviceName | None:
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
