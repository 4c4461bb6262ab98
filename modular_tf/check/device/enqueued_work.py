"""Giving a stream something to do, so that there is something in front of what a check is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.device.ground import prepared

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Stream


def enqueue_work(ground: DeviceGround, stream: Stream, n_bytes: int) -> None:
    """Enqueue a copy to new memory of the device, which every layout of plugins can do.

    Args:
        ground: Where.
        stream: On which stream.
        n_bytes: Each check has a number of its own, by which a device can tell it from others.
    """
    target, source = ground.memory(n_bytes), ground.buffer(n_bytes)
    prepared(ground.subject.memcpy_htod(stream, target, source, n_bytes), "memcpy_htod")
