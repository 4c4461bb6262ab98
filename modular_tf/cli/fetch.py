"""`modular-tf fetch`: the plugins of a published package."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import click

from modular_tf.cli.frame import Invocation, argument, command
from modular_tf.cli.output import report_error
from modular_tf.cli.plugins import listed_object, show_plugins
from modular_tf.cli.process import Exit, terminate_as_interrupt
from modular_tf.cli.values import DIR, FILE
from modular_tf.discovery.sources.search_paths import SearchPaths
from modular_tf.loading.published import known_packages
from modular_tf.service import fetching
from modular_tf.service.report import State

if TYPE_CHECKING:
    from modular_tf.service.fetching import FetchedWheel
    from modular_tf.service.report import PluginRecord
    from modular_tf.service.service import PluginService

_PACKAGES = ", ".join(package.name for package in known_packages())
_SERVED = frozenset((State.FOUND, State.LOADED, State.SHADOWED))
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:==([A-Za-z0-9][A-Za-z0-9.!+_]*))?")


@command()
@argument("package", metavar="[NAME[==VERSION]]", required=False, help=f"the package: {_PACKAGES}")
@click.option(
    "--from",
    "wheel",
    type=FILE,
    metavar="WHEEL",
    help="use this file, of any package, instead of downloading one",
)
@click.option(
    "--to", type=DIR,
    help="the directory for the folder NAME.wheel, instead of the drop-in directory",
)  # fmt: skip
def fetch(call: Invocation, package: str | None, wheel: str | None, to: str | None) -> Exit:
    """Get the plugins of a published package, whatever Python its wheels are for.

    pip, or uv where there is no pip, downloads the wheel for this machine from the package index
    that it is configured for. Nothing of the wheel is installed or run: it is compared with its
    RECORD, and its plugins, with the libraries of the wheel that they need, become the folder
    NAME.wheel in the drop-in directory. Remove that folder to be rid of them.
    """
    named = _REQUIREMENT.fullmatch(package or "")
    if named is None and (package is not None or wheel is None):
        found = "nothing" if package is None else repr(package)
        report_error(f"expected NAME or NAME==VERSION, or --from WHEEL; found {found}")
        return Exit.USAGE
    paths = SearchPaths.of_process()
    directory = to or (None if paths.privileged else paths.user_directory)
    if directory is None:
        why = paths.why_no_user_directory or "this process has rights that its user lacks"
        report_error(f"there is no drop-in directory: {why}; name a directory with --to")
        return Exit.USAGE
    known, version = None, None
    if named is not None:
        known, version = fetching.known_package(named[1]), named[2]
    progress = sys.stderr if sys.stderr.isatty() and not call.options.json else None
    with terminate_as_interrupt():
        fetched = fetching.fetch(known, version, directory, wheel=wheel, progress=progress)
    if to:
        call.options.plugin_dir.append(fetched.folder)
    with call.session() as service:
        records = [record for record in service.plugins() if _is_of(record, service, fetched)]
    plugins = [listed_object(record) for record in records]

    def show() -> None:
        if call.terminal:
            is_new = "is in" if fetched.changed else "was already in"
            call.lines([f"{fetched.name} {fetched.version} {is_new} {fetched.folder}", ""])
        show_plugins(plugins, call, with_warnings=call.options.verbose > 0)

    call.show_object({**fetched._asdict(), "served": plugins}, show)
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
