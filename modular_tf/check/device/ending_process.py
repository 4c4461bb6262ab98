"""In a process that is to end: uses a device, and leaves it in one state or another."""

from __future__ import annotations

from typing import Any

from modular_tf.check.device.ground import prepared
from modular_tf.check.device.process_end import BUSY, DESTROYED
from modular_tf.check.device.stage import DeviceStage
from modular_tf.check.expectation import Blocked, Unsupported
from modular_tf.check.new_process import leave
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
    stage = DeviceStage(target)
    subject = stage.subject
    memory = _made(subject.allocate(_SIZE), "allocate")
    block = _made(subject.host_memory_allocate(_SIZE), "host_memory_allocate")
    stream = _made(subject.create_stream(), "create_stream")
    event = _made(subject.create_event(), "create_event")
    for _ in range(_OUTSTANDING if way == BUSY else 1):
        # From the plugin's memory: the interpreter frees its own while the stream still reads.
        prepared(subject.memcpy_htod(stream, memory, block, _SIZE), "memcpy_htod")
    prepared(subject.record_event(stream, event), "record_event")
    if way != BUSY:
        prepared(subject.block_host_until_done(stream), "block_host_until_done")
    if way == DESTROYED:
        subject.destroy_event(event)
        subject.destroy_stream(stream)
        subject.deallocate(memory)
        subject.host_memory_deallocate(block)
        stage.close()
    return stage, memory, block, stream, event


def _made(answer: Any, what: str) -> Any:
    prepared(answer, what)
    return answer.value
