"""List the devices that plugins offer, or try what works on them.

What a plugin does not answer within the time limit is reported as failed. `--smoke` tries each
device in a process of its own, which a plugin may crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.cli.device_details import described
from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error
from modular_tf.cli.list_plugins import reason_line
from modular_tf.cli.session import session
from modular_tf.cli.text import size
from modular_tf.cli.time_limit import TimeLimit, seconds
from modular_tf.discovery.candidate import Source
from modular_tf.errors import NotFoundError
from modular_tf.service.report import State

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence

    from modular_tf.cli.printer import Printer
    from modular_tf.cli.smoke_trial import Trial
    from modular_tf.device.device import Device
    from modular_tf.service.report import PluginRecord
    from modular_tf.service.service import PluginService

_SHOWN = (
    "name", "platform", "priority", "plugin", "hardware_name", "vendor", "memory", "streams",
)  # fmt: skip
_TRIED = ("name", "check", "outcome", "ms", "message")
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
    """Run `modular-tf devices` and return its exit status."""
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
    code = _try_all(devices, options, printer) if options.smoke else _list(devices, printer, limit)
    absent = _report_missing(service)
    if not devices:
        report_error(_none_found(service, options.device))
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
        return f"no device {wish!r}; there are: {there}; `modular-tf why {wish}` shows more"
    return "no devices were found; `modular-tf list` shows what became of each plugin"


def _report_missing(service: PluginService) -> bool:
    """Report why devices are missing that were requested or announced."""
    absent = [plugin for plugin in service.plugins() if _is_missed(plugin)]
    for plugin in absent:
        reason = plugin.reason.as_dict() if plugin.reason else None
        report_error(f"{plugin.state}: {reason_line(reason)}", plugin.name)
    return bool(absent)


def _is_missed(plugin: PluginRecord) -> bool:
    if plugin.state is not State.LOADED:
        return plugin.source == Source.ARGUMENT.value
    return any(reason.stage == "list" for reason in plugin.reasons)


# -- listing --------------------------------------------------------------------------------------


def _list(devices: Sequence[Device], printer: Printer, limit: TimeLimit) -> Exit:
    found = [described(device, limit) for device in devices]
    if printer.json:
        printer.json_object(devices=found)
    else:
        headers = [field.replace("_", " ") for field in _SHOWN]
        printer.table(headers, [_row(device) for device in found])
    for device in found:
        if device["error"]:
            report_error(device["error"].removeprefix(f"{device['name']}: "), device["name"])
    return Exit.DONE


def _row(device: Mapping[str, Any]) -> list[object]:
    shown = {**device, "memory": _memory(device["memory_free"], device["memory_total"])}
    return [shown[field] for field in _SHOWN]


def _memory(free: int | None, total: int | None) -> str | None:
    return None if free is None or total is None else f"{size(free)} of {size(total)} free"


# -- trying ---------------------------------------------------------------------------------------


def _try_all(devices: Sequence[Device], options: Namespace, printer: Printer) -> Exit:
    from modular_tf.cli.smoke_trial import try_device  # noqa: PLC0415  (listing needs none of it)

    tried = [try_device(device, options) for device in devices]
    if printer.json:
        printer.json_object(devices=[_as_json(trial) for trial in tried])
    else:
        printer.table(_TRIED, [row for trial in tried for row in _rows(trial)])
    failed = [trial.device.name for trial in tried if not trial.works]
    if failed:
        report_error(f"{len(failed)} of {len(tried)} devices failed: {', '.join(failed)}")
    return Exit.NO if failed else Exit.DONE


def _as_json(trial: Trial) -> dict[str, Any]:
    checks = [outcome.as_dict() for outcome in trial.outcomes]
    return {**(trial.details or {}), "works": trial.works, "checks": checks}


def _rows(trial: Trial) -> list[tuple[object, ...]]:
    name = trial.device.name
    if not trial.outcomes:
        return [(name, None, "nothing to try", None, "it only describes itself")]
    return [
        (name, outcome.check, outcome.word, f"{outcome.elapsed_ms:.2f}", outcome.line)
        for outcome in trial.outcomes
    ]
