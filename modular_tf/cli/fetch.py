"""Get the plugins of a published package, whatever Python its wheels are for.

pip, or uv where there is no pip, downloads the wheel for this machine from the package index that
it is configured for. Nothing of the wheel is installed or run: it is compared with its RECORD, and
its plugins, with the libraries of the wheel that they need, become the folder NAME.wheel in the
drop-in directory. Remove that folder to be rid of them.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error
from modular_tf.cli.interrupts import terminate_as_interrupt
from modular_tf.cli.list_plugins import plugin_object, show_plugins
from modular_tf.cli.session import session
from modular_tf.service.report import State

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer
    from modular_tf.service.fetching import FetchedWheel
    from modular_tf.service.report import PluginRecord
    from modular_tf.service.service import PluginService

_SERVED = frozenset((State.FOUND, State.LOADED, State.SHADOWED))
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:==([A-Za-z0-9][A-Za-z0-9.!+_]*))?")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments and options of this verb."""
    from modular_tf.loading.known_packages import known_packages  # noqa: PLC0415  (for this verb only)

    names = ", ".join(package.name for package in known_packages())
    parser.add_argument(
        "package", metavar="NAME[==VERSION]", nargs="?", help=f"the package: {names}"
    )
    parser.add_argument(
        "--from", metavar="WHEEL", dest="wheel",
        help="take this file, of any package, instead of downloading one",
    )  # fmt: skip
    parser.add_argument(
        "--to", metavar="DIR",
        help="the directory for the folder NAME.wheel, instead of the drop-in directory",
    )  # fmt: skip


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fetch` and return its exit status."""
    from modular_tf.discovery.sources.search_paths import SearchPaths  # noqa: PLC0415  (not for help)
    from modular_tf.service.fetching import fetch, known_package  # noqa: PLC0415

    named = _REQUIREMENT.fullmatch(options.package or "")
    if named is None and (options.package is not None or options.wheel is None):
        found = "nothing" if options.package is None else repr(options.package)
        report_error(f"expected NAME or NAME==VERSION, or --from WHEEL; found {found}")
        return Exit.USAGE
    paths = SearchPaths.of_process()
    directory = options.to or (None if paths.privileged else paths.user_directory)
    if directory is None:
        why = paths.why_no_user_directory or "this process has rights that its user lacks"
        report_error(f"there is no drop-in directory: {why}; name a directory with --to")
        return Exit.USAGE
    package, version = None, None
    if named is not None:
        package, version = known_package(named[1]), named[2]
    progress = sys.stderr if sys.stderr.isatty() and not options.json else None
    with terminate_as_interrupt():
        fetched = fetch(package, version, directory, wheel=options.wheel, progress=progress)
    if options.to:
        options.plugin_dir.append(fetched.folder)
    with session(options) as service:
        records = [record for record in service.plugins() if _is_of(record, service, fetched)]
    _show(fetched, records, printer, with_warnings=options.verbose > 0)
    if not records:
        report_error(
            f"nothing found the plugins in {fetched.folder}; `modular-tf paths` shows the search"
        )
    return Exit.DONE if any(record.state in _SERVED for record in records) else Exit.NO


def _is_of(record: PluginRecord, service: PluginService, fetched: FetchedWheel) -> bool:
    """Return whether a plugin is one of the wheel, or the same library at another path."""
    if record.path is None:
        return False
    twins = service.entry(record.name).plugin.candidate.twins
    return not {record.path, *(twin.path for twin in twins)}.isdisjoint(fetched.plugins)


def _show(
    fetched: FetchedWheel, records: list[PluginRecord], printer: Printer, *, with_warnings: bool
) -> None:
    plugins = [plugin_object(record) for record in records]
    if printer.json:
        printer.json_object(**fetched._asdict(), served=plugins)
        return
    if printer.terminal:
        is_new = "is in" if fetched.changed else "was already in"
        printer.line(f"{fetched.name} {fetched.version} {is_new} {fetched.folder}")
        printer.line()
    show_plugins(plugins, printer, with_warnings=with_warnings)
