"""The process in which one device is tried: what its plugin breaks there, the command survives.

It loads plugins as the command did, tries the device, and tells each step before it is made. One
JSON object a line: `{"ready": 1}` when the plugins are there, `{"files": FILES}` of the device's,
`{"enters": STEP}`, `{"outcome": OUTCOME}`, `{"details": DETAILS}`, and `{"failed": TEXT}` where the
device is not there or its plugin cannot be closed. `native/core/crash_report.h` says what the
native core adds.
"""

from __future__ import annotations

import json
import os
import signal
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from modular_tf.cli import logs
from modular_tf.cli.device_details import described
from modular_tf.cli.device_smoke import try_checks
from modular_tf.cli.failures import EXPECTED
from modular_tf.cli.session import session
from modular_tf.cli.time_limit import TimeLimit
from modular_tf.native.crash_report import report_crashes
from modular_tf.native.parent_death import die_with_parent
from modular_tf.native.preloading import forget_preload

if TYPE_CHECKING:
    from collections.abc import Sequence

DETAILS = "details"
"""The step in which a device is asked what it is."""
CLOSE = "close"
"""The step in which its plugin is closed."""


def serve(
    *, report: int, parent: int, options: dict[str, Any], device: str, checks: Sequence[str]
) -> None:
    """Try a device, and end the process where a call is stuck in its plugin.

    Args:
        report: The descriptor to tell it on.
        parent: The command's process, whose end is this one's.
        options: The options of the command.
        device: The name of the device.
        checks: What to try.
    """
    die_with_parent(parent)
    os.set_inheritable(report, False)  # noqa: FBT003
    forget_preload()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the command ends this process
    given = Namespace(**options)
    logs.set_up(given.log, given.verbose)
    report_crashes(report)
    try:
        _try(report, given, device, checks)
    except EXPECTED as error:
        _tell(report, {"failed": str(error)})


def _try(report: int, given: Namespace, device: str, checks: Sequence[str]) -> None:
    limit = TimeLimit(given.timeout)
    with session(given) as service:
        _tell(report, {"ready": 1})
        found = service.device(device)
        plugin = service.entry(found.plugin).plugin
        _tell(report, {"files": [plugin.path, *plugin.facts.companions]})
        for outcome in try_checks(found, checks, limit, lambda name: _enter(report, name)):
            _tell(report, {"outcome": outcome.as_dict()})
        if given.json:
            _enter(report, DETAILS)
            _tell(report, {"details": described(found, limit)})
        limit.leave_if_stuck(0)
        _enter(report, CLOSE)


def _enter(report: int, step: str) -> None:
    _tell(report, {"enters": step})


def _tell(report: int, entry: dict[str, Any]) -> None:
    left = json.dumps(entry).encode() + b"\n"
    while left:
        left = left[os.write(report, left) :]
