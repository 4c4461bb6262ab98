"""The check of what a device plugin does to the heap: every other check sees it too."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.check.check import ROBUST, Suite
from modular_tf.check.expectation import Unsupported
from modular_tf.check.memory_watch import raise_harm_at_loading
from modular_tf.check.native.checking_allocator import checking_allocator

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround

suite = Suite("device", "heap", level=ROBUST)

_ODD_SIZES = (1, 7, 9, 31, 33, 127, 129, 7777)
"""In bytes: where what is kept beside memory is often too short."""


@suite.check("SE-329")
def keeps_to_its_heap(device: DeviceGround) -> None:
    """A plugin writes only into heap blocks of its own, and frees each once.

    Otherwise: The damage shows up elsewhere: a crash, or wrong data, in whatever lies beside it.
    Remedy: Run the plugin with AddressSanitizer, and look at the calls before the one that is
    named.
    Source: the C language

    What was done to the heap is looked at after each check.
    """
    if checking_allocator() is None:
        raise Unsupported("the heap can be watched with the checking allocator only")
    raise_harm_at_loading("SE-329")
    for size in _ODD_SIZES:
        for step in (_use_memory, _use_host_memory, _use_stream):
            with suppress(Unsupported):
                step(device, size)


def _use_memory(device: DeviceGround, size: int) -> None:
    memory = device.filled(device.bytes(size))
    device.content(memory)
    device.destroy(memory)


def _use_host_memory(device: DeviceGround, size: int) -> None:
    device.destroy(device.host_block(size))


def _use_stream(device: DeviceGround, size: int) -> None:
    stream, event, memory = device.stream(), device.event(), device.memory(size)
    device.subject.record_event(stream, event)
    device.subject.memcpy_htod(stream, memory, device.buffer(size), size)
    device.done(stream)
    for thing in (memory, event, stream):
        device.destroy(thing)
