"""Checks of the end: of one device among others, of the platform, of the process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.check.check import LIBRARY, REGISTERS, ROBUST, Suite
from modular_tf.check.device.workspace import HostBuffer, expect_bytes
from modular_tf.check.endings import DESTROYED, KEPT, expect_clean_end
from modular_tf.check.expectation import Deviation, Unsupported
from modular_tf.check.outcome import Pass

if TYPE_CHECKING:
    from modular_tf.check.device.session import DeviceLibrary

suite = Suite("device", "lifetime", level=ROBUST, ways=LIBRARY, source="device.h")

_CONTENT = bytes(range(256)) * 16
_TWO = 2


@suite.check("SE-180")
def devices_end_alone(plugin: DeviceLibrary) -> None:
    """Destroying a device leaves the other devices of the platform working.

    Otherwise: One device that is closed takes the work on all others down.
    Remedy: Keep what devices share until destroy_platform.
    """
    if plugin.count < _TWO:
        raise Unsupported("the plugin has no second device here")
    size, back = len(_CONTENT), HostBuffer(len(_CONTENT))
    with plugin.device(0) as first:
        memory = first.allocate(size).must_be_ok()
        first.sync_memcpy_htod(memory, HostBuffer(_CONTENT), size).must_be_ok()
        with plugin.device(1) as second:
            second.deallocate(second.allocate(size).must_be_ok())
        first.sync_memcpy_dtoh(back, memory, size).must_be_ok()
        what = "the memory of device 0, after device 1 was destroyed,"
        expect_bytes(back.content(), _CONTENT, what)
        first.deallocate(memory)


@suite.check("SE-182")
def process_ends_tidily(plugin: DeviceLibrary) -> None:
    """A process that has destroyed everything ends with its own exit status.

    Otherwise: Each run seems to have failed: scripts and schedulers repeat it.
    Remedy: Join threads in destroy_device; let destructors of the library do nothing twice.
    """
    expect_clean_end(replace(plugin.target, reached=Pass.RAW, ordinal=0), DESTROYED)


@suite.check("SE-183")
def process_ends_untidily(plugin: DeviceLibrary) -> None:
    """A process that has destroyed nothing ends with its own exit status.

    Otherwise: TensorFlow destroys nothing at its end, so each run of it seems to have failed.
    Remedy: Let destructors of the library accept devices and streams that still exist.
    Source: TensorFlow 2.21, observed
    """
    expect_clean_end(replace(plugin.target, reached=Pass.RAW, ordinal=0), KEPT)


@suite.check("SE-032", level=REGISTERS)
def destroying_returns(plugin: DeviceLibrary) -> None:
    """A device, if there is one, and then the platform; nothing can be done with it after that."""
    platform, failures = plugin.platform, []
    if plugin.count:
        with_device = platform.create_device(0)
        if with_device.ok:
            failures += [one.message for one in with_device.value.destroy()]
    failures += platform.take_down()
    if failures:
        raise Deviation("; ".join(failures))
