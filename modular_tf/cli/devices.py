"""`modular-tf devices`: the devices that plugins offer, and what works on them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from modular_tf.cli.frame import Invocation, argument, command
from modular_tf.cli.output import report_error, size
from modular_tf.cli.plugins import reason_line
from modular_tf.cli.process import Exit, expect_exit
from modular_tf.cli.values import seconds
from modular_tf.concurrency.threads import Work
from modular_tf.discovery.candidate import Source
from modular_tf.errors import NotFoundError
from modular_tf.service.report import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.cli.output import Printer
    from modular_tf.device.device import Device
    from modular_tf.service.service import PluginService

_KNOWN = ("name", "device_type", "platform", "ordinal", "priority", "plugin")
_DETAILS = (
    "hardware_name", "vendor", "pci_bus_id", "numa_node", "memory_bandwidth", "gflops",
    "memory_free", "memory_total", "streams",
)  # fmt: skip
_SECONDS = 60.0
_SILENCE_S = 2.0  # that a person is left without a message


@command()
@argument(
    "wish",
    metavar="[DEVICE]",
    required=False,
    help="only devices of this type (GPU), or the one of this name (GPU:0)",
)
@click.option(
    "--smoke",
    is_flag=True,
    help="try memory, copies, fills, an event, a timer and a callback on each device; "
    "the exit code is 1 if one fails",
)
@click.option(
    "--timeout", metavar="SECONDS", type=seconds, default=_SECONDS,
    help=f"how long a device may take for one answer (default {_SECONDS:g})",
)  # fmt: skip
def devices(call: Invocation, *, wish: str | None, smoke: bool, timeout: float) -> Exit:
    """List the devices that plugins offer, or try what works on them.

    What a plugin does not answer within the time limit is reported as failed. `--smoke` tries each
    device in processes of its own, by checks of the conformance kit.
    """
    if smoke:
        import modular_tf.cli.device_smoke  # noqa: F401, PLC0415  (fails here without the kit)
    details = Details(timeout)
    with call.session() as service:
        try:
            # Printed before the service is closed: what failed may fail once more there.
            found = _wanted(service, wish)
            if smoke:
                code = _try_all(service, found, timeout, call, details)
            else:
                code = _list(found, call, details)
            # Plugins whose devices are missing, and were requested or announced.
            absent = [
                plugin
                for plugin in service.plugins()
                if (
                    any(reason.stage == "list" for reason in plugin.reasons)
                    if plugin.state is State.LOADED
                    else plugin.source == Source.ARGUMENT.value
                )
            ]
            for plugin in absent:
                reason = plugin.reason.as_dict() if plugin.reason else None
                report_error(f"{plugin.state}: {reason_line(reason)}", plugin.name)
            if not found:
                there = ", ".join(device.name for device in service.devices())
                why = "no devices were found; `modular-tf list` shows what became of each plugin"
                if there and wish is not None:
                    hint = f"`modular-tf why {wish}` shows more"
                    why = f"no device {wish!r}; there are: {there}; {hint}"
                report_error(why)
                code = Exit.NOTHING
            elif smoke and absent:  # their devices were not tried: this is no success
                code = Exit.NO
        except KeyboardInterrupt:
            details.leave_if_stuck(Exit.INTERRUPTED)
            raise
        details.leave_if_stuck(code)
    return code


def _wanted(service: PluginService, wish: str | None) -> list[Device]:
    if wish is None or ":" not in wish:
        return service.devices(wish)
    try:
        return [service.device(wish)]
    except NotFoundError:
        return []


# -- listing --------------------------------------------------------------------------------------


class Details:
    """The details of devices as JSON, those of each within `seconds`.

    A call that does not return cannot be ended: its thread stays in the plugin's code, and closing
    the plugin would wait for it. `leave_if_stuck` ends the process instead.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._works: list[Work[dict[str, Any]]] = []

    def of(self, device: Device) -> dict[str, Any]:
        """Return the details of a device; one that does not answer in time has an `error`."""
        work = Work(device.to_dict, "modular_tf-details", daemon=True)
        self._works.append(work)
        silence = min(_SILENCE_S, self._seconds)
        if not work.wait(silence) and sys.stderr.isatty():
            message = f"no details yet; the wait ends after {self._seconds:g} s"
            report_error(message, device.name)
        if work.wait(self._seconds - silence):
            return work.outcome()
        return _without_details(device, f"{device.name}: no details within {self._seconds:g} s")

    def leave_if_stuck(self, code: int) -> None:
        """End the process at once if a call is still running in a plugin."""
        if not all(work.is_over for work in self._works):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def _without_details(device: Device, why: str | None) -> dict[str, Any]:
    known = {name: getattr(device, name) for name in _KNOWN}
    return {**known, **dict.fromkeys(_DETAILS), "error": why}


def _list(devices: Sequence[Device], call: Invocation, details: Details) -> Exit:
    def memory(device: dict[str, Any]) -> str | None:
        free, total = device["memory_free"], device["memory_total"]
        known = free is not None and total is not None
        return f"{size(free)} of {size(total)} free" if known else None

    found = [details.of(device) for device in devices]
    columns = ("name", "platform", "priority", "plugin", "hardware name", "vendor")
    call.show("devices", found, (*columns, ("memory", memory), "streams"))
    for device in found:
        if device["error"]:
            report_error(device["error"].removeprefix(f"{device['name']}: "), device["name"])
    return Exit.DONE


# -- trying ---------------------------------------------------------------------------------------


def _try_all(
    service: PluginService,
    devices: Sequence[Device],
    timeout: float,
    call: Printer,
    details: Details,
) -> Exit:
    from modular_tf.cli.device_smoke import try_device  # noqa: PLC0415  (listing needs no kit)

    results: list[dict[str, Any]] = []
    rows: list[tuple[object, ...]] = []
    for device in devices:
        can_work = hasattr(device.factory, "executor")  # else it only describes itself
        plugin = service.entry(device.plugin).plugin if can_work else None
        checks = [] if plugin is None else try_device(device, plugin, timeout)
        works = all(check["works"] is True for check in checks)
        known: dict[str, Any] = {"name": device.name}
        if call.json:
            # A device that nothing worked on in another process is not called in this one.
            is_usable = not checks or any(check["works"] for check in checks)
            why = None if is_usable else checks[0]["message"]
            known = details.of(device) if is_usable else _without_details(device, why)
        results.append({**known, "works": works, "checks": checks})
        if not checks:
            rows.append((device.name, None, "nothing to try", None, "it only describes itself"))
        for check in checks:
            outcome = {True: "works", False: "failed", None: "not tried"}[check["works"]]
            elapsed = f"{check['elapsed_ms']:.2f}"
            rows.append((device.name, check["check"], outcome, elapsed, check["message"]))
    columns = ("name", "check", "outcome", "ms", "message")
    failed = [device["name"] for device in results if not device["works"]]
    expect_exit(Exit.NO if failed else Exit.DONE)
    call.show_object({"devices": results}, lambda: call.table(columns, rows))
    if failed:
        report_error(f"{len(failed)} of {len(devices)} devices failed: {', '.join(failed)}")
    return Exit.NO if failed else Exit.DONE
