"""A process that uses a device and ends, in one way or another; run as `python -m`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import asdict, replace

from modular_tf.check.device.stage import DeviceStage
from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target

DESTROYED = "everything destroyed"
KEPT = "nothing destroyed"

_SIZE = 4096
_SECONDS = 20.0
_SHOWN = 500
_BLOCKED, _UNSUPPORTED = 41, 42
"""Exit statuses that a plugin is not likely to choose."""


def expect_clean_end(target: Target, way: str) -> None:
    """Demand that a process that has used a device ends as if it had not.

    Args:
        target: The plugin.
        way: `DESTROYED` or `KEPT`: what becomes of devices, memory and streams first.

    Raises:
        Deviation: It crashes, or does not end.
        Blocked: The device cannot be used.
        Unsupported: There is none.
    """
    expected = "it exits with status 0"
    given = json.dumps({**asdict(replace(target, reached=Pass.RAW)), "reached": "raw", "way": way})
    try:
        done = subprocess.run(  # noqa: S603  (this very module)
            [sys.executable, "-m", __name__],
            input=given, capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        message = f"a process does not end, with {way}"
        raise Deviation(message, expected=expected, found=f"{_SECONDS:.0f} s later") from None
    said = done.stderr.strip()[-_SHOWN:]
    if done.returncode == _BLOCKED:
        raise Blocked(said)
    if done.returncode == _UNSUPPORTED:
        raise Unsupported(said)
    if done.returncode:
        raise Deviation(
            f"a process fails at its end, with {way}",
            expected=expected,
            found=f"{_ending(done.returncode)}; it said: {said}",
        )


def _ending(status: int) -> str:
    """Return how a process ended."""
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def _use(target: Target, way: str) -> DeviceStage:
    """Make something of each kind, and have a stream work."""
    stage = DeviceStage(target)
    subject = stage.subject
    memory, stream = subject.allocate(_SIZE), subject.create_stream()
    event, block = subject.create_event(), subject.host_memory_allocate(_SIZE)
    if None in (memory.value, stream.value, event.value, block.value):
        raise Blocked("memory, a stream or an event cannot be made")
    copied = subject.memcpy_htod(stream.value, memory.value, block.value, _SIZE)
    recorded = subject.record_event(stream.value, event.value)
    waited = subject.block_host_until_done(stream.value)
    if not (copied.ok and recorded.ok and waited.ok):
        raise Blocked("a stream does not copy")
    if way == DESTROYED:
        subject.destroy_event(event.value)
        subject.destroy_stream(stream.value)
        subject.deallocate(memory.value)
        subject.host_memory_deallocate(block.value)
        stage.close()
    return stage


def _main() -> DeviceStage:
    given = json.load(sys.stdin)
    way = given.pop("way")
    lists = {name: tuple(given[name]) for name in ("companions", "absent")}
    try:
        return _use(Target(**{**given, **lists, "reached": Pass.RAW}), way)
    except (Blocked, Unsupported) as error:
        sys.stderr.write(str(error))
        sys.exit(_BLOCKED if isinstance(error, Blocked) else _UNSUPPORTED)


if __name__ == "__main__":
    kept = _main()
