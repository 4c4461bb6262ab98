"""Whether a process that has used a device ends as if it had not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.expectation import Deviation
from modular_tf.check.new_process import run_in_new_process

if TYPE_CHECKING:
    from modular_tf.check.target import Target

DESTROYED = "everything destroyed"
KEPT = "nothing destroyed"
BUSY = "work outstanding"

_SECONDS = 20.0


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
    given = {"target": target.as_dict(), "way": way}
    ended = run_in_new_process(
        "modular_tf.check.device.ending_process", "use_device", given, seconds=_SECONDS
    )
    expected = "it exits with status 0"
    if ended is None:
        found = f"it is there {_SECONDS:.0f} s later"
        raise Deviation(f"a process does not end, with {way}", expected=expected, found=found)
    if ended.status:
        message = f"a process fails at its end, with {way}"
        raise Deviation(message, expected=expected, found=ended.how)
