"""Release plugins from the quarantine and try each again in a process of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.cli.failures import Failures
from modular_tf.cli.list_plugins import reason_line
from modular_tf.cli.quarantine.store import entries_named, open_store

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer
    from modular_tf.service.report import PluginRecord

_HEADERS = ("name", "state", "path", "reason")
_GOOD_STATES = ("loaded", "shadowed", "disabled")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="+",
        help="a plugin's name, its path, or six or more digits of its SHA-256",
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf quarantine retry` and return its exit status."""
    store = open_store()
    failures = Failures()
    records = []
    for entry in entries_named(store, options.name, failures):
        store.release(entry.sha256)
        with failures.about(entry.path):
            records.append(_try_again(entry.path))
    if printer.json:
        printer.json_object(plugins=[record.as_dict() for record in records])
    else:
        printer.table(_HEADERS, [_row(record) for record in records])
    for record in records:
        if record.state.value not in _GOOD_STATES:
            failures.add(f"is {record.state}", record.path or record.name)
    return failures.exit_code


def _try_again(path: str) -> PluginRecord:
    """Return the record of a plugin that is probed, tried and loaded again.

    Raises:
        NotFoundError: The file is not there any more.
    """
    from modular_tf.discovery.privileges import is_privileged  # noqa: PLC0415
    from modular_tf.service.configuration import load_config  # noqa: PLC0415  (not needed for help)
    from modular_tf.service.service import PluginService  # noqa: PLC0415

    config = load_config(privileged=is_privileged())
    # It is mapped here too, at once: what the first process survives may end the second.
    config = replace(config, first_contact="always", load="eager")
    with PluginService(config=config, plugin_paths=(path,), bundled=False) as service:
        service.load(path)
        return next(record for record in service.plugins() if record.path == path)


def _row(record: PluginRecord) -> tuple[object, ...]:
    reason = record.reason
    shown = reason_line(reason.as_dict()) if reason else ""
    return record.name, record.state, record.path, shown
