"""In a process that is to end: uses a device, and leaves it in one state or another."""

from __future__ import annotations

from typing import Any

from modular_tf.check.device.process_end import BUSY, DESTROYED
from modular_tf.check.device.session import DeviceSession
from modular_tf.check.device.workspace import Workspace, prepared
from modular_tf.check.expectation import Blocked, Unsupported
from modular_tf.check.new_process import leave
from modular_tf.check.session import random_for
from modular_tf.check.target import Target

_SIZE = (1 << 20) + 1
_OUTSTANDING = 64
"""Copies of a MiB: more than any device has done by the end of the process."""


def use_device(target: dict[str, Any], way: str) -> object:
    """Use a device; where it cannot be used, exit with a status that says so.

    Args:
        target: The fields of a `Target`, as JSON knows them.
        way: See `expect_clean_end`.

    Returns:
        What must live until the process ends.
    """
    try:
        return _use(Target.from_dict(target), way)
    except (Blocked, Unsupported) as error:
        leave(error)


def _use(target: Target, way: str) -> object:
    session = DeviceSession(target)
    device = Workspace(session.access, target, random_for(target, way))
    memory, block, stream = device.memory(_SIZE), device.host_block(_SIZE), device.stream()
    for _ in range(_OUTSTANDING if way == BUSY else 1):
        # From the plugin's memory: the interpreter frees its own while the stream still reads.
        prepared(device.memcpy_htod(stream, memory, block, _SIZE))
    device.marked(stream)
    if way != BUSY:
        device.done(stream)
    if way == DESTROYED:
        device.close()
        session.close()
    return session, device
