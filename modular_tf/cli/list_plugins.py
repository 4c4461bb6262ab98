"""List every plugin that was found, its state, and why it is not loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import complain
from modular_tf.cli.problems import complain_about
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer

_HEADERS = ("name", "state", "kinds", "serves", "source")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "--no-load", dest="load", action="store_false", help="only look; run no plugin's code"
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Do it."""
    with session(options, load=options.load) as service:
        plugins = [record.as_dict() for record in service.plugins()]
        problems = service.report().problems
    if printer.json:
        printer.json_object(plugins=plugins)
    else:
        _show(plugins, printer)
    complain_about(problems)
    if not plugins:
        complain("no plugins were found; `modular-tf paths` tells where they are looked for")
    return Exit.DONE if plugins else Exit.NOTHING


def _show(plugins: list[dict[str, Any]], printer: Printer) -> None:
    if not printer.terminal:
        headers = (*_HEADERS, "path", "reason")
        printer.table(headers, [(*_row(p), p["path"], reason_line(p["reason"])) for p in plugins])
        return
    printer.table(_HEADERS, [_row(plugin) for plugin in plugins])
    for plugin in plugins:
        if plugin["reason"]:
            printer.line()
            printer.line(f"{plugin['name']} ({plugin['path']})")
            printer.line(f"  {plugin['state']}: {reason_line(plugin['reason'])}")


def _row(plugin: dict[str, Any]) -> tuple[str, ...]:
    schemes = [f"{scheme}://" if scheme else "local paths" for scheme in plugin["schemes"]]
    serves = [*schemes, *plugin["device_types"]]
    return (
        plugin["name"],
        plugin["state"],
        ", ".join(plugin["kinds"]),
        ", ".join(serves),
        plugin["source"],
    )


def reason_line(reason: dict[str, Any] | None) -> str:
    """Return a reason in one line: rule, message, remedy."""
    if not reason:
        return ""
    rule = f" [{reason['rule']}]" if reason["rule"] else ""
    remedy = f" {reason['remedy']}" if reason["remedy"] else ""
    return " ".join(f"{reason['message']}{rule}{remedy}".split())
