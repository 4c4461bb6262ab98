"""Check whether plugins conform to the interfaces that they implement.

Each check has the id of a rule, which messages of the loader, `why` and the documentation share.
Levels: 1 it loads, 2 it registers, 3 it works, 4 it is robust, 5 it survives random sequences and
faults. Exit status: 0 all that was checked conforms, 1 something does not, 3 nothing was checked,
130 it was interrupted, or ended by SIGTERM as `timeout` sends it: the report has what was known.
"""

from __future__ import annotations

import os
import secrets
from argparse import ArgumentTypeError
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import message_of, report_error, report_problems
from modular_tf.cli.interrupts import terminate_as_interrupt
from modular_tf.errors import ConfigError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.check.report.report import Report
    from modular_tf.check.settings import CheckSettings
    from modular_tf.cli.printer import Printer

_SEED_BITS = 31


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument("targets", metavar="PLUGIN", nargs="*", help="a library, or a folder")
    parser.add_argument("--level", type=int, metavar="N", help="up to which level, 1 to 5")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME",
        help="an id, whatever its level, or a group or glob, up to the level; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--skip", action="append", default=[], metavar="NAME", help="likewise, what to leave out"
    )
    parser.add_argument(
        "--profile", metavar="NAME",
        help="the kind of store: hierarchical, object-store, read-only, or one of the settings'",
    )  # fmt: skip
    parser.add_argument("--root", metavar="URI", help="where files may be made and removed")
    parser.add_argument(
        "--prepared", action="store_true",
        help="the root holds what --write-files wrote; nothing is made there",
    )  # fmt: skip
    parser.add_argument(
        "--write-files", metavar="FOLDER",
        help="write the files that a store is checked on which cannot be written to; try nothing",
    )  # fmt: skip
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", type=_option,
        help="one of [options] of the settings file, as TOML; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--settings", metavar="FILE",
        help="instead of the nearest one above the libraries, or above the working directory",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, help="repeat what an earlier run did at random")
    parser.add_argument(
        "--patience", type=_factor, default=1.0, metavar="X",
        help="wait X times as long as usual before a check counts as hung",
    )  # fmt: skip
    parser.add_argument("--jobs", "-j", type=_count, metavar="N", help="processes at a time")
    parser.add_argument(
        "--replay", metavar="WORD",
        help="perform the sequence that a report names, in this process, as for a debugger",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the checks, and try none")
    _add_reports(parser)


def _add_reports(parser: ArgumentParser) -> None:
    """Add the options that say where the results go."""
    parser.add_argument(
        "--junit", metavar="FILE", help="also write JUnit XML (- is standard output)"
    )
    parser.add_argument(
        "--write-json", metavar="FILE", help="also write the JSON report (- is standard output)"
    )
    parser.add_argument(
        "--html", metavar="FILE",
        help="also write a page for browsers, which says with --compare what changed (- likewise)",
    )  # fmt: skip
    parser.add_argument(
        "--badge", metavar="FILE",
        help="also write an SVG with the verdict and the level that is reached (- likewise)",
    )  # fmt: skip
    parser.add_argument("--compare", metavar="FILE", help="report what changed since a JSON report")
    parser.add_argument(
        "--annotations", choices=("github",), help="also write lines that a CI service shows"
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf check` and return its exit status."""
    try:
        settings = _settings(options)
        if options.write_files is not None:
            return _write_files(options.write_files, settings)
        if options.list:
            return _list(settings, printer)
        if options.replay is not None:
            from modular_tf.cli import check_replay  # noqa: PLC0415  (as rarely as it is wanted)

            return check_replay.execute(options.replay, _targets(options), settings, printer)
        return _check(options, settings, printer)
    except ConfigError as error:  # what was asked for makes no sense; nothing was checked
        report_error(message_of(error))
        return Exit.USAGE


def _write_files(folder: str, settings: CheckSettings) -> Exit:
    from modular_tf.check.filesystem.prepared_files import write_prepared_files  # noqa: PLC0415

    try:
        write_prepared_files(folder, {**settings.profile.options, **settings.options})
    except OSError as error:
        report_error(message_of(error))
        return Exit.NO
    return Exit.DONE


def _check(options: Namespace, settings: CheckSettings, printer: Printer) -> Exit:
    from modular_tf.check.sanitizer_runtime import looks_for_leaks  # noqa: PLC0415
    from modular_tf.cli import check_report  # noqa: PLC0415  (for runs that come to one)

    if looks_for_leaks(os.environ):
        report_error(
            "a sanitizer will look for leaks at the end of this process, find Python's, and change "
            "the exit status; ASAN_OPTIONS=detect_leaks=0 keeps it from that"
        )
    check_report.output_is_taken(options)  # before anything is checked, which may take long
    before = check_report.earlier(options.compare)
    report = _run(options, settings)
    check_report.write(report, options, printer, before)
    if report.interrupted:
        report_error(check_report.CUT_SHORT)
        return Exit.INTERRUPTED
    for fault in report.faults:
        report_error(f"internal error of modular-tf: {fault}")
    if report.faults:
        return Exit.OUR_FAULT
    if not report.has_checked:
        report_error("nothing was checked")
        return Exit.NOTHING
    return Exit.DONE if report.conforms else Exit.NO


def _targets(options: Namespace) -> list[str]:
    targets = [*options.targets, *options.plugin, *options.plugin_dir]
    if not targets:
        raise ConfigError("name a library, a folder, or a plugin that `modular-tf list` shows")
    return targets


def _run(options: Namespace, settings: CheckSettings) -> Report:
    from modular_tf.check.candidates import candidates_of  # noqa: PLC0415
    from modular_tf.check.conformance import check_plugins  # noqa: PLC0415
    from modular_tf.check.limits import Limits  # noqa: PLC0415
    from modular_tf.cli.check_progress import CheckProgress  # noqa: PLC0415

    candidates, problems = candidates_of(_targets(options))
    report_problems(problems)
    seed = secrets.randbits(_SEED_BITS) if options.seed is None else options.seed
    with CheckProgress() as progress, terminate_as_interrupt():
        return check_plugins(
            candidates,
            settings,
            seed=seed,
            limits=Limits(patience=options.patience, jobs=options.jobs),
            tell=progress.tell,
        )


def _settings(options: Namespace) -> CheckSettings:
    from modular_tf.check.settings import decided, on_prepared_files  # noqa: PLC0415

    settings = decided(
        os.getcwd(),
        path=options.settings or _settings_above(options),
        profile=options.profile,
        level=options.level,
        root=options.root,
        options=dict(options.option),
    )
    if options.prepared:
        settings = on_prepared_files(settings)
    return replace(
        settings,
        only=tuple(options.only) or settings.only,
        skip=(*settings.skip, *options.skip),
    )


def _settings_above(options: Namespace) -> str | None:
    """Return the nearest settings file above the libraries that are checked, None for none.

    Raises:
        ConfigError: They have several.
    """
    from modular_tf.check.settings import find_settings  # noqa: PLC0415

    targets = (*options.targets, *options.plugin, *options.plugin_dir)
    folders = [
        it if os.path.isdir(it) else os.path.dirname(it) for it in targets if os.path.lexists(it)
    ]
    found = sorted({path for path in map(find_settings, folders) if path is not None})
    if len(found) > 1:
        raise ConfigError(
            f"what is checked has settings files of its own: {' and '.join(found)}; check each "
            "library by itself, or name one file with --settings"
        )
    return found[0] if found else None


def _list(settings: CheckSettings, printer: Printer) -> Exit:
    from modular_tf.check.profile import profile_names  # noqa: PLC0415
    from modular_tf.check.selection import selected  # noqa: PLC0415

    checks = selected(settings, ("filesystem", "device", "kernel"))
    if printer.json:
        printer.json_object(
            profiles=profile_names(),
            checks=[
                {
                    "id": check.id,
                    "kind": check.kind,
                    "group": check.group,
                    "level": int(check.level),
                    "severity": check.rule.severity.value,
                    "requirement": check.rule.requirement,
                    "source": check.rule.source,
                }
                for check in checks
            ],
        )
    else:
        headers = ("id", "kind", "group", "level", "severity", "requirement")
        printer.table(
            headers,
            [
                (c.id, c.kind, c.group, int(c.level), c.rule.severity.value, c.rule.requirement)
                for c in checks
            ],
        )
    return Exit.DONE if checks else Exit.NOTHING


def _option(text: str) -> tuple[str, Any]:
    """Return name and value of an option of checks, for argparse."""
    name, separator, value = text.partition("=")
    if not separator:
        raise ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    from modular_tf.check.settings_file import value_of  # noqa: PLC0415  (rarely wanted)

    try:
        return name.strip(), value_of(value)
    except ValueError as error:
        message = f"{text!r}: the value is no TOML, in which a string has quotes: {error}"
        raise ArgumentTypeError(message) from None


def _count(text: str) -> int:
    """Return a whole number from 1 on, for argparse."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return value


def _factor(text: str) -> float:
    """Return a finite number above 0, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return value
