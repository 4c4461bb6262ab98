"""Checks of the end: of one device among others, of the platform, of the process."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.check.check import LIBRARY, REGISTERS, ROBUST, Suite
from modular_tf.check.device.host_buffer import HostBuffer
from modular_tf.check.device.process_end import DESTROYED, KEPT, expect_clean_end
from modular_tf.check.device.raw_subject import created_device
from modular_tf.check.expectation import Blocked, Deviation, Unsupported, expect_equal
from modular_tf.check.outcome import Pass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.device.library_stage import DeviceLibraryGround
    from modular_tf.check.device.raw_subject import RawDeviceSubject
    from modular_tf.check.target import Target

suite = Suite("device", "lifetime", level=ROBUST, ways=LIBRARY, source="device.h")

_CONTENT = bytes(range(256)) * 16
_TWO = 2


@contextmanager
def _created(plugin: DeviceLibraryGround, ordinal: int) -> Iterator[RawDeviceSubject]:
    subject = created_device(plugin.platform, ordinal)
    try:
        yield subject
    finally:
        subject.created.destroy()


def _count(plugin: DeviceLibraryGround) -> int:
    answer = plugin.platform.device_count()
    if not answer.ok:
        raise Blocked(f"get_device_count failed: {answer.message}")
    count: int = answer.value
    return count


@suite.check("SE-180")
def devices_end_alone(plugin: DeviceLibraryGround) -> None:
    """Destroying a device leaves the other devices of the platform working.

    Otherwise: One device that is closed takes the work on all others down.
    Remedy: Keep what devices share until destroy_platform.
    """
    if _count(plugin) < _TWO:
        raise Unsupported("the plugin has no second device here")
    with _created(plugin, 0) as first:
        memory = first.allocate(len(_CONTENT)).must_be_ok()
        source, back = HostBuffer(_CONTENT), HostBuffer(len(_CONTENT))
        first.sync_memcpy_htod(memory, source, len(_CONTENT)).must_be_ok()
        with _created(plugin, 1) as second:
            other = second.allocate(len(_CONTENT)).must_be_ok()
            second.deallocate(other)
        first.sync_memcpy_dtoh(back, memory, len(_CONTENT)).must_be_ok()
        expect_equal(
            back.content(), _CONTENT, "the memory of device 0, after device 1 was destroyed,"
        )
        first.deallocate(memory)


def _by_slots(plugin: DeviceLibraryGround) -> Target:
    return replace(plugin.target, reached=Pass.RAW, ordinal=0)


@suite.check("SE-182")
def process_ends_tidily(plugin: DeviceLibraryGround) -> None:
    """A process that has destroyed everything ends with its own exit status.

    Otherwise: Each run seems to have failed: scripts and schedulers repeat it.
    Remedy: Join threads in destroy_device; let destructors of the library do nothing twice.
    """
    expect_clean_end(_by_slots(plugin), DESTROYED)


@suite.check("SE-183")
def process_ends_untidily(plugin: DeviceLibraryGround) -> None:
    """A process that has destroyed nothing ends with its own exit status.

    Otherwise: TensorFlow destroys nothing at its end, so each run of it seems to have failed.
    Remedy: Let destructors of the library accept devices and streams that still exist.
    Source: TensorFlow 2.21, observed
    """
    expect_clean_end(_by_slots(plugin), KEPT)


@suite.check("SE-032", level=REGISTERS)
def destroying_returns(plugin: DeviceLibraryGround) -> None:
    """A device, if there is one, and then the platform; nothing can be done with it after that."""
    platform, failures = plugin.platform, []
    if _count(plugin):
        with_device = platform.create_device(0)
        if with_device.ok:
            failures += [one.message for one in with_device.value.destroy()]
    failures += platform.take_down()
    if failures:
        raise Deviation("; ".join(failures))
