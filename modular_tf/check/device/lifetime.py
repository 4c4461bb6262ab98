"""Checks of the end: of one device among others, of the platform, of the process."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.check.answers import expect_ok
from modular_tf.check.check import LIBRARY, CheckList
from modular_tf.check.device.host_buffer import HostBuffer
from modular_tf.check.device.process_end import DESTROYED, KEPT, expect_clean_end
from modular_tf.check.device.raw_subject import created_device
from modular_tf.check.expectation import Blocked, Deviation, Unsupported, expect_equal
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.device.library_stage import DeviceLibraryGround
    from modular_tf.check.device.raw_subject import RawDeviceSubject
    from modular_tf.check.target import Target

CHECKS = CheckList("device", "lifetime")

_CONTENT = bytes(range(256)) * 16
_TWO = 2


@contextmanager
def _created(ground: DeviceLibraryGround, ordinal: int) -> Iterator[RawDeviceSubject]:
    subject = created_device(ground.platform, ordinal)
    try:
        yield subject
    finally:
        subject.created.destroy()


def _count(ground: DeviceLibraryGround) -> int:
    answer = ground.platform.device_count()
    if not answer.ok:
        raise Blocked(f"get_device_count failed: {answer.message}")
    count: int = answer.value
    return count


@CHECKS.check("SE-180", Level.ROBUST, passes=LIBRARY)
def devices_end_alone(ground: DeviceLibraryGround) -> None:
    """Memory of the first device is used before and after the end of the second."""
    if _count(ground) < _TWO:
        raise Unsupported("the plugin has no second device here")
    with _created(ground, 0) as first:
        memory = expect_ok(first.allocate(len(_CONTENT)), "allocate on device 0")
        source, back = HostBuffer(_CONTENT), HostBuffer(len(_CONTENT))
        expect_ok(first.sync_memcpy_htod(memory, source, len(_CONTENT)), "sync_memcpy_htod")
        with _created(ground, 1) as second:
            other = expect_ok(second.allocate(len(_CONTENT)), "allocate on device 1")
            second.deallocate(other)
        copied = first.sync_memcpy_dtoh(back, memory, len(_CONTENT))
        expect_ok(copied, "sync_memcpy_dtoh on device 0, device 1 being destroyed,")
        expect_equal(
            back.content(), _CONTENT, "the memory of device 0, after device 1 was destroyed,"
        )
        first.deallocate(memory)


def _by_slots(ground: DeviceLibraryGround) -> Target:
    return replace(ground.target, reached=Pass.RAW, ordinal=0)


@CHECKS.check("SE-182", Level.ROBUST, passes=LIBRARY)
def process_ends_tidily(ground: DeviceLibraryGround) -> None:
    """It uses the device, destroys all, and exits."""
    expect_clean_end(_by_slots(ground), DESTROYED)


@CHECKS.check("SE-183", Level.ROBUST, passes=LIBRARY)
def process_ends_untidily(ground: DeviceLibraryGround) -> None:
    """It uses the device and exits, as TensorFlow does."""
    expect_clean_end(_by_slots(ground), KEPT)


@CHECKS.check("SE-032", Level.REGISTERS, passes=LIBRARY)
def destroying_returns(ground: DeviceLibraryGround) -> None:
    """A device, if there is one, and then the platform; nothing can be done with it after that."""
    platform, failures = ground.platform, []
    if _count(ground):
        with_device = platform.create_device(0)
        if with_device.ok:
            failures += [one.message for one in with_device.value.destroy()]
    failures += platform.take_down()
    if failures:
        raise Deviation("; ".join(failures))
