"""List the devices that plugins offer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import complain
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer

_SHOWN = ("name", "platform", "priority", "plugin", "hardware_name", "vendor")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument("device_type", nargs="?", help="only devices of this type, such as GPU")


def execute(options: Namespace, printer: Printer) -> Exit:
    """Do it."""
    with session(options) as service:
        devices = [device.to_dict() for device in service.devices(options.device_type)]
    if printer.json:
        printer.json_object(devices=devices)
    else:
        headers = [field.replace("_", " ") for field in _SHOWN]
        printer.table(headers, [[device[field] for field in _SHOWN] for device in devices])
    for device in devices:
        if device.get("error"):
            complain(f"{device['name']}: {device['error']}")
    if not devices:
        complain("no devices were found; `modular-tf list` tells what became of each plugin")
    return Exit.DONE if devices else Exit.NOTHING
