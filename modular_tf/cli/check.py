"""`modular-tf check`: the conformance of plugins."""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from collections import Counter
from dataclasses import replace
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from modular_tf.check.filesystem.workspace import write_prepared_files
from modular_tf.check.job import Limits
from modular_tf.check.outcome import BAD, Verdict
from modular_tf.check.plan import candidates_of, selected
from modular_tf.check.report.comparison import compare
from modular_tf.check.report.json_report import SCHEMA_VERSION, as_json, read_report
from modular_tf.check.report.junit import junit
from modular_tf.check.report.pages import badge, html_page, require_templates
from modular_tf.check.report.text import github_annotations, report_lines
from modular_tf.check.run import check_plugins, replayed
from modular_tf.check.sequences import Replay
from modular_tf.check.settings import (
    decided,
    find_settings,
    on_prepared_files,
    option_of,
    profile_names,
)
from modular_tf.cli.frame import Invocation, argument, command
from modular_tf.cli.output import has_colour, message_of, printable, report_error, report_problems
from modular_tf.cli.process import Exit, expect_exit, terminate_as_interrupt
from modular_tf.cli.progress import ProgressLine
from modular_tf.cli.values import FILE, FOLDER, PLUGIN, URI, factor
from modular_tf.codec import encode
from modular_tf.discovery.linking.host_exports import host_exports
from modular_tf.discovery.probe import probe
from modular_tf.errors import ConfigError
from modular_tf.native.sanitizers import looks_for_leaks
from modular_tf.service.output_file import STANDARD_OUTPUT, refuse_special, write_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from modular_tf.check.outcome import Outcome
    from modular_tf.check.plan import PluginPlan
    from modular_tf.check.report.report import Report
    from modular_tf.check.report.text import Line
    from modular_tf.check.settings import CheckSettings
    from modular_tf.cli.output import Printer

_SEED_BITS = 31
CUT_SHORT = "the run was ended by a signal: the report has what was known by then"

_COLOURS = {"good": "32", "bad": "1;31", "open": "33", "warning": "33", "label": "36"}
_LABEL = re.compile(r"^ {4}[a-z ]{4,8}: +")
_COMMAND = "    again:"  # stays in one line, so that it can be copied
_CELLS = re.compile(r"\S {3,}\S")
_LEAST_COLUMNS = 40
_FURTHER_IN = 4


def _option(text: str) -> tuple[str, Any]:
    try:
        return option_of(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@command(calls_plugins=False)
@argument("targets", type=PLUGIN, nargs=-1, help="a library, or a folder")
@click.option("--level", type=int, metavar="N", help="up to which level, 1 to 5")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="an id, whatever its level, or a group or glob, up to the level; may be repeated",
)
@click.option("--skip", multiple=True, metavar="NAME", help="likewise, what to leave out")
@click.option(
    "--profile",
    metavar="NAME",
    help="the kind of store: hierarchical, object-store, read-only, or one of the settings'",
)
@click.option("--root", type=URI, help="where files may be made and removed")
@click.option(
    "--prepared",
    is_flag=True,
    help="the root holds what --write-files wrote; nothing is made there",
)
@click.option(
    "--write-files",
    type=FOLDER,
    help="write the files that a store is checked on which cannot be written to; try nothing",
)
@click.option(
    "--option",
    multiple=True,
    metavar="NAME=VALUE",
    type=_option,
    help="one of [options] of the settings file, as TOML; may be repeated",
)
@click.option(
    "--settings",
    type=FILE,
    help="instead of the nearest one above the libraries, or above the working directory",
)
@click.option("--seed", type=int, metavar="N", help="repeat what an earlier run did at random")
@click.option(
    "--patience",
    type=factor,
    default=1.0,
    metavar="X",
    help="wait X times as long as usual before a check counts as hung",
)
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="processes at a time")
@click.option(
    "--replay",
    metavar="WORD",
    help="perform the sequence that a report names, in this process, as for a debugger",
)
@click.option(
    "--through-host",
    is_flag=True,
    help="try the plugin's functions once more through this package",
)
@click.option(
    "--in-process",
    is_flag=True,
    help="try all in this process and write each call first, as for a debugger; best with --only",
)
@click.option("--list", "is_list", is_flag=True, help="list the checks, and try none")
@click.option("--junit", type=FILE, help="also write JUnit XML (- is standard output)")
@click.option("--write-json", type=FILE, help="also write the JSON report (- is standard output)")
@click.option(
    "--html",
    type=FILE,
    help="also write a page for browsers, which shows with --compare what changed (- likewise)",
)
@click.option(
    "--badge",
    type=FILE,
    help="also write an SVG with the verdict and the level that is reached (- likewise)",
)
@click.option("--compare", type=FILE, help="report what changed since a JSON report")
@click.option(
    "--annotations", type=click.Choice(["github"]), help="also write lines that a CI service shows"
)  # fmt: skip
def check(
    call: Invocation,
    *,
    targets: tuple[str, ...],
    write_files: str | None,
    is_list: bool,
    replay: str | None,
    **values: Any,
) -> Exit:
    """Check whether plugins conform to the interfaces that they implement.

    Each check has the id of a rule, which messages of the loader, `why` and the documentation
    share. Levels: 1 it loads, 2 it registers, 3 it works, 4 it is robust, 5 it survives random
    sequences and faults. Exit status: 0 all that was checked conforms, 1 something does not, 3
    nothing was checked, 130 it was interrupted, or ended by SIGTERM as `timeout` sends it, or by
    SIGHUP of a terminal that is closed: the report has what was known.
    """
    plugins = [*targets, *call.options.plugin, *call.options.plugin_dir]
    try:
        settings = _settings(plugins, values)
        if write_files is not None:
            write_prepared_files(write_files, settings.for_checks)
            return Exit.DONE
        if is_list:
            return _list(settings, call)
        if not plugins:
            report_error("name a library, a folder, or a plugin that `modular-tf list` shows")
            return Exit.USAGE
        if replay is not None:
            return _replay(replay, plugins, settings, call)
        return _check(plugins, settings, values, call)
    except ConfigError as error:  # the settings make no sense; nothing was checked
        report_error(message_of(error))
        return Exit.USAGE


def _settings(plugins: list[str], values: dict[str, Any]) -> CheckSettings:
    """Return the settings: of the command line, and of the nearest file above the libraries."""
    folders = [
        it if os.path.isdir(it) else os.path.dirname(it) for it in plugins if os.path.lexists(it)
    ]
    found = sorted({path for path in map(find_settings, folders) if path is not None})
    if len(found) > 1 and not values["settings"]:
        raise ConfigError(
            f"what is checked has settings files of its own: {' and '.join(found)}; check each "
            "library by itself, or name one file with --settings"
        )
    settings = decided(
        os.getcwd(),
        path=values["settings"] or next(iter(found), None),
        profile=values["profile"],
        level=values["level"],
        root=values["root"],
        through_host=values["through_host"] or None,
        options=dict(values["option"]),
    )
    if values["prepared"]:
        settings = on_prepared_files(settings)
    only, skip = values["only"] or settings.only, (*settings.skip, *values["skip"])
    return replace(settings, only=only, skip=skip)


def _list(settings: CheckSettings, call: Invocation) -> Exit:
    checks = [
        {
            "id": check.id,
            "kind": check.kind,
            "group": check.group,
            "level": int(check.level),
            "severity": check.rule.severity.value,
            "requirement": check.rule.requirement,
            "source": check.rule.source,
        }
        for check in selected(settings, ("filesystem", "device", "kernel"))
    ]
    columns = ("id", "kind", "group", "level", "severity", "requirement")
    call.show("checks", checks, columns, profiles=profile_names())
    return Exit.DONE if checks else Exit.NOTHING


def _check(
    plugins: list[str], settings: CheckSettings, values: dict[str, Any], call: Invocation
) -> Exit:
    if looks_for_leaks(os.environ):
        report_error(
            "a sanitizer will look for leaks at the end of this process, find Python's, and change "
            "the exit status; ASAN_OPTIONS=detect_leaks=0 keeps it from that"
        )
    files = {name: values[name] for name in ("junit", "write_json", "html", "badge")}
    _output_is_taken(files, json=call.json)  # before anything is checked, which may take long
    if files["html"] or files["badge"]:
        require_templates()
    before = None if values["compare"] is None else read_report(values["compare"])
    candidates, missing = candidates_of(plugins)
    report_problems(missing)
    seed = secrets.randbits(_SEED_BITS) if values["seed"] is None else values["seed"]
    with CheckProgress() as progress, terminate_as_interrupt():
        report = check_plugins(
            candidates,
            settings,
            seed=seed,
            limits=Limits(patience=values["patience"], jobs=values["jobs"]),
            on_outcome=progress.count,
            announce=_write_call if values["in_process"] else None,
        )
    code = Exit.DONE if report.conforms else Exit.NO if report.has_checked else Exit.NOTHING
    none_found = "" if candidates or missing else f": no library in {', '.join(plugins)}"
    problems = [f"nothing was checked{none_found}"] if code is Exit.NOTHING else []
    if report.faults:
        code = Exit.OUR_FAULT
        problems = [f"internal error of modular-tf: {fault}" for fault in report.faults]
    if report.interrupted:
        code, problems = Exit.INTERRUPTED, [CUT_SHORT]
    expect_exit(code)
    verbose, annotations = call.options.verbose > 0, values["annotations"]
    write(report, files, call, before, verbose=verbose, annotations=annotations)
    for problem in problems:
        report_error(problem)
    return code


class CheckProgress(ProgressLine):
    """Counts outcomes, and shows them on a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._done: Counter[str] = Counter()
        self._bad = 0

    def count(self, plan: PluginPlan, outcome: Outcome) -> None:
        """Count one more outcome."""
        self._done[plan.path] += 1
        self._bad += outcome.verdict in BAD
        done, bad = f"{self._done[plan.path]} of {plan.number_of_checks}", f"{self._bad} bad"
        self.show(lambda _: f"{plan.name}: {done}, {bad}, last {outcome.check_id}")


def _write_call(call: str) -> None:
    """Write a call before it is made in this process, which may end there."""
    sys.stderr.write(printable(call) + "\n")
    sys.stderr.flush()


def _replay(token: str, plugins: list[str], settings: CheckSettings, call: Invocation) -> Exit:
    """Perform a random sequence in this process; each call is written before it is made."""
    found = Replay.from_token(token)
    candidates, _ = candidates_of(plugins)
    if len(candidates) != 1:
        raise ConfigError(f"--replay works on one library, found {len(candidates)}")
    outcome = replayed(found, probe(candidates[0], host_exports()), settings, _write_call)
    if outcome.verdict in {Verdict.BLOCKED, Verdict.SKIPPED}:
        report_error(outcome.message)
        return Exit.NOTHING
    if outcome.verdict is Verdict.PASSED:
        text = f"nothing is wrong in these {len(found.program)} steps"
        call.show_object({"failure": None}, lambda: call.line(text))
        return Exit.DONE

    def show() -> None:
        call.line(outcome.message)
        call.facts({"expected": outcome.expected, "found": outcome.found})

    names = ("message", "expected", "found", "calls")
    call.show_object({"failure": {name: getattr(outcome, name) for name in names}}, show)
    return Exit.NO


# -- the report -----------------------------------------------------------------------------------


def _output_is_taken(files: Mapping[str, str | None], *, json: bool) -> bool:
    """Return whether a file of the report goes to standard output; refuse two, and bad places."""
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
    call: Printer,
    before: Report | None,
    *,
    verbose: bool,
    annotations: str | None,
) -> None:
    """Write a report to the files that were named, and to standard output if that is free.

    `files` are by the names of their options: "junit", "write_json", "html", "badge". `before` is
    the report to compare with, `annotations` the CI service that shows lines of the report; both
    may be None. With `verbose`, the text has all checks.
    """
    is_taken = _output_is_taken(files, json=call.json)
    forms: Mapping[str, Callable[[], bytes]] = {
        "junit": lambda: junit(report),
        "write_json": lambda: (
            json.dumps({"schema_version": SCHEMA_VERSION, **as_json(report)}, indent=1).encode()
            + b"\n"
        ),
        "html": lambda: html_page(report, before),
        "badge": lambda: badge(report),
    }
    for name, form in forms.items():
        if (path := files[name]) is not None:
            write_output(path, form())
    changes = None if before is None else compare(before, report)
    if call.json:
        since = {} if changes is None else {"since": encode(changes)}
        call.json_object(**as_json(report), **since)
    elif not is_taken:
        # GitHub obeys no line of the text: some are what a plugin has written.
        token = secrets.token_hex(16) if annotations else None
        if token is not None:
            sys.stdout.write(f"::stop-commands::{token}\n")
        _write_lines(call, report_lines(report, changes, verbose=verbose))
        if report.interrupted:
            call.line(CUT_SHORT)
        if token is not None:
            sys.stdout.write(f"::{token}::\n")
    if annotations == "github":  # a CI service reads them on either stream
        stream = sys.stderr if is_taken else sys.stdout
        stream.writelines(printable(line) + "\n" for line in github_annotations(report))


def _write_lines(call: Printer, lines: Iterable[Line]) -> None:
    """Write lines: for a terminal broken at words, with colours unless the user wants none."""
    has_colours = has_colour(os.environ, terminal=call.terminal)
    if not (call.terminal or has_colours):
        call.lines(map(str, lines))
        return
    columns = max(get_terminal_size().columns, _LEAST_COLUMNS)
    for line in lines:
        text = printable(str(line))
        shown = broken_at_words(text, columns) if call.terminal else [text]
        first, *others = shown or [""]
        begin = len(printable(line.before))
        end = begin + len(line.word)
        if has_colours and line.style and first[begin:end] == line.word:
            code = _COLOURS[line.style]
            first = f"{first[:begin]}\x1b[{code}m{line.word}\x1b[0m{first[end:]}"
        sys.stdout.write("".join(f"{each}\n" for each in (first, *others)))


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
    return wrap(
        line[begin:],
        columns,
        initial_indent=line[:begin],
        subsequent_indent=" " * (begin or _FURTHER_IN),
        break_long_words=False,
        break_on_hyphens=False,
    )
