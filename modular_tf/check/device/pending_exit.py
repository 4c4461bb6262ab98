"""A process that ends while its device has work outstanding; run as `python -m`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import asdict

from modular_tf.check.device.ground import prepared
from modular_tf.check.device.host_buffer import HostBuffer
from modular_tf.check.device.stage import DeviceStage
from modular_tf.check.expectation import Deviation
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target

_COPIES = 64
_SIZE = (1 << 20) + 1
_SECONDS = 20.0
_SHOWN = 500


def ends_with_work_outstanding(target: Target) -> None:
    """Demand that a process that uses a device ends as if it did not.

    Raises:
        Deviation: It crashes, or does not end.
    """
    expected = "it exits with status 0"
    command = [sys.executable, "-m", __name__]
    given = json.dumps({**asdict(target), "reached": target.reached.value})
    try:
        done = subprocess.run(  # noqa: S603  (this very module)
            command, input=given, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        message = "a process that ends while work is outstanding does not end"
        raise Deviation(message, expected=expected, found=f"{_SECONDS:.0f} s later") from None
    if done.returncode:
        raise Deviation(
            "a process that ends while work is outstanding fails at its end",
            expected=expected,
            found=f"{_shown(done.returncode)}; it said: {done.stderr.strip()[-_SHOWN:]}",
        )


def _shown(status: int) -> str:
    """Return how a process ended."""
    if status < 0:
        return f"signal {signal.Signals(-status).name}"
    return f"exit status {status}"


def _enqueue(target: Target) -> tuple[DeviceStage, HostBuffer]:
    """Give a stream more work than it can have done by the end of the process.

    Returns:
        What must live until then.
    """
    stage = DeviceStage(target)
    subject = stage.subject
    source = HostBuffer(_SIZE)
    memory, stream = subject.allocate(_SIZE), subject.create_stream()
    prepared(memory, "allocate")
    prepared(stream, "create_stream")
    for _ in range(_COPIES):
        prepared(subject.memcpy_htod(stream.value, memory.value, source, _SIZE), "memcpy_htod")
    return stage, source


if __name__ == "__main__":
    given = json.load(sys.stdin)
    lists = {name: tuple(given[name]) for name in ("companions", "absent")}
    kept = _enqueue(Target(**{**given, **lists, "reached": Pass(given["reached"])}))
