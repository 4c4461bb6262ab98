"""Keeping plugins out of this process that end, block or rob the one that they are tried in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.loading.loader import absent_functions_of, companions_of

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
    new = [entry for entry in entries if entry.awaits_first_contact]
    if not new:
        return
    # Imported for other people's device plugins only; most applications have none.
    from modular_tf.first_contact.task import Task  # noqa: PLC0415
    from modular_tf.first_contact.trials import try_plugins  # noqa: PLC0415

    tasks = [
        Task(
            entry.name,
            entry.path,
            tuple(companions_of(entry.probe)),
            tuple(absent_functions_of(entry.probe)),
        )
        for entry in new
    ]
    verdicts = try_plugins(tasks, seconds=config.first_contact_timeout_s)
    for entry, violation in zip(new, verdicts, strict=True):
        if violation is not None:
            entry.fail_first_contact(violation)
