"""List the schemes of filesystems and the plugin that serves each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping

    from modular_tf.cli.printer import Printer


def add_arguments(_: ArgumentParser) -> None:
    """Add nothing: this verb has no options of its own."""


def _as_object(scheme: str, plugin: str, fallback: str | None) -> dict[str, str]:
    found = {"scheme": scheme, "plugin": plugin}
    return found if fallback is None else {**found, "fallback": fallback}


def show_fallback(fallback: Mapping[str, str], printer: Printer) -> None:
    """Show to a person which schemes fsspec's clients serve, and why."""
    if fallback and printer.terminal:
        printer.line()
        for sentence in fallback.values():
            printer.line(sentence)


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf schemes` and return its exit status."""
    with session(options) as service:
        schemes = sorted(service.schemes().items())
        fallback = service.fallback_schemes()
    if printer.json:
        printer.json_object(schemes=[_as_object(s, p, fallback.get(s)) for s, p in schemes])
    else:
        printer.table(("scheme", "plugin"), [(s or "(local paths)", p) for s, p in schemes])
        show_fallback(fallback, printer)
    if not schemes:
        report_error("no plugin serves a scheme; `modular-tf list` shows what was found")
    return Exit.DONE if schemes else Exit.NOTHING
