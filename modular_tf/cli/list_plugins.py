"""List every plugin that was found, its state, and why it is not loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error, report_problems
from modular_tf.cli.schemes import show_fallback
from modular_tf.cli.session import session
from modular_tf.cli.text import counted
from modular_tf.rules import Violation
from modular_tf.service.report import State

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer
    from modular_tf.service.report import PluginRecord

_HEADERS = ("name", "state", "kinds", "serves", "source")
_NOT_ASKED = Violation(None, "nothing has loaded it yet", "load")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "--no-load", dest="load", action="store_false", help="only look; run no plugin's code"
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf list` and return its exit status."""
    with session(options, load=None) as service:
        report = service.load() if options.load else service.discover()
        fallback = service.fallback_schemes()
    plugins = [plugin_object(record) for record in report.plugins]
    if printer.json:
        printer.json_object(plugins=plugins, **({"fallback": fallback} if fallback else {}))
    else:
        show_plugins(plugins, printer, with_warnings=options.verbose > 0)
        show_fallback(fallback, printer)
    report_problems(report.problems)
    if not plugins:
        report_error("no plugins were found; `modular-tf paths` shows where they are searched")
    return Exit.DONE if plugins else Exit.NOTHING


def plugin_object(record: PluginRecord) -> dict[str, Any]:
    """Return a record as a JSON object, with the reason why it is not loaded."""
    reasons = [reason.as_dict() for reason in record.reasons]
    if record.state is State.FOUND and not reasons:
        reasons = [_NOT_ASKED.as_dict()]
    told = record.as_dict()
    told["reason"] = reasons[0] if reasons else None
    told["reasons"] = reasons
    told["warnings"] = [warning.as_dict() for warning in record.warnings]
    return told


def show_plugins(plugins: list[dict[str, Any]], printer: Printer, *, with_warnings: bool) -> None:
    """Show plugins as a table; to a person, why one does not serve stands below it."""
    if not printer.terminal:
        headers = (*_HEADERS, "path", "reason", "warnings")
        printer.table(headers, [(*_row(p), p["path"], *_notes(p)) for p in plugins])
        return
    printer.table(_HEADERS, [_row(plugin) for plugin in plugins])
    for plugin in plugins:
        _show_notes(plugin, printer, with_warnings=with_warnings)
    n_warnings = sum(len(plugin["warnings"]) for plugin in plugins)
    if n_warnings and not with_warnings:
        printer.line()
        printer.line(f"{counted(n_warnings, 'warning')}; `modular-tf list -v` shows more")


def _notes(plugin: dict[str, Any]) -> tuple[str, str]:
    reasons, warnings = ([reason_line(r) for r in plugin[key]] for key in ("reasons", "warnings"))
    return " ".join(reasons), " ".join(warnings)


def _show_notes(plugin: dict[str, Any], printer: Printer, *, with_warnings: bool) -> None:
    warnings = plugin["warnings"] if with_warnings else []
    if not plugin["reasons"] and not warnings:
        return
    printer.line()
    printer.line(f"{plugin['name']} ({plugin['path']})")
    for reason in plugin["reasons"]:
        printer.line(f"  {plugin['state']}: {reason_line(reason)}")
    for warning in warnings:
        printer.line(f"  warning: {reason_line(warning)}")


def _row(plugin: dict[str, Any]) -> tuple[str, ...]:
    schemes = [f"{scheme}://" if scheme else "local paths" for scheme in plugin["schemes"]]
    kernels = [counted(plugin["kernels"], "kernel")] if plugin.get("kernels") else []
    serves = [*schemes, *plugin["device_types"], *kernels]
    return (
        plugin["name"],
        plugin["state"],
        ", ".join(plugin["kinds"]),
        ", ".join(serves),
        f"{plugin['source']}{_release(plugin)}",
    )


def _release(plugin: dict[str, Any]) -> str:
    """Return the version of the package that brings a plugin, with its name where it is another."""
    name, _, version = (plugin["distribution"] or "").partition(" ")
    if not name:
        return ""
    return f" {version}" if name == plugin["name"] else f" ({name} {version})"


def reason_line(reason: dict[str, Any] | None) -> str:
    """Return a reason in one line: rule, message, remedy."""
    if not reason:
        return ""
    rule = f" [{reason['rule']}]" if reason["rule"] else ""
    remedy = f" {reason['remedy']}" if reason["remedy"] else ""
    return " ".join(f"{reason['message']}{rule}{remedy}".split())
