"""List the worker processes of plugins in the running applications of this user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer
    from modular_tf.isolation.told_workers import Application
    from modular_tf.isolation.worker_records import WorkerRecord

_HEADERS = (
    *("application", "plugin", "instance", "pid", "memory"),
    *("calls", "in flight", "restarts", "last fault"),
)
_MIB = 1 << 20


def add_arguments(_: ArgumentParser) -> None:
    """Add nothing: this verb has no options of its own."""


def execute(_: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf workers` and return its exit status."""
    from modular_tf.isolation.told_workers import applications  # noqa: PLC0415  (the native core)

    found = applications()
    if printer.json:
        printer.json_object(applications=[_as_object(application) for application in found])
    else:
        printer.table(_HEADERS, [_row(one, worker) for one in found for worker in one.workers])
    if not found:
        report_error("no application of this user has a plugin in a worker process (`isolation`)")
    return Exit.DONE if found else Exit.NOTHING


def _as_object(application: Application) -> dict[str, object]:
    workers = [worker._asdict() for worker in application.workers]
    return {"pid": application.pid, "program": application.program, "workers": workers}


def _row(application: Application, worker: WorkerRecord) -> tuple[object, ...]:
    return (
        f"{application.pid} {application.program}".strip(),
        worker.plugin,
        worker.instance,
        worker.pid or "",
        f"{worker.memory_bytes / _MIB:.1f} MiB" if worker.pid else "",
        worker.calls,
        worker.in_flight,
        worker.restarts,
        worker.last_fault,
    )
