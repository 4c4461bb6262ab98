"""List the devices that plugins offer, or try what works on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import complain
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence

    from modular_tf.cli.device_smoke import Outcome
    from modular_tf.cli.printer import Printer
    from modular_tf.device.device import Device

_SHOWN = (
    "name", "platform", "priority", "plugin", "hardware_name", "vendor", "memory", "streams",
)  # fmt: skip
_TRIED = ("name", "check", "outcome", "ms", "message")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument("device_type", nargs="?", help="only devices of this type, such as GPU")
    parser.add_argument(
        "--smoke", action="store_true",
        help="try memory, copies, events, timers and callbacks on each device; 1 if one fails",
    )  # fmt: skip


def execute(options: Namespace, printer: Printer) -> Exit:
    """Do it."""
    with session(options) as service:
        devices = service.devices(options.device_type)
        # Printed before the service is closed: what failed may fail once more there.
        code = _try_all(devices, printer) if options.smoke else _list(devices, printer)
    if not devices:
        complain("no devices were found; `modular-tf list` tells what became of each plugin")
        return Exit.NOTHING
    return code


def _list(devices: Sequence[Device], printer: Printer) -> Exit:
    found = [device.to_dict() for device in devices]
    if printer.json:
        printer.json_object(devices=found)
    else:
        headers = [field.replace("_", " ") for field in _SHOWN]
        printer.table(headers, [_row(device) for device in found])
    _complain_of(found)
    return Exit.DONE


def _row(device: Mapping[str, Any]) -> list[object]:
    shown = {**device, "memory": _memory(device["memory_free"], device["memory_total"])}
    return [shown[field] for field in _SHOWN]


def _memory(free: int | None, total: int | None) -> str | None:
    if free is None or total is None:
        return None
    return f"{_size(free)} of {_size(total)} free"


def _size(n_bytes: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n_bytes < 1024:  # noqa: PLR2004  (what a unit is of the one below)
            return f"{n_bytes:.4g} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.4g} TiB"


def _complain_of(found: Sequence[Mapping[str, Any]]) -> None:
    for device in found:
        if device["error"]:
            complain(f"{device['name']}: {device['error']}")


def _try_all(devices: Sequence[Device], printer: Printer) -> Exit:
    from modular_tf.cli.device_smoke import try_device  # noqa: PLC0415  (listing needs none of it)

    tried = [(device, try_device(device)) for device in devices]
    if printer.json:
        printer.json_object(
            devices=[device.to_dict() | _as_json(outcomes) for device, outcomes in tried]
        )
    else:
        rows = [row for device, outcomes in tried for row in _rows(device, outcomes)]
        printer.table(_TRIED, rows)
    failed = [device.name for device, outcomes in tried if not _all_work(outcomes)]
    if failed:
        complain(f"{len(failed)} of {len(tried)} devices failed: {', '.join(failed)}")
    return Exit.NO if failed else Exit.DONE


def _as_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {"works": _all_work(outcomes), "checks": [outcome.as_dict() for outcome in outcomes]}


def _rows(device: Device, outcomes: Sequence[Outcome]) -> list[tuple[object, ...]]:
    if not outcomes:
        return [(device.name, None, "nothing to try", None, "it only describes itself")]
    return [
        (
            device.name,
            outcome.check,
            "works" if outcome.works else "failed",
            f"{outcome.elapsed_ms:.2f}",
            outcome.message,
        )
        for outcome in outcomes
    ]


def _all_work(outcomes: Sequence[Outcome]) -> bool:
    return all(outcome.works for outcome in outcomes)
