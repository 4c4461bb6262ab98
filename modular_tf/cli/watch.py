"""Follow plugin files that come, are replaced and go, and tell of each change."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error
from modular_tf.cli.interrupts import keep_leaving
from modular_tf.cli.list_plugins import reason_line
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from modular_tf.cli.printer import Printer
    from modular_tf.service.reload.plugin_watch import Watch
    from modular_tf.service.report import PluginChange

    News = SimpleQueue[PluginChange | None]  # None: it is time to end

_LOOK_S = 0.5  # between two looks for files that are still being written


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument("--once", action="store_true", help="end after the first change")
    parser.add_argument(
        "--for", dest="seconds", metavar="SECONDS", type=float, help="end after so many seconds"
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf watch` and return its exit status."""
    news: News = SimpleQueue()
    with (
        _ended_by_signals(news),
        session(options, load=False) as service,
        service.watch(news.put) as watch,
    ):
        service.load()  # now that files may be overwritten in place
        how = "by polling" if watch.is_polling else "by notifications of the system"
        report_error(f"watching {len(service.plugins())} plugins, {how}; end with Ctrl-C")
        _tell(news, watch, options, printer)
    return Exit.DONE


def _tell(news: News, watch: Watch, options: Namespace, printer: Printer) -> None:
    """Write one line for each change until it is time to end."""
    end = math.inf if options.seconds is None else time.monotonic() + options.seconds
    told: set[str] = set()
    while True:
        try:
            change = news.get(timeout=max(0.0, min(_LOOK_S, end - time.monotonic())))
        except Empty:
            if time.monotonic() >= end:
                return
            told = _tell_unfinished(watch.unfinished, told)
            continue
        if change is None:
            return
        if printer.json:
            printer.json_line(**change.as_dict())
        else:
            printer.row(_row(change))
        sys.stdout.flush()
        if options.once:
            return


def _tell_unfinished(unfinished: dict[str, str], told: set[str]) -> set[str]:
    """Report the files that are waited for and were not yet told; return all that are told."""
    for path in unfinished.keys() - told:
        report_error(f"waiting until {path} is whole: {unfinished[path]}")
    return set(unfinished)


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


@contextmanager
def _ended_by_signals(news: News) -> Iterator[None]:
    """Let the signals that end a process end the watch."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the application's
        return
    before = {
        number: signal.signal(number, lambda _number, _frame: news.put(None))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    keep_leaving()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        keep_leaving()
