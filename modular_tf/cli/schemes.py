"""List the schemes of filesystems and the plugin that serves each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer


def add_arguments(_: ArgumentParser) -> None:
    """Add nothing: this verb has no options of its own."""


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf schemes` and return its exit status."""
    with session(options) as service:
        schemes = sorted(service.schemes().items())
    if printer.json:
        printer.json_object(schemes=[{"scheme": s, "plugin": plugin} for s, plugin in schemes])
    else:
        printer.table(("scheme", "plugin"), [(s or "(local paths)", p) for s, p in schemes])
    if not schemes:
        report_error("no plugin serves a scheme; `modular-tf list` tells what was found")
    return Exit.DONE if schemes else Exit.NOTHING
