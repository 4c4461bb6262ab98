"""List the kernels that plugins bring: for which operation, type of devices and of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from modular_tf.cli.printer import Printer
    from modular_tf.kernel.registration import KernelRegistration
    from modular_tf.service.service import PluginService


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument("--op", metavar="NAME", help="only kernels that compute this operation")
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
        found = list(_found(service, options))
    kernels = [described.kernel_as_dict(kernel) for kernel in found]
    if printer.json:
        printer.json_object(kernels=kernels)
    else:
        printer.table(described.KERNEL_HEADERS, map(described.kernel_row, kernels))
    if not kernels:
        report_error(_none_found(options))
    return Exit.DONE if kernels else Exit.NOTHING


def _found(service: PluginService, options: Namespace) -> Iterator[KernelRegistration]:
    """Yield the kernels that are asked for; those of an operation's aliases compute it as well."""
    from modular_tf.kernel.aliases import aliases_of  # noqa: PLC0415  (help needs none of it)

    aliases = aliases_of(options.op) if options.op else ()
    for op in (options.op, *(alias.own for alias in aliases)):
        yield from service.kernels(op, options.device_type, options.of_plugin)


def _none_found(options: Namespace) -> str:
    if options.op:
        return f"no such kernel of {options.op!r}; `modular-tf ops {options.op}` shows more"
    if options.device_type or options.of_plugin:
        return "no such kernel; `modular-tf kernels` lists all"
    return "no plugin brings kernels; `modular-tf list` shows what was found"
