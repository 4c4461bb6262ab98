"""A process that uses a filesystem and ends without taking it down; run as `python -m`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from modular_tf.check.expectation import Blocked, Deviation
from modular_tf.check.filesystem.stage import FilesystemStage
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround

_SECONDS = 40.0
_SHOWN = 500
_BLOCKED = 41
"""An exit status that a plugin is not likely to choose."""


def expect_clean_end(ground: FilesystemGround) -> None:
    """Demand that a process that has used a filesystem ends as if it had not.

    Raises:
        Deviation: It crashes, or does not end.
        Blocked: The filesystem cannot be used.
    """
    given = json.dumps([{**asdict(ground.target), "reached": "raw"}, ground.path("X")])
    try:
        done = subprocess.run(  # noqa: S603  (this very module)
            [sys.executable, "-m", __name__],
            input=given, capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        message = "a process that has not called cleanup does not end"
        raise Deviation(message, found=f"it still ran after {_SECONDS:.0f} s") from None
    said = done.stderr.strip()[-_SHOWN:]
    if done.returncode == _BLOCKED:
        raise Blocked(said)
    if done.returncode:
        raise Deviation(
            "a process that has not called cleanup fails at its end",
            expected="it exits with status 0",
            found=f"{_ending(done.returncode)}; it said: {said}",
        )


def _ending(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def _main() -> FilesystemStage:
    target, path = json.load(sys.stdin)
    lists = {name: tuple(target[name]) for name in ("companions", "absent")}
    try:
        stage = FilesystemStage(Target(**{**target, **lists, "reached": Pass.RAW}))
    except Blocked as blocked:
        sys.stderr.write(str(blocked))
        sys.exit(_BLOCKED)
    # Whatever it answers: what matters is that clients, threads and caches have come to life.
    for operation in ("path_exists", "new_random_access_file", "get_children"):
        if stage.subject.offers(operation):
            getattr(stage.subject, operation)(path)
    return stage


if __name__ == "__main__":
    kept = _main()
