"""Why a name serves, does not serve, or is not there: one answer for people and programs."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.device.names import parse_device_name
from modular_tf.device.ranking import FactoryState
from modular_tf.errors import InvalidArgumentError, NotFoundError
from modular_tf.filesystem.scheme import scheme_of
from modular_tf.loading.known_packages import package_for
from modular_tf.report import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.device.ranking import FactoryStatus
    from modular_tf.report import PluginRecord
    from modular_tf.service import PluginService


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer to `why NAME`.

    Attributes:
        name: What was asked for.
        known: Whether anything goes by that name.
        lines: The answer, one fact a line, the decisive one first.
    """

    name: str
    known: bool
    lines: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {"name": self.name, "known": self.known, "lines": list(self.lines)}


def explain(service: PluginService, name: str) -> Explanation:
    """Explain a plugin, a file, a scheme, a URI's scheme or a device type, present or absent.

    Plugins are searched for if they were not yet, and a file that nobody found is looked at;
    nothing is loaded.
    """
    _look_for(service, name)
    scheme = scheme_of(name) or name
    found = [
        *_plugins(service, name),
        *_scheme(service, scheme),
        *_device_type(service, _type_in(name)),
    ]
    if found:
        return Explanation(name, known=True, lines=tuple(found))
    return Explanation(name, known=False, lines=tuple(_absent(service, scheme)))


def _look_for(service: PluginService, name: str) -> None:
    if not service.report().searched:
        service.discover()
    if os.sep in name:
        with suppress(NotFoundError):
            service.entry(name)


def _plugins(service: PluginService, name: str) -> Iterator[str]:
    real = _real_path(name)
    for record in service.plugins():
        path = record.path
        if name == record.name or (path and real == os.path.realpath(path)):
            yield from _plugin(service, record)


def _real_path(name: str) -> str:
    try:
        return os.path.realpath(name)
    except ValueError:  # a NUL, half of a surrogate pair: no file can have that name
        return name


def _plugin(service: PluginService, record: PluginRecord) -> Iterator[str]:
    yield f"plugin {record.name} is {record.state}: {record.path or 'registered by Python code'}"
    for reason in record.reasons:
        rule = f" [{reason.rule}]" if reason.rule else ""
        yield f"  {reason.stage}: {reason.message}{rule}"
        if reason.remedy:
            yield f"    {reason.remedy}"
    for warning in record.warnings:
        yield f"  warning: {warning.message}" + (f" [{warning.rule}]" if warning.rule else "")
    if record.state is State.FOUND:
        yield "  nobody asked to load it"
    if record.path is None:
        return
    candidate = service.entry(record.name).probe.candidate
    yield f"  found by {candidate.source}: {candidate.origin}"
    for twin in candidate.twins:
        yield f"  the same file again: {twin.path} ({twin.source}: {twin.origin})"


def _scheme(service: PluginService, scheme: str) -> Iterator[str]:
    owner = service.schemes().get(scheme)
    if owner is not None:
        yield f"scheme {scheme!r} is served by {owner}"
    for record in service.plugins():
        for reason in record.reasons:
            if f"scheme {scheme!r}" in reason.message:
                yield f"  {record.name}: {reason.message}" + (
                    f" [{reason.rule}]" if reason.rule else ""
                )


def _type_in(name: str) -> str:
    try:
        return parse_device_name(name).device_type
    except InvalidArgumentError:
        return name


def _device_type(service: PluginService, device_type: str) -> Iterator[str]:
    statuses = [
        status
        for status in service.device_registry.factories()
        if status.registration.factory.device_type == device_type
    ]
    for status in sorted(statuses, key=lambda s: s.state is not FactoryState.SERVING):
        yield _factory(status)


def _factory(status: FactoryStatus) -> str:
    registration = status.registration
    device_type = registration.factory.device_type
    line = f"device type {device_type}: {registration.label} is {status.state.value}"
    if status.reason is not None:
        line += f": {status.reason.message} [{status.reason.rule_id}]"
    return line


def _absent(service: PluginService, name: str) -> Iterator[str]:
    report = service.report()
    yield f"nothing goes by the name {name!r}: no plugin, file, scheme or device type"
    package = package_for(name)
    if package is not None:
        yield f"scheme {name!r} comes with the package {package.name}: {package.install}"
    for problem in report.problems:
        yield f"while searching: {problem.message} [{problem.rule}] {problem.remedy}"
    for failure in report.hook_failures:
        yield f"in a hook: {failure.message}"
    yield "searched:"
    for place in report.searched:
        found = f"{place.hits} libraries" if place.exists else "does not exist"
        yield f"  {place.source}: {place.path} ({place.origin}): {place.ignored or found}"
