"""List the kernels that plugins bring: for which operation, type of devices and of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument("--op", metavar="NAME", help="only kernels of this operation")
    parser.add_argument(
        "--device-type", metavar="TYPE", help="only kernels for this type of devices"
    )
    parser.add_argument(
        "--from", dest="of_plugin", metavar="NAME", help="only kernels of this plugin"
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf kernels` and return its exit status."""
    from modular_tf.cli.kernels import described  # noqa: PLC0415  (help needs none of it)

    with session(options) as service:
        found = service.kernels(options.op, options.device_type, options.of_plugin)
    kernels = [described.kernel_as_dict(kernel) for kernel in found]
    if printer.json:
        printer.json_object(kernels=kernels)
    else:
        printer.table(described.KERNEL_HEADERS, map(described.kernel_row, kernels))
    if not kernels:
        report_error(_none_found(options))
    return Exit.DONE if kernels else Exit.NOTHING


def _none_found(options: Namespace) -> str:
    if options.op:
        return f"no such kernel of {options.op!r}; `modular-tf ops {options.op}` tells more"
    if options.device_type or options.of_plugin:
        return "no such kernel; `modular-tf kernels` lists all"
    return "no plugin brings kernels; `modular-tf list` tells what was found"
