"""Facts about an installed distribution, or one that is known to bring plugins."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.sources.distributions import OWN_DISTRIBUTION
from modular_tf.discovery.sources.installed import installed_distributions, unpacked_wheel
from modular_tf.loading.known_packages import known_packages
from modular_tf.service.why.answer import ABSENT, STATE, Fact
from modular_tf.service.why.plugins import outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.sources.installed import InstalledDistribution
    from modular_tf.service.report import PluginRecord
    from modular_tf.service.service import PluginService


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
