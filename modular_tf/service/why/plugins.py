"""Facts about plugins, those that compete, and the distributions that bring them."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from modular_tf.device.deferred import DeferredFactory
from modular_tf.device.ranking import FactoryState
from modular_tf.discovery.candidate import Source
from modular_tf.discovery.search import PLUGIN_PATH_VARIABLE, file_stem
from modular_tf.discovery.sources.distributions import OWN_DISTRIBUTION
from modular_tf.discovery.sources.installed import installed_distributions, unpacked_wheel
from modular_tf.errors import ModularTFError
from modular_tf.loading.published import known_packages
from modular_tf.processes.ending import signal_name
from modular_tf.service.report import State
from modular_tf.service.why.answer import ABSENT, STATE, Fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.device.ranking import FactoryStatus
    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.sources.installed import InstalledDistribution
    from modular_tf.rules import Violation
    from modular_tf.service.plugin import Plugin
    from modular_tf.service.plugin_entry import PluginEntry
    from modular_tf.service.report import PluginRecord
    from modular_tf.service.service import PluginService

HAVE_IT_SEARCHED = (
    f"To have it searched: {PLUGIN_PATH_VARIABLE}, `plugin_dirs` in the configuration,"
    " --plugin PATH, or PluginService(plugin_paths=...)."
)


def about_plugin(service: PluginService, record: PluginRecord) -> Iterator[Fact]:
    """Yield all facts about a plugin."""
    subject = f"plugin {record.name}"
    yield Fact(subject, STATE, f"{subject} is {record.state}: {record.where}")
    yield from _reasons(subject, record)
    entry = service.entry(record.name) if record.path is not None else None
    if entry is not None:
        yield from _quarantine(subject, entry.plugin)
    yield from _serves(subject, service, record)
    if entry is not None:
        yield from _origin(subject, service, entry)
        yield from _same_name(subject, service, record)
        yield from _isolation(subject, service, entry)
    yield from _way(subject, record)
    yield from _next(subject, record, entry)


def outcome(subject: str, stage: str, record: PluginRecord) -> Fact:
    """Return a plugin's state and the first reason for it as one fact about something else."""
    text = f"plugin {record.name} is {record.state}: {record.where}"
    reason = record.reason
    if reason is None:
        return Fact(subject, stage, text)
    return Fact.of(subject, reason, stage, prefix=text)


def serves(record: PluginRecord) -> bool:
    """Return whether a plugin serves anything."""
    return bool(record.schemes or record.device_types or record.kernels)


def _reasons(subject: str, record: PluginRecord) -> Iterator[Fact]:
    for reason in record.reasons:
        yield Fact.of(subject, reason)
    for warning in record.warnings:
        yield Fact.of(subject, warning, "warning")


def _quarantine(subject: str, plugin: Plugin) -> Iterator[Fact]:
    """Yield facts about its incident, beyond the reason."""
    incident = plugin.incident
    if incident is None:
        return
    if plugin.quarantined_since is not None:
        yield Fact(subject, "quarantine", f"since {_when(plugin.quarantined_since)}")
    if incident.signal is not None:
        yield Fact(subject, "quarantine", f"ended by {signal_name(incident.signal)}")
    if incident.last_call:
        yield Fact(subject, "quarantine", f"the last call was {incident.last_call}")
    for frame in incident.backtrace:
        yield Fact(subject, "quarantine", f"at {frame}")
    for line in incident.said.splitlines():
        yield Fact(subject, "quarantine", f"it said: {line}")


def _when(seconds: float) -> str:
    try:
        local = datetime.fromtimestamp(seconds).astimezone()
    except (OSError, OverflowError, ValueError):  # it was read from a file
        return f"{seconds} s after 1970"
    return local.isoformat(sep=" ", timespec="seconds")


def _serves(subject: str, service: PluginService, record: PluginRecord) -> Iterator[Fact]:
    """Yield what it serves, and which plugins did not get that."""
    for scheme in record.schemes:
        yield Fact(subject, "serves", f"{scheme}://" if scheme else "local paths")
        for other, reason in refused_scheme(service, scheme, record.name):
            yield Fact(subject, "contest", f"{other.name}: {reason.message}", reason.rule)
    if record.kernels or record.ops:
        yield Fact(subject, "serves", _kernels(record))
    for device_type in record.device_types:
        statuses = factories_of(service, device_type)
        yield _served_type(subject, device_type, statuses, record.name)
        for status in statuses:
            if status.reason is not None and status.registration.plugin != record.name:
                lost = status.reason
                yield Fact(subject, "contest", lost.message, lost.rule)


def _isolation(subject: str, service: PluginService, entry: PluginEntry) -> Iterator[Fact]:
    """Yield what keeps a plugin from harm that runs, or is to run, in a worker process."""
    from modular_tf.isolation.rights import rights_here  # noqa: PLC0415  (few plugins have one)
    from modular_tf.isolation.worker import worker_of  # noqa: PLC0415  (likewise)

    workers = list(filter(None, map(worker_of, entry.filesystems.values())))
    lacking = {name: why for name, why in rights_here().items() if why}
    if workers:
        limits = ", ".join(workers[0].limits)
        yield Fact(subject, "isolation", f"it runs in a worker process, restricted to: {limits}")
    elif service.config.is_isolated(entry.plugin.name) and entry.plugin.is_isolable:
        yield Fact(subject, "isolation", "it is to run in a worker process from its first use on")
    else:
        return
    for name, why in lacking.items():
        yield Fact(subject, "isolation", f"not in force here: {name}, since {why}")


def _kernels(record: PluginRecord) -> str:
    kernels = "1 kernel" if record.kernels == 1 else f"{record.kernels} kernels"
    own = "1 operation" if record.ops == 1 else f"{record.ops} operations"
    return f"{kernels}; it defines {own}" if record.ops else kernels


def _served_type(
    subject: str, device_type: str, statuses: list[FactoryStatus], plugin: str
) -> Fact:
    """Yield that a plugin serves a device type, with the number of devices if known."""
    own = next((status for status in statuses if status.registration.plugin == plugin), None)
    if own is not None and count_of(own) == 0:
        return Fact(subject, "problem", f"it serves no device: it has none of type {device_type}")
    uncounted = own is not None and isinstance(own.registration.factory, DeferredFactory)
    later = ", whose devices are counted when one is first wanted" if uncounted else ""
    return Fact(subject, "serves", f"device type {device_type}{later}")


def _origin(subject: str, service: PluginService, entry: PluginEntry) -> Iterator[Fact]:
    candidate = entry.plugin.candidate
    whose = f", of distribution {candidate.distribution}" if candidate.distribution else ""
    if _is_searched(service, candidate):
        yield Fact(subject, "source", f"found by {candidate.source}: {candidate.origin}{whose}")
    else:
        text = "no source searches it; it is known because it was named"
        yield Fact(subject, "source", text, None, HAVE_IT_SEARCHED)
    if candidate.real_path != candidate.path:
        yield Fact(subject, "source", f"a link to {candidate.real_path}")
    for twin in candidate.twins:
        text = f"the same file again, not listed: {twin.path} ({twin.source}: {twin.origin})"
        yield Fact(subject, "twin", text)


def _is_searched(service: PluginService, candidate: Candidate) -> bool:
    """Return whether a file is known for another reason than that it was asked for."""
    searched = {place.path for place in service.report().searched}
    named = {candidate.path, os.path.dirname(candidate.path)}
    return candidate.source is not Source.ARGUMENT or bool(searched & named)


def _same_name(subject: str, service: PluginService, record: PluginRecord) -> Iterator[Fact]:
    """Yield facts about other plugin files of the same name."""
    stem = file_stem(record.path or "")
    for other in service.plugins():
        if other.path and other.name != record.name and file_stem(other.path) == stem:
            text = f"another file of that name is {other.name}, {other.state}: {other.path}"
            yield Fact(subject, "twin", text)


def _way(subject: str, record: PluginRecord) -> Iterator[Fact]:
    """Yield the steps that it passed; those that rejected it are among the reasons."""
    told = {(reason.stage, reason.message) for reason in (*record.reasons, *record.warnings)}
    for decision in record.decisions:
        if (decision.stage, decision.text) not in told:
            outcome = "passed" if decision.passed else "refused"
            yield Fact(subject, decision.stage, f"{outcome}: {decision.text}", decision.rule)


def _next(subject: str, record: PluginRecord, entry: PluginEntry | None) -> Iterator[Fact]:
    if record.state is State.FOUND:
        text = "nothing has loaded it yet; PluginService.load() does, and so does `modular-tf list`"
        yield Fact(subject, "next", text)
    elif record.state is State.QUARANTINED:
        text = (
            f"`modular-tf quarantine retry {record.name}` tries it again; it is released by itself"
            " when its file or this host changes"
        )
        yield Fact(subject, "next", text)
    elif record.state is State.FAILED and not any(reason.remedy for reason in record.reasons):
        text = f"`modular-tf -vv inspect {record.name}` shows what it logs and what its bytes say"
        yield Fact(subject, "next", text)
    elif record.state is State.LOADED and entry is not None and entry.library is None:
        yield Fact(subject, "next", "its library is mapped at the first use of what it serves")


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
    installed = _installed(service, wanted)
    if installed is not None:
        text = f"{subject} is installed: {installed.label}, {installed.location}"
        yield Fact(subject, STATE, text)
        brought = plugins_of_distribution(service, wanted)
        for record in brought:
            yield outcome(subject, "holds", record)
        if not brought:
            text = "it brings no plugin: its RECORD lists no library with an init symbol"
            yield Fact(subject, "holds", text)
        return
    for package in known_packages():
        if package.name == wanted:
            text = f"{subject} is not installed; it brings {package.brings}"
            yield Fact(subject, ABSENT, text, None, package.install)


def _installed(service: PluginService, wanted: str) -> InstalledDistribution | None:
    paths = service.search_paths().python_path
    for found in installed_distributions(paths):
        if found.name == wanted:
            return found
    unpacked = (unpacked_wheel(it.path or "") for it in plugins_of_distribution(service, wanted))
    return next((found for found in unpacked if found is not None), None)


def plugins_of_distribution(service: PluginService, distribution: str) -> list[PluginRecord]:
    """Return the plugins that an installed distribution brings, by its normalised name."""
    return [
        record
        for record in service.plugins()
        if record.path
        and _distribution_of(service.entry(record.name).plugin.candidate) == distribution
    ]


def _distribution_of(candidate: Candidate) -> str | None:
    return OWN_DISTRIBUTION if candidate.source is Source.BUNDLED else candidate.distribution
