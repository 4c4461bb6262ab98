"""The report of a run of checks, in all requested forms."""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from typing import TYPE_CHECKING

from modular_tf.check.report.annotations import github_annotations
from modular_tf.check.report.badge import badge
from modular_tf.check.report.comparison import compare
from modular_tf.check.report.html_page import html_page
from modular_tf.check.report.json_report import SCHEMA_VERSION, as_json
from modular_tf.check.report.junit import junit
from modular_tf.check.report.text import (
    comparison_lines,
    plugin_lines,
    summary_line,
    total_line,
)
from modular_tf.cli.output import has_colour, printable
from modular_tf.errors import ConfigError
from modular_tf.service.kept.storage.output_file import (
    STANDARD_OUTPUT,
    refuse_special,
    write_output,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from modular_tf.check.report.report import Report
    from modular_tf.cli.output import Printer

CUT_SHORT = "the run was ended by a signal: the report has what was known by then"

_RED, _GREEN, _YELLOW, _CYAN = "1;31", "32", "33", "36"
_STYLES = (
    (re.compile(r"^(?:CRASHED|EXITED|FAILED|HUNG|worse)\b"), _RED),
    (re.compile(r"^(?:WARNED|blocked)\b"), _YELLOW),
    (re.compile(r"^(?:better|passed)\b"), _GREEN),
    (re.compile(r"^    [a-z ]{4,8}:(?= )"), _CYAN),
    (re.compile(r"(?<=: )conforms(?=; )"), _GREEN),
    (re.compile(r"(?<=: )does not conform(?=[;,] )"), _RED),
    (re.compile(r"(?<=: )is not known to conform(?=[;,] )"), _YELLOW),
)
_LABEL = re.compile(r"^ {4}[a-z ]{4,8}: +")
_COMMAND = "    again:"  # stays in one line, so that it can be copied
_CELLS = re.compile(r"\S {3,}\S")
_LEAST_COLUMNS = 40
_FURTHER_IN = 4


def output_is_taken(files: Mapping[str, str | None], *, json: bool) -> bool:
    """Return whether a file of the report goes to standard output.

    Args:
        files: By the names of the options, None for a form that is not wanted.
        json: Whether the one JSON object of the command goes there.

    Raises:
        ConfigError: Two are to go there.
        OSError: A file is to go where none can be written.
    """
    wanted = [f"--{name.replace('_', '-')}" for name in files if files[name] == STANDARD_OUTPUT]
    if json:
        wanted.append("--json")
    if len(wanted) > 1:
        raise ConfigError(f"only one of {' and '.join(wanted)} can go to standard output")
    for path in filter(None, files.values()):
        refuse_special(path)
    return bool(wanted)


def write(
    report: Report,
    files: Mapping[str, str | None],
    printer: Printer,
    before: Report | None,
    *,
    verbose: bool,
    annotations: str | None,
) -> None:
    """Write a report to the files that were named, and to standard output if that is free.

    Args:
        report: The result of the run.
        files: By the names of the options: "junit", "write_json", "html", "badge".
        printer: Of the command.
        before: The report to compare with, None for none.
        verbose: Whether the text has all checks.
        annotations: The CI service that shows lines of the report, None for none.
    """
    is_taken = output_is_taken(files, json=printer.json)
    values = {"schema_version": SCHEMA_VERSION, **as_json(report)}
    forms: Mapping[str, Callable[[], bytes]] = {
        "junit": lambda: junit(report),
        "write_json": lambda: json.dumps(values, indent=1).encode() + b"\n",
        "html": lambda: html_page(report, before),
        "badge": lambda: badge(report),
    }
    for name, form in forms.items():
        if (path := files[name]) is not None:
            write_output(path, form())
    changes = None if before is None else compare(before, report)
    if printer.json:
        since = {} if changes is None else {"since": changes.as_dict()}
        printer.json_object(**as_json(report), **since)
    elif not is_taken:
        # GitHub obeys no line of the text: some are what a plugin has written.
        token = secrets.token_hex(16) if annotations else None
        if token is not None:
            sys.stdout.write(f"::stop-commands::{token}\n")
        for plugin in report.plugins:
            _write_lines(printer, (*plugin_lines(plugin, verbose=verbose), ""))
        if changes is not None:
            _write_lines(printer, comparison_lines(changes))
        _write_lines(printer, map(summary_line, report.plugins))
        if len(report.plugins) > 1:
            _write_lines(printer, [total_line(report)])
        if report.interrupted:
            _write_lines(printer, [CUT_SHORT])
        if token is not None:
            sys.stdout.write(f"::{token}::\n")
    if annotations == "github":  # a CI service reads them on either stream
        stream = sys.stderr if is_taken else sys.stdout
        stream.writelines(printable(line) + "\n" for line in github_annotations(report))


def _write_lines(printer: Printer, lines: Iterable[str]) -> None:
    """Write lines: broken at words for a terminal, with colours unless the user wants none.

    Pipes and files get the lines as they are.
    """
    coloured_lines = has_colour(os.environ, terminal=printer.terminal)
    if not printer.terminal and not coloured_lines:
        for line in lines:
            printer.line(line)
        return
    from shutil import get_terminal_size  # noqa: PLC0415  (for terminals only)

    columns = max(get_terminal_size().columns, _LEAST_COLUMNS)
    for line in map(printable, lines):
        shown = broken_at_words(line, columns) if printer.terminal else [line]
        if coloured_lines and shown:
            shown[0] = coloured(shown[0])
        sys.stdout.write("".join(f"{each}\n" for each in shown or [""]))


def coloured(line: str) -> str:
    """Return a line whose verdict or label has its colour."""
    for pattern, style in _STYLES:
        if pattern.search(line):
            return pattern.sub(lambda found: f"\x1b[{style}m{found[0]}\x1b[0m", line, count=1)  # noqa: B023
    return line


def broken_at_words(line: str, columns: int) -> list[str]:
    """Return a line as lines that fit, which begin below its text.

    A word that does not fit stays whole, and so do commands and rows of tables: what is copied
    from the terminal is what was written.
    """
    label = _LABEL.match(line)
    begin = len(line) - len(line.lstrip()) if label is None else label.end()
    is_row = _CELLS.search(line, begin) is not None
    if len(line) <= columns or line.startswith(_COMMAND) or is_row:
        return [line]
    from textwrap import wrap  # noqa: PLC0415  (for terminals only)

    return wrap(
        line[begin:],
        columns,
        initial_indent=line[:begin],
        subsequent_indent=" " * (begin or _FURTHER_IN),
        break_long_words=False,
        break_on_hyphens=False,
    )
