"""Keeping plugins out of this process that end, block or rob the one that they are tried in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.discovery.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.configuration import Config
    from modular_tf.plugin_entry import PluginEntry


def quarantine_defective(entries: Iterable[PluginEntry], config: Config) -> None:
    """Try the device plugins among `entries` in child processes, and end the way of defective ones.

    Plugins whose code runs in this process already, and those that come with this package, are
    not tried. Returns when all have been.
    """
    if config.first_contact == "never":
        return
    new = [e for e in entries if e.awaits_first_contact and Kind.DEVICE in e.facts.kinds]
    if not new:
        return
    # Imported for other people's device plugins only; most applications have none.
    from modular_tf.first_contact.limits import Limits  # noqa: PLC0415
    from modular_tf.first_contact.task import Task  # noqa: PLC0415
    from modular_tf.first_contact.trials import try_plugins  # noqa: PLC0415

    tasks = [
        Task(entry.name, entry.path, entry.facts.companions, entry.facts.absent) for entry in new
    ]
    findings = try_plugins(tasks, Limits(seconds=config.first_contact_timeout_s))
    for entry, finding in zip(new, findings, strict=True):
        if finding.incident is not None:
            entry.fail_first_contact(finding.incident)
