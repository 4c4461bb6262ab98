"""`modular-tf watch`: the changes of plugin files, as they happen."""

from __future__ import annotations

import math
import sys
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import click

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.frame import command
from modular_tf.cli.output import report_error
from modular_tf.cli.plugins import reason_line
from modular_tf.cli.process import terminate_as_interrupt

if TYPE_CHECKING:
    from modular_tf.cli.session import Invocation
    from modular_tf.service.report import PluginChange

_POLL_S = 0.5  # between two checks for files that are still being written


@command()
@click.option("--once", is_flag=True, help="end after the first change")
@click.option("--for", "seconds", metavar="SECONDS", type=float, help="end after so many seconds")
def watch(call: Invocation, *, once: bool, seconds: float | None) -> Exit:
    """Follow plugin files that come, are replaced and go, and report each change."""
    news: SimpleQueue[PluginChange] = SimpleQueue()
    with (
        suppress(KeyboardInterrupt),
        terminate_as_interrupt(),
        call.session(load=False) as service,
        service.watch(news.put) as watching,
    ):
        service.load()  # now that files may be overwritten in place
        report_error(f"watching {len(service.plugins())} plugins; end with Ctrl-C")
        end = math.inf if seconds is None else time.monotonic() + seconds
        reported: set[str] = set()
        while time.monotonic() < end:
            try:
                change = news.get(timeout=max(0.0, min(_POLL_S, end - time.monotonic())))
            except Empty:
                unfinished = watching.unfinished
                for path in unfinished.keys() - reported:
                    report_error(f"waiting until {path} is whole: {unfinished[path]}")
                reported = set(unfinished)
                continue
            if call.json:
                call.json_line(**change.as_dict())
            else:
                call.row(_row(change))
            sys.stdout.flush()
            if once:
                break
    return Exit.DONE


def _row(change: PluginChange) -> tuple[str, ...]:
    record = change.record
    schemes = [f"{scheme}://" if scheme else "local paths" for scheme in record.schemes]
    why = change.kept or record.reason
    return (
        change.kind.value,
        change.plugin,
        "" if change.kind.value == "removed" else record.state.value,
        ", ".join([*schemes, *record.device_types]),
        change.path,
        reason_line(why.as_dict() if why else None),
    )
