"""Whether a process that has used a device ends as if it had not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from modular_tf.check.expectation import Blocked, Deviation, Unsupported

if TYPE_CHECKING:
    from modular_tf.check.target import Target

DESTROYED = "everything destroyed"
KEPT = "nothing destroyed"
BUSY = "work outstanding"

BLOCKED_STATUS, UNSUPPORTED_STATUS = 41, 42
"""What it exits with where it cannot use the device; no plugin is likely to choose these."""

_SECONDS = 20.0
_SHOWN = 500
# It imports from where this process does.
_START = """\
import json, sys
given = json.load(sys.stdin)
sys.path[:] = given.pop("path_of_imports")
from modular_tf.check.device.ending_process import use_device
kept = use_device(**given)
"""


def expect_clean_end(target: Target, way: str) -> None:
    """Have a process of its own use a device, and demand that it ends with its own exit status.

    Args:
        target: The device.
        way: `DESTROYED`, `KEPT` or `BUSY`: what becomes of devices, memory and streams first.

    Raises:
        Deviation: It crashes, does not end, or ends with another status.
        Blocked: The device cannot be used.
        Unsupported: There is none.
    """
    given = {**asdict(target), "reached": target.reached.value}
    job = json.dumps({"path_of_imports": sys.path, "target": given, "way": way})
    try:
        done = subprocess.run(  # noqa: S603  (our own interpreter and text)
            [sys.executable, "-c", _START],
            input=job, capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Deviation(
            f"a process does not end, with {way}",
            expected="it exits with status 0",
            found=f"it is there {_SECONDS:.0f} s later",
        ) from None
    _judge(done.returncode, done.stderr.strip()[-_SHOWN:], way)


def _judge(status: int, said: str, way: str) -> None:
    if status in {BLOCKED_STATUS, UNSUPPORTED_STATUS}:
        why = said.rpartition("\n")[2]
        raise Blocked(why) if status == BLOCKED_STATUS else Unsupported(why)
    if status:
        ending = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        raise Deviation(
            f"a process fails at its end, with {way}",
            expected="it exits with status 0",
            found=f"{ending}; it said: {said}",
        )
