"""`devices --smoke`: checks of the conformance kit that try the basic operations of a device.

They run through this package in processes of their own, which a plugin may crash or block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.check.job import Job, Limits
from modular_tf.check.outcome import BAD, Pass, Verdict
from modular_tf.check.plan import DEVICE_OPERATIONS
from modular_tf.check.run import run_checks
from modular_tf.check.target import Target
from modular_tf.discovery.linking.system_libraries import is_of_system

if TYPE_CHECKING:
    from modular_tf.check.outcome import Outcome
    from modular_tf.device.device import Device
    from modular_tf.service.plugin import Plugin

_USUAL_S = 30.0  # that each of the checks may take by default
_NOT_TRIED = "the device has not come back from an earlier check"


class _HungError(Exception):
    """A check did not return in time; each further one could take as long."""


def try_device(device: Device, plugin: Plugin, seconds: float) -> list[dict[str, Any]]:
    """Try the operations of a plugin's device, up to the first that does not return.

    The result is one JSON object for each operation: `check`, its name; `works`, null where it was
    not tried; `elapsed_ms`; and `message`, what went wrong or is worth knowing, null for nothing. A
    check may take `seconds`, and loading the plugin twice as long.
    """
    target = Target(
        path=plugin.path,
        kind="device",
        reached=Pass.HOST,
        ordinal=device.ordinal,
        companions=plugin.facts.companions,
        absent=plugin.facts.absent,
    )
    job = Job(target, "", tuple(DEVICE_OPERATIONS))
    tried: dict[str, dict[str, Any]] = {}

    def add(outcome: Outcome) -> None:
        check, verdict = DEVICE_OPERATIONS[outcome.check_id], outcome.verdict
        works = None if verdict is Verdict.SKIPPED else verdict not in BAD | {Verdict.BLOCKED}
        message = f"{outcome.message}: {outcome.found}" if outcome.found else outcome.message
        if outcome.incident is not None:
            frames = outcome.incident.backtrace
            own = [frame for frame in frames if not is_of_system(frame.partition(" ")[0])]
            message += "".join(f", at {frame}" for frame in [*own, *frames][:1])
        if check == "timer" and works and not device.factory.tables.executor.has("create_timer"):  # type: ignore[attr-defined]
            message = "by the host's clock: the plugin has no timers"
        if check not in tried or tried[check]["works"]:
            elapsed_ms = round(outcome.seconds * 1e3, 3)
            text = "; ".join(message.splitlines()) or None
            tried[check] = {"works": works, "elapsed_ms": elapsed_ms, "message": text}
        if verdict is Verdict.HUNG:
            raise _HungError

    try:
        run = run_checks([job], Limits(patience=seconds / _USUAL_S, preload=False), add)
    except _HungError:
        pass
    else:
        for fault in run.faults:
            raise fault
    absent = {"works": None, "elapsed_ms": 0.0, "message": _NOT_TRIED}
    names = dict.fromkeys(DEVICE_OPERATIONS.values())
    return [{"check": name, **tried.get(name, absent)} for name in names]
