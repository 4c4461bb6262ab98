"""Facts about plugins, those that compete, and the distributions that bring them."""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from modular_tf.device.factory import DeferredFactory
from modular_tf.device.names import parse_device_name
from modular_tf.device.registry import FactoryState
from modular_tf.discovery.candidate import Source
from modular_tf.discovery.search import PLUGIN_PATH_VARIABLE, file_stem
from modular_tf.discovery.sources.distributions import OWN_DISTRIBUTION
from modular_tf.discovery.sources.installed import installed_distributions, unpacked_wheel
from modular_tf.errors import InvalidArgumentError, ModularTFError
from modular_tf.loading.published import known_packages
from modular_tf.processes.ending import signal_name
from modular_tf.service.report import PYTHON_SOURCE, State
from modular_tf.service.why.answer import ABSENT, STATE, Fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.device.names import DeviceName
    from modular_tf.device.registry import FactoryStatus
    from modular_tf.discovery.candidate import Candidate
    from modular_tf.kernel.registry import KernelRegistry
    from modular_tf.rules import Violation
    from modular_tf.service.plugin import Plugin, PluginEntry
    from modular_tf.service.report import PluginRecord
    from modular_tf.service.service import PluginService

HAVE_IT_SEARCHED = (
    f"To have it searched: {PLUGIN_PATH_VARIABLE}, `plugin_dirs` in the configuration,"
    " --plugin PATH, or PluginService(plugin_paths=...)."
)


def about_plugin(service: PluginService, record: PluginRecord) -> Iterator[Fact]:
    """Yield all facts about a plugin."""
    subject = f"plugin {record.name}"
    entry = service.entry(record.name) if record.path is not None else None
    yield Fact(subject, STATE, f"{subject} is {record.state}: {record.where}")
    yield from (Fact.of(subject, reason) for reason in record.reasons)
    yield from (Fact.of(subject, warning, "warning") for warning in record.warnings)
    if entry is not None:
        yield from _quarantine(subject, entry.plugin)
    yield from _serves(subject, service, record)
    if entry is not None:
        yield from _origin(subject, service, entry.plugin.candidate)
        stem = file_stem(record.path or "")
        for other in service.plugins():
            if other.path and other.name != record.name and file_stem(other.path) == stem:
                text = f"another file of that name is {other.name}, {other.state}: {other.path}"
                yield Fact(subject, "twin", text)
        yield from _isolation(subject, service, entry)
    # The steps that it passed; those that rejected it are among the reasons.
    shown = {(reason.stage, reason.message) for reason in (*record.reasons, *record.warnings)}
    for decision in record.decisions:
        if (decision.stage, decision.text) not in shown:
            how = "passed" if decision.passed else "refused"
            yield Fact(subject, decision.stage, f"{how}: {decision.text}", decision.rule)
    if text := _next_of_plugin(record, entry):
        yield Fact(subject, "next", text)


def outcome(subject: str, stage: str, record: PluginRecord) -> Fact:
    """Return a plugin's state and the first reason for it as one fact about something else."""
    text = f"plugin {record.name} is {record.state}: {record.where}"
    if record.reason is None:
        return Fact(subject, stage, text)
    return Fact.of(subject, record.reason, stage, prefix=text)


def _quarantine(subject: str, plugin: Plugin) -> Iterator[Fact]:
    """Yield facts about its incident, beyond the reason."""
    incident, since = plugin.incident, plugin.quarantined_since
    if incident is None:
        return
    if since is not None:
        when = f"{since} s after 1970"
        with suppress(OSError, OverflowError, ValueError):  # it was read from a file
            when = datetime.fromtimestamp(since).astimezone().isoformat(" ", "seconds")
        yield Fact(subject, "quarantine", f"since {when}")
    if incident.signal is not None:
        yield Fact(subject, "quarantine", f"ended by {signal_name(incident.signal)}")
    if incident.last_call:
        yield Fact(subject, "quarantine", f"the last call was {incident.last_call}")
    for frame in incident.backtrace:
        yield Fact(subject, "quarantine", f"at {frame}")
    for line in incident.last_output.splitlines():
        yield Fact(subject, "quarantine", f"last output: {line}")


def _serves(subject: str, service: PluginService, record: PluginRecord) -> Iterator[Fact]:
    """Yield what it serves, and which plugins did not get that."""
    for scheme in record.schemes:
        yield Fact(subject, "serves", f"{scheme}://" if scheme else "local paths")
        for other, reason in refused_scheme(service, scheme, record.name):
            yield Fact(subject, "contest", f"{other.name}: {reason.message}", reason.rule)
    if record.kernels or record.ops:
        own = f"; it defines {_counted(record.ops, 'operation')}" if record.ops else ""
        yield Fact(subject, "serves", f"{_counted(record.kernels, 'kernel')}{own}")
    for device_type in record.device_types:
        statuses = factories_of(service, device_type)
        own_one = next((s for s in statuses if s.registration.plugin == record.name), None)
        if own_one is not None and count_of(own_one) == 0:
            text = f"it serves no device: it has none of type {device_type}"
            yield Fact(subject, "problem", text)
        else:
            factory = None if own_one is None else own_one.registration.factory
            is_deferred = isinstance(factory, DeferredFactory)
            later = ", whose devices are counted when one is first wanted" if is_deferred else ""
            yield Fact(subject, "serves", f"device type {device_type}{later}")
        for status in statuses:
            if status.reason is not None and status.registration.plugin != record.name:
                yield Fact(subject, "contest", status.reason.message, status.reason.rule)


def _counted(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def _isolation(subject: str, service: PluginService, entry: PluginEntry) -> Iterator[Fact]:
    """Yield what keeps a plugin from harm that runs, or is to run, in a worker process."""
    from modular_tf.isolation.rights import rights_here  # noqa: PLC0415  (few plugins have one)
    from modular_tf.isolation.worker import worker_of  # noqa: PLC0415  (likewise)

    workers = list(filter(None, map(worker_of, entry.filesystems.values())))
    if workers:
        limits = ", ".join(workers[0].limits)
        yield Fact(subject, "isolation", f"it runs in a worker process, restricted to: {limits}")
    elif service.config.is_isolated(entry.plugin.name) and entry.plugin.is_isolable:
        yield Fact(subject, "isolation", "it is to run in a worker process from its first use on")
    else:
        return
    for name, why in rights_here().items():
        if why:
            yield Fact(subject, "isolation", f"not in force here: {name}, since {why}")


def _origin(subject: str, service: PluginService, candidate: Candidate) -> Iterator[Fact]:
    whose = f", of distribution {candidate.distribution}" if candidate.distribution else ""
    searched = {place.path for place in service.report().searched}
    named = {candidate.path, os.path.dirname(candidate.path)}
    if candidate.source is not Source.ARGUMENT or searched & named:
        yield Fact(subject, "source", f"found by {candidate.source}: {candidate.origin}{whose}")
    else:
        text = "no source searches it; it is known because it was named"
        yield Fact(subject, "source", text, None, HAVE_IT_SEARCHED)
    if candidate.real_path != candidate.path:
        yield Fact(subject, "source", f"a link to {candidate.real_path}")
    for twin in candidate.twins:
        text = f"the same file again, not listed: {twin.path} ({twin.source}: {twin.origin})"
        yield Fact(subject, "twin", text)


def _next_of_plugin(record: PluginRecord, entry: PluginEntry | None) -> str:
    """Return what to do about a plugin, "" where nothing is to be done or its reasons say it."""
    if record.state is State.FOUND:
        return "nothing has loaded it yet; PluginService.load() does, and so does `modular-tf list`"
    if record.state is State.QUARANTINED:
        return (
            f"`modular-tf quarantine retry {record.name}` tries it again; it is released by itself"
            " when its file or this host changes"
        )
    if record.state is State.FAILED and not any(reason.remedy for reason in record.reasons):
        return f"`modular-tf -vv inspect {record.name}` shows what it logs and what its bytes say"
    if record.state is State.LOADED and entry is not None and entry.library is None:
        return "its library is mapped at the first use of what it serves"
    return ""


# -- plugins that compete --------------------------------------------------------------------------


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


def factories_of(service: PluginService, device_type: str) -> list[FactoryStatus]:
    """Return the factories of a device type, the one that serves first."""
    statuses = [
        status
        for status in service.device_registry.factories()
        if status.registration.factory.device_type == device_type
    ]
    return sorted(statuses, key=lambda status: status.state is not FactoryState.SERVING)


# -- distributions ---------------------------------------------------------------------------------


def about_distribution(service: PluginService, name: str) -> Iterator[Fact]:
    """Yield facts about the distribution with a name, in any spelling."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        return
    wanted = re.sub(r"[-_.]+", "-", name).lower()
    subject = f"distribution {wanted}"
    brought = plugins_of_distribution(service, wanted)
    installed = next(
        (
            found
            for found in (
                *installed_distributions(service.search_paths().python_path),
                *(unpacked_wheel(record.path or "") for record in brought),
            )
            if found is not None and found.name == wanted
        ),
        None,
    )
    if installed is not None:
        text = f"{subject} is installed: {installed.label}, {installed.location}"
        yield Fact(subject, STATE, text)
        yield from (outcome(subject, "holds", record) for record in brought)
        if not brought:
            text = "it brings no plugin: its RECORD lists no library with an init symbol"
            yield Fact(subject, "holds", text)
        return
    for package in known_packages():
        if package.name == wanted:
            text = f"{subject} is not installed; it brings {package.brings}"
            yield Fact(subject, ABSENT, text, None, package.install)


def plugins_of_distribution(service: PluginService, distribution: str) -> list[PluginRecord]:
    """Return the plugins that an installed distribution brings, by its normalised name."""
    return [
        record
        for record in service.plugins()
        if record.path
        and (candidate := service.entry(record.name).plugin.candidate)
        and distribution
        == (OWN_DISTRIBUTION if candidate.source is Source.BUNDLED else candidate.distribution)
    ]


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
    yield from _type(
        service, device_type, statuses, first_stage=STATE if asked is None else "serves"
    )


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
    service: PluginService, device_type: str, statuses: list[FactoryStatus], *, first_stage: str
) -> Iterator[Fact]:
    subject = f"device type {device_type}"
    for status in statuses:
        stage = first_stage if status is statuses[0] else "contest"
        text = f"{subject}: {status.registration.label} is {status.state.value}"
        reason = status.reason
        if reason is None:
            without = ", but has no device here" if count_of(status) == 0 else ""
            yield Fact(subject, stage, text + without)
        else:
            yield Fact.of(subject, reason, stage, prefix=text)
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
    by = _counted(len(kernels), "kernel") if kernels else "no kernel of a loaded plugin"
    yield Fact(subject, STATE, f"{subject} is computed by {by}")
    if definition is None:
        yield Fact(subject, "problem", "nobody defines it, so its kernels cannot run")
    else:
        yield Fact(subject, "source", f"defined by {definition.source}: {definition!r}")
        for other in registry.plugin_definitions():
            if other.name == name and other is not definition:
                is_same = other == definition
                alike = "in the same way" if is_same else "in another way, which is not used"
                yield Fact(subject, "contest", f"{other.source} defines it too, {alike}")
    for op in (name, *aliases):
        yield from _kernels_of_op(subject, service, registry, op, name)
    for standard in computed_by(name):
        yield Fact(subject, "serves", f"its kernels compute {standard} as well")
    if kernels:
        text = f"`modular-tf ops {name}` shows its attributes and kernels"
    else:
        text = "load a plugin that has kernels of it; `modular-tf ops` lists all"
    yield Fact(subject, "next", text)


def _kernels_of_op(
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
        where = ", ".join(served) or "no visible device"
        under = f", under the name {op}" if op != name else ""
        kernels = f"{_counted(count, 'kernel')} of {plugin}"
        text = f"{kernels} for device type {device_type} ({where}){under}"
        yield Fact(subject, "serves", text)
