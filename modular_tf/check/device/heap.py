"""The check of what a device plugin does to the heap: every other check sees it too."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.check.breach import raise_harm_at_loading
from modular_tf.check.check import CheckList
from modular_tf.check.expectation import Unsupported
from modular_tf.check.level import Level
from modular_tf.check.native.checking_allocator import checking_allocator

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround

CHECKS = CheckList("device", "heap")

_ODD_SIZES = (1, 7, 9, 31, 33, 127, 129, 7777)
"""In bytes: where what is kept beside memory is often too short."""


@CHECKS.check("SE-329", Level.ROBUST)
def keeps_to_its_heap(ground: DeviceGround) -> None:
    """Memory, streams, events and timers, made, used and destroyed.

    What was done to the heap is looked at after each check.
    """
    if checking_allocator() is None:
        raise Unsupported("the heap can be watched with the checking allocator only")
    raise_harm_at_loading("SE-329")
    for size in _ODD_SIZES:
        for step in (_use_memory, _use_host_memory, _use_stream):
            with suppress(Unsupported):
                step(ground, size)


def _use_memory(ground: DeviceGround, size: int) -> None:
    memory = ground.filled(ground.bytes(size))
    ground.content(memory)
    ground.destroy(memory)


def _use_host_memory(ground: DeviceGround, size: int) -> None:
    ground.destroy(ground.host_block(size))


def _use_stream(ground: DeviceGround, size: int) -> None:
    stream, event, memory = ground.stream(), ground.event(), ground.memory(size)
    ground.subject.record_event(stream, event)
    ground.subject.memcpy_htod(stream, memory, ground.buffer(size), size)
    ground.done(stream)
    for thing in (memory, event, stream):
        ground.destroy(thing)
