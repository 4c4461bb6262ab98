"""Writing the report of a run of checks, in all requested forms."""

from __future__ import annotations

import json
import secrets
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from modular_tf.check.report.annotations import github_annotations
from modular_tf.check.report.badge import badge
from modular_tf.check.report.comparison import compare
from modular_tf.check.report.html_page import html_page
from modular_tf.check.report.json_report import SCHEMA_VERSION, as_json, read_report
from modular_tf.check.report.junit import junit
from modular_tf.check.report.text import (
    comparison_lines,
    plugin_lines,
    summary_line,
    total_line,
)
from modular_tf.cli.check_lines import CheckLines
from modular_tf.cli.text import printable
from modular_tf.errors import ConfigError
from modular_tf.service.kept.storage.output_file import (
    STANDARD_OUTPUT,
    refuse_special,
    write_output,
)

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Mapping
    from typing import TextIO

    from modular_tf.check.report.report import Report
    from modular_tf.cli.printer import Printer


CUT_SHORT = "the run was ended by a signal: the report has what was known by then"
_FILES = ("junit", "write_json", "html", "badge")


def earlier(path: str | None) -> Report | None:
    """Return the report to compare with, None where none is named.

    Raises:
        ConfigError: The file is no such report.
    """
    return None if path is None else read_report(path)


def output_is_taken(options: Namespace) -> bool:
    """Return whether a file of the report goes to standard output.

    Raises:
        ConfigError: Two are to go there.
        OSError: A file is to go where none can be written.
    """
    files = {f"--{name.replace('_', '-')}": getattr(options, name) for name in _FILES}
    wanted = [name for name, path in files.items() if path == STANDARD_OUTPUT]
    if options.json:
        wanted.append("--json")
    if len(wanted) > 1:
        raise ConfigError(f"only one of {' and '.join(wanted)} can go to standard output")
    for path in filter(None, files.values()):
        refuse_special(path)
    return bool(wanted)


def write(report: Report, options: Namespace, printer: Printer, before: Report | None) -> None:
    """Write a report to the files that were named, and to standard output if that is free.

    Args:
        report: What the run came to.
        options: Of the command.
        printer: Of the command.
        before: The report to compare with, None for none.
    """
    is_taken = output_is_taken(options)
    forms: Mapping[str, Callable[[], bytes]] = {
        "junit": lambda: junit(report),
        "write_json": lambda: _json(report),
        "html": lambda: html_page(report, before),
        "badge": lambda: badge(report),
    }
    for name in _FILES:
        if (path := getattr(options, name)) is not None:
            write_output(path, forms[name]())
    if printer.json:
        compared = {} if before is None else {"since": compare(before, report).as_dict()}
        printer.json_object(**as_json(report), **compared)
    elif not is_taken:
        with _no_commands(options):
            _write_text(report, printer, before, verbose=options.verbose > 0)
    if options.annotations == "github":
        _annotate(report, sys.stderr if is_taken else sys.stdout)


def _json(report: Report) -> bytes:
    values = {"schema_version": SCHEMA_VERSION, **as_json(report)}
    return json.dumps(values, indent=1).encode("utf-8") + b"\n"


def _write_text(report: Report, printer: Printer, before: Report | None, *, verbose: bool) -> None:
    lines = CheckLines(printer)
    for plugin in report.plugins:
        lines.write((*plugin_lines(plugin, verbose=verbose), ""))
    if before is not None:
        lines.write(comparison_lines(compare(before, report)))
    lines.write(summary_line(plugin) for plugin in report.plugins)
    if len(report.plugins) > 1:
        lines.write([total_line(report)])
    if report.interrupted:
        lines.write([CUT_SHORT])


@contextmanager
def _no_commands(options: Namespace) -> Iterator[None]:
    """Let GitHub obey no line of the text in the block: some are what a plugin has written."""
    if options.annotations is None:
        yield
        return
    token = secrets.token_hex(16)
    sys.stdout.write(f"::stop-commands::{token}\n")
    yield
    sys.stdout.write(f"::{token}::\n")


def _annotate(report: Report, stream: TextIO) -> None:
    """Write annotations; a CI service reads them on either stream."""
    stream.writelines(printable(line) + "\n" for line in github_annotations(report))
