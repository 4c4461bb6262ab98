"""List every place where plugins are looked for, in order of precedence, and what was there.

Then every setting, and whether a variable, the configuration file or the default decided it; and
the functions that installed packages have for hooks, in the order in which they are called.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.session import session
from modular_tf.rules.kept_state import STORAGE_TRUSTED

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer
    from modular_tf.cli.settings import Setting
    from modular_tf.discovery.sources.search_log import SearchedPlace
    from modular_tf.service.report import HookFunction, Report


def add_arguments(_: ArgumentParser) -> None:
    """Add nothing: this verb has no options of its own."""


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf paths` and return its exit status."""
    from modular_tf.cli.settings import (  # noqa: PLC0415  (not for help)
        own_places,
        settings_of,
        unused_places,
    )
    from modular_tf.discovery.user_directories import ignored_variables  # noqa: PLC0415
    from modular_tf.service.configuration import config_path  # noqa: PLC0415

    with session(options, load=False) as service:
        report = service.report()
        used = service.config.path
        settings = settings_of(service.config, os.environ)
    path = used or config_path(os.environ)
    config = {"path": path, "used": used is not None}
    places = own_places(path, os.environ)
    unused = unused_places(places)
    if printer.json:
        printer.json_object(
            config=config,
            paths=[_as_object(place) for place in report.searched],
            settings=[setting._asdict() for setting in settings],
            own_places=places,
            unused_places=unused,
            ignored_variables=[variable._asdict() for variable in ignored_variables(os.environ)],
            hooks=[function.as_dict() for function in report.hooks],
            hook_failures=[failure.as_dict() for failure in report.hook_failures],
        )
    else:
        _show(config, report.searched, printer)
        _show_settings(settings, places, unused, printer)
        _show_hooks(report, printer)
    return Exit.DONE


def _as_object(place: SearchedPlace) -> dict[str, Any]:
    return {
        "path": place.path,
        "source": str(place.source),
        "origin": place.origin,
        "exists": place.exists,
        "hits": place.hits,
        "ignored": place.ignored,
    }


def _show(config: dict[str, Any], searched: tuple[SearchedPlace, ...], printer: Printer) -> None:
    rows = [(p.source, _outcome(p), p.path, p.origin) for p in searched]
    printer.table(("source", "found", "path", "named by"), rows)
    if printer.terminal:
        printer.line()
        note = "" if config["used"] else " (not there)"
        printer.line(f"configuration: {config['path'] or 'nowhere'}{note}")


def _show_settings(
    settings: list[Setting],
    places: dict[str, str | None],
    unused: dict[str, str],
    printer: Printer,
) -> None:
    """Show what was decided to a person; a pipe gets one kind of row only."""
    if not printer.terminal:
        return
    printer.line()
    printer.table(("setting", "value", "decided by"), settings)
    printer.line()
    notes = {name: f" (not used: {why} [{STORAGE_TRUSTED}])" for name, why in unused.items()}
    printer.facts(
        {name: f"{path or 'nowhere'}{notes.get(name, '')}" for name, path in places.items()}
    )


def _show_hooks(report: Report, printer: Printer) -> None:
    """Show the functions of hooks, and what failed of them, to a person."""
    if not printer.terminal:
        return
    for headers, rows in (
        (("hook", "implementation", "called"), [_hook_row(found) for found in report.hooks]),
        (("failed hooks",), [(failure.message,) for failure in report.hook_failures]),
    ):
        if rows:
            printer.line()
            printer.table(headers, rows)


def _hook_row(function: HookFunction) -> tuple[str, str, str]:
    words = (function.order, "wrapper" if function.wrapper else None)
    return function.hook, function.implementation, ", ".join(word for word in words if word)


def _outcome(place: SearchedPlace) -> str:
    if place.ignored:
        return f"ignored: {place.ignored}"
    if not place.exists:
        return "not there"
    return f"{place.hits} {'library' if place.hits == 1 else 'libraries'}"
