"""List the devices that plugins offer, or try what works on them.

What a plugin does not answer within the time limit is reported as failed. A plugin that crashes
takes the command with it; `modular-tf inspect --no-load` looks at one without running it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import complain
from modular_tf.cli.list_plugins import reason_line
from modular_tf.cli.session import session
from modular_tf.cli.text import size
from modular_tf.cli.time_limit import TimeLimit, seconds
from modular_tf.discovery.candidate import Source
from modular_tf.errors import DeadlineExceededError, NotFoundError
from modular_tf.report import State

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence

    from modular_tf.cli.device_smoke import Outcome
    from modular_tf.cli.printer import Printer
    from modular_tf.device.device import Device
    from modular_tf.report import PluginRecord
    from modular_tf.service import PluginService

_SHOWN = (
    "name", "platform", "priority", "plugin", "hardware_name", "vendor", "memory", "streams",
)  # fmt: skip
_TRIED = ("name", "check", "outcome", "ms", "message")
_PROMISED = ("name", "device_type", "platform", "ordinal", "priority", "plugin")
_ASKED = (
    "hardware_name", "vendor", "pci_bus_id", "numa_node", "memory_bandwidth", "gflops", "error",
    "memory_free", "memory_total", "streams",
)  # fmt: skip
_SECONDS = 60.0


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "device", nargs="?", help="only devices of this type (GPU), or the one of this name (GPU:0)"
    )
    parser.add_argument(
        "--smoke", action="store_true",
        help="try memory, copies, fills, an event, a timer and a callback on each device; "
        "the exit code is 1 if one fails",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=_SECONDS,
        help=f"how long a device may take for one answer (default {_SECONDS:g})",
    )  # fmt: skip


def execute(options: Namespace, printer: Printer) -> Exit:
    """Do it."""
    limit = TimeLimit(options.timeout)
    with session(options) as service:
        try:
            # Printed before the service is closed: what failed may fail once more there.
            code = _show(service, options, printer, limit)
        except KeyboardInterrupt:
            limit.leave_if_stuck(Exit.INTERRUPTED)
            raise
        limit.leave_if_stuck(code)
    return code


def _show(service: PluginService, options: Namespace, printer: Printer, limit: TimeLimit) -> Exit:
    devices = _wanted(service, options.device)
    code = (_try_all if options.smoke else _list)(devices, printer, limit)
    absent = _complain_of_absent(service)
    if not devices:
        complain(_none_found(service, options.device))
        return Exit.NOTHING
    # Who tries the devices of a plugin that has none must not be told that all is well.
    return Exit.NO if options.smoke and absent else code


def _wanted(service: PluginService, wish: str | None) -> list[Device]:
    if wish is None or ":" not in wish:
        return service.devices(wish)
    try:
        return [service.device(wish)]
    except NotFoundError:
        return []


def _none_found(service: PluginService, wish: str | None) -> str:
    there = ", ".join(device.name for device in service.devices())
    if there and wish is not None:
        return f"no device {wish!r}; there are: {there}; `modular-tf why {wish}` tells more"
    return "no devices were found; `modular-tf list` tells what became of each plugin"


def _complain_of_absent(service: PluginService) -> bool:
    """Say why devices are missing that the command line, or their plugin, speaks of."""
    absent = [plugin for plugin in service.plugins() if _is_missed(plugin)]
    for plugin in absent:
        reason = plugin.reason.as_dict() if plugin.reason else None
        complain(f"{plugin.state}: {reason_line(reason)}", plugin.name)
    return bool(absent)


def _is_missed(plugin: PluginRecord) -> bool:
    if plugin.state is not State.LOADED:
        return plugin.source == Source.ARGUMENT.value
    return any(reason.stage == "list" for reason in plugin.reasons)


# -- listing --------------------------------------------------------------------------------------


def _list(devices: Sequence[Device], printer: Printer, limit: TimeLimit) -> Exit:
    found = [_described(device, limit) for device in devices]
    if printer.json:
        printer.json_object(devices=found)
    else:
        headers = [field.replace("_", " ") for field in _SHOWN]
        printer.table(headers, [_row(device) for device in found])
    for device in found:
        if device["error"]:
            complain(device["error"].removeprefix(f"{device['name']}: "), device["name"])
    return Exit.DONE


def _described(device: Device, limit: TimeLimit) -> dict[str, Any]:
    try:
        return limit.call(f"{device.name}: the look at its details", device.to_dict)
    except DeadlineExceededError as error:
        promised = {field: getattr(device, field) for field in _PROMISED}
        return promised | dict.fromkeys(_ASKED) | {"error": error.message}


def _row(device: Mapping[str, Any]) -> list[object]:
    shown = {**device, "memory": _memory(device["memory_free"], device["memory_total"])}
    return [shown[field] for field in _SHOWN]


def _memory(free: int | None, total: int | None) -> str | None:
    return None if free is None or total is None else f"{size(free)} of {size(total)} free"


# -- trying ---------------------------------------------------------------------------------------


def _try_all(devices: Sequence[Device], printer: Printer, limit: TimeLimit) -> Exit:
    from modular_tf.cli.device_smoke import try_device  # noqa: PLC0415  (listing needs none of it)

    tried = [(device, try_device(device, limit)) for device in devices]
    if printer.json:
        printer.json_object(
            devices=[_described(device, limit) | _as_json(outcomes) for device, outcomes in tried]
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
        (device.name, outcome.check, outcome.word, f"{outcome.elapsed_ms:.2f}", outcome.line)
        for outcome in outcomes
    ]


def _all_work(outcomes: Sequence[Outcome]) -> bool:
    return all(outcome.works is True for outcome in outcomes)
