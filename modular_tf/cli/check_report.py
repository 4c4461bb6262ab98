"""Writing what a run of checks came to, in all the forms that were asked for."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from modular_tf.check.report.annotations import github_annotations
from modular_tf.check.report.comparison import compare
from modular_tf.check.report.json_report import SCHEMA_VERSION, as_json, read_report
from modular_tf.check.report.junit import junit
from modular_tf.check.report.text import (
    comparison_lines,
    plugin_lines,
    summary_line,
    total_line,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from modular_tf.check.report.report import Report
    from modular_tf.cli.printer import Printer


def earlier(path: str | None) -> Report | None:
    """Return the report to compare with, None where none is named.

    Raises:
        ConfigError: The file is no such report.
    """
    return None if path is None else read_report(path)


def write(report: Report, options: Namespace, printer: Printer, before: Report | None) -> None:
    """Write a report to standard output, and to the files that were named.

    Args:
        report: What the run came to.
        options: Of the command.
        printer: Of the command.
        before: The report to compare with, None for none.
    """
    if options.junit is not None:
        with open(options.junit, "wb") as stream:
            stream.write(junit(report))
    if options.write_json is not None:
        with open(options.write_json, "w", encoding="utf-8") as text:
            json.dump({"schema_version": SCHEMA_VERSION, **as_json(report)}, text, indent=1)
            text.write("\n")
    if printer.json:
        compared = {} if before is None else {"since": compare(before, report).as_dict()}
        printer.json_object(**as_json(report), **compared)
    else:
        _write_text(report, printer, before, verbose=options.verbose > 0)
    if options.annotations == "github":
        _annotate(report, json_is_on_output=printer.json)


def _write_text(report: Report, printer: Printer, before: Report | None, *, verbose: bool) -> None:
    for plugin in report.plugins:
        for line in plugin_lines(plugin, verbose=verbose):
            printer.line(line)
        printer.line()
    if before is not None:
        for line in comparison_lines(compare(before, report)):
            printer.line(line)
    for plugin in report.plugins:
        printer.line(summary_line(plugin))
    if len(report.plugins) > 1:
        printer.line(total_line(report))


def _annotate(report: Report, *, json_is_on_output: bool) -> None:
    """Write annotations; a CI service reads them on either stream."""
    stream = sys.stderr if json_is_on_output else sys.stdout
    for line in github_annotations(report):
        stream.write(line + "\n")
