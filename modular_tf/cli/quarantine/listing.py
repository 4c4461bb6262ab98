"""List the quarantined plugins: what each did, when, and what changed on the host since."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error
from modular_tf.cli.quarantine.store import open_store
from modular_tf.processes.signal_names import signal_name

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer
    from modular_tf.service.kept.quarantine import Entry, QuarantineStore

_HEADERS = ("name", "rule", "signal", "last call", "when", "path")


def add_arguments(_: ArgumentParser) -> None:
    """Add nothing: this verb has no options of its own."""


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf quarantine list` and return its exit status."""
    store = open_store()
    entries = store.entries()
    if printer.json:
        rows = [{**e.as_dict(), "changes": store.changes_since(e)} for e in entries]
        printer.json_object(quarantine=rows)
    else:
        printer.table(_HEADERS, [_row(entry) for entry in entries])
        if printer.terminal or options.verbose:
            for entry in entries:
                _show(entry, store, printer, backtrace=options.verbose > 0)
    if not entries:
        report_error("nothing is in quarantine")
    return Exit.DONE if entries else Exit.NOTHING


def _row(entry: Entry) -> tuple[str, ...]:
    incident = entry.incident
    return (
        entry.name,
        incident.violation.rule_id,
        _signal_name(incident.signal),
        incident.last_call or "",
        _when(entry.time),
        entry.path,
    )


def _show(entry: Entry, store: QuarantineStore, printer: Printer, *, backtrace: bool) -> None:
    incident = entry.incident
    printer.line()
    printer.line(f"{entry.name} ({entry.path})")
    printer.line(f"  {incident.violation.message} [{incident.violation.rule_id}]")
    printer.line(f"  {incident.violation.remedy}")
    for change in store.changes_since(entry):
        printer.line(f"  changed since, so that it is tried again when it is found: {change}")
    if backtrace:
        printer.line(f"  SHA-256 {entry.sha256}")
        for frame in incident.backtrace:
            printer.line(f"    {frame}")


def _signal_name(number: int | None) -> str:
    if number is None:
        return ""
    return signal_name(number)


def _when(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "seconds")
    except (ValueError, OverflowError, OSError):  # the file may say anything
        return "at no time"
