"""Explain a plugin, file, scheme, device, package or operation: why it serves, or does not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help="a plugin, a file or directory, a scheme or URI (ram or ram://x), a device type or a"
        " device (GPU or GPU:0), an installed package, or an operation (MatMul)",
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf why` and return its exit status."""
    with session(options) as service:
        if os.path.isfile(options.name):
            service.load(options.name)
        explanation = service.why(options.name)
    if printer.json:
        printer.json_object(**explanation.as_dict())
    else:
        for line in explanation.lines:
            printer.line(line)
    return Exit.DONE if explanation.known else Exit.NO
