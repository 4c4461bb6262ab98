"""Checks of counting and creating devices, and what they are made with."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.check.answers import code_found
from modular_tf.check.check import LIBRARY, REGISTERS, ROBUST, WARNING, WORKS, Suite
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.expectation import Blocked, Deviation, Unsupported, expect, expect_equal
from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.check.native.raw_device import PLATFORM, as_pointer, view_of
from modular_tf.check.repetition import expect_no_leak
from modular_tf.device.factory import MAX_DEVICES
from modular_tf.errors import ModularTFError
from modular_tf.loading.device_loader import RefusedDeviceTables
from modular_tf.loading.plugin_allocator import create_allocator
from modular_tf.native.host_struct import unpack_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.device.library_stage import DeviceLibraryGround
    from modular_tf.check.device.raw_platform import RawPlatform
    from modular_tf.device.plugin_device import PluginDevice
    from modular_tf.loading.device_tables import DeviceTables

suite = Suite("device", "creation", level=REGISTERS, ways=LIBRARY, source="device.h")

_LOOKS = 200
_MOST_TRIED = 16
_PRESETS = (7777, 8888)
_THREADS = 8
_ROUNDS = 60


def _count(plugin: DeviceLibraryGround) -> int:
    """Return the number of devices, which other checks are about."""
    answer = plugin.platform.device_count()
    if not answer.ok:
        raise Blocked(f"get_device_count failed: {answer.message}")
    count: int = answer.value
    if not 0 <= count <= MAX_DEVICES:
        raise Blocked(f"get_device_count said {count}")
    return count


def _last_ordinal(plugin: DeviceLibraryGround) -> int:
    count = _count(plugin)
    if not count:
        raise Unsupported("the plugin has no devices here: there is nothing to check")
    return min(count, _MOST_TRIED) - 1


@contextmanager
def _device(plugin: DeviceLibraryGround, ordinal: int) -> Iterator[PluginDevice]:
    """Create a device for a while."""
    answer = plugin.platform.create_device(ordinal)
    if not answer.ok:
        raise Blocked(f"create_device({ordinal}) failed: {answer.message}")
    device: PluginDevice = answer.value
    try:
        yield device
    finally:
        device.destroy()


# -- counting -------------------------------------------------------------------------------------


@suite.check("SE-040")
def count_succeeds(plugin: DeviceLibraryGround) -> None:
    """Tried once; any count will do."""
    answer = plugin.platform.device_count()
    expect(answer.ok, "get_device_count failed", expected="status OK", found=code_found(answer))


@suite.check("SE-111")
def count_is_not_negative(plugin: DeviceLibraryGround) -> None:
    """The device count is not negative.

    Otherwise: No device of the platform is listed, with no word of why.
    Remedy: Set 0 where there is no device, and a failed status where the number is unknown.
    Source: TensorFlow 2.21, observed
    """
    answer = plugin.platform.device_count()
    expect(
        not answer.ok or answer.value >= 0,
        "the device count is negative",
        expected="0 or more",
        found=str(answer.value),
    )


@suite.check("SE-041")
def count_is_believable(plugin: DeviceLibraryGround) -> None:
    """Tried where the call succeeds."""
    answer = plugin.platform.device_count()
    expect(
        not answer.ok or answer.value <= MAX_DEVICES,
        "the device count is impossible",
        expected=f"at most {MAX_DEVICES}",
        found=str(answer.value),
    )


@suite.check("SE-112")
def count_is_set(plugin: DeviceLibraryGround) -> None:
    """get_device_count sets the count in every call.

    Otherwise: Whatever was in the host's variable is taken for the number of devices.
    Remedy: Assign *device_count on every path that leaves the status OK.
    Source: TensorFlow 2.21, observed
    """
    if not plugin.platform.counts_by_function:
        raise Unsupported("the layout has no get_device_count")
    answers = [plugin.platform.device_count(preset) for preset in _PRESETS]
    untouched = all(
        one.ok and one.value == preset for one, preset in zip(answers, _PRESETS, strict=True)
    )
    expect(
        not untouched,
        "get_device_count succeeded and did not set the count",
        expected="the number of devices in *device_count",
        found=f"{_PRESETS[0]} and {_PRESETS[1]}, as they were before",
    )


@suite.check("SE-113", level=WORKS, severity=WARNING)
def count_stays(plugin: DeviceLibraryGround) -> None:
    """The device count does not change from call to call.

    Otherwise: TensorFlow asks again and again; a device may vanish from a list, or have no device.
    Remedy: Count once, when the plugin is initialised.
    Source: TensorFlow 2.21, observed
    """
    _count(plugin)
    counts = {plugin.platform.device_count().value for _ in range(_LOOKS)}
    expect(
        len(counts) == 1,
        "the device count changes from call to call",
        expected="one number",
        found=f"{sorted(counts)} in {_LOOKS} calls",
    )


@suite.check("SE-114", level=ROBUST)
def count_by_threads(plugin: DeviceLibraryGround) -> None:
    """get_device_count can be called by several threads at once.

    Otherwise: TensorFlow asks again and again; a device may vanish from a list, or have no device.
    Remedy: Guard what it shares, or count once when the plugin is initialised.
    """
    count, platform = _count(plugin), plugin.platform

    def ask() -> set[int]:
        return {platform.device_count().value for _ in range(_LOOKS)}

    found = set().union(*run_at_once([ask] * _THREADS))
    expect_equal(found, {count}, f"the device count, asked by {_THREADS} threads,")


# -- creating -------------------------------------------------------------------------------------


@suite.check("SE-042")
def each_device_is_created(plugin: DeviceLibraryGround) -> None:
    """The first sixteen, one after the other."""
    for ordinal in range(_last_ordinal(plugin) + 1):
        answer = plugin.platform.create_device(ordinal)
        if not answer.ok:
            raise Deviation(
                f"create_device({ordinal}) failed", expected="status OK", found=code_found(answer)
            )
        answer.value.destroy()


@suite.judge("SE-043", "SE-044", "SE-045")
def _without_warning(rule_id: str, plugin: DeviceLibraryGround) -> None:
    """Take the host's word on a device for whether a rule is kept."""
    for ordinal in range(_last_ordinal(plugin) + 1):
        with _device(plugin, ordinal) as device:
            found = [one.message for one in device.details.warnings if one.rule_id == rule_id]
        if found:
            raise Deviation(f"device {ordinal}: {'; '.join(found)}")


@suite.check("SE-115", severity=WARNING)
def ordinal_is_filled_in(plugin: DeviceLibraryGround) -> None:
    """create_device writes the ordinal that it was asked for into SP_Device.

    Otherwise: Work for one device goes to another, if the plugin itself goes by the ordinal.
    Remedy: Copy params->ordinal to params->device->ordinal.

    Of the last device: a zero would not be seen in the first.
    """
    ordinal = _last_ordinal(plugin)
    with _device(plugin, ordinal) as device:
        expect_equal(device.table.value("ordinal"), ordinal, "SP_Device.ordinal")


@suite.check("SE-116", level=ROBUST, severity=WARNING)
def wrong_ordinals_are_refused(plugin: DeviceLibraryGround) -> None:
    """create_device refuses an ordinal that is not below the count.

    Otherwise: A mistake of the host's becomes a device that does not exist.
    Remedy: Compare params->ordinal with the count, and set INVALID_ARGUMENT.
    """
    for ordinal in (_count(plugin), -1):
        answer = plugin.platform.create_device(ordinal)
        if answer.ok:
            answer.value.destroy()
            raise Deviation(
                f"create_device made a device {ordinal}",
                expected=f"a failed status: there are {_count(plugin)} devices",
                found="OK",
            )


@suite.check("SE-117")
def device_stays_inside(plugin: DeviceLibraryGround) -> None:
    """create_device writes no further than SP_Device goes.

    Otherwise: The host's memory behind the struct is overwritten.
    Remedy: Assign fields one by one, of the header that the host has.
    """
    ordinal, platform = _last_ordinal(plugin), plugin.platform
    shape = layout("SP_Device", platform.tables.dialect)
    device = GuardedMemory(shape.size, (shape.struct_size or 0).to_bytes(8, "little"))
    params = GuardedMemory.words(32, 0, ordinal, device.address)
    own = as_pointer(platform.tables.platform.address)
    answer = platform.caller.ask(
        "create_device",
        f"platform, {{ordinal={ordinal}}}",
        own,
        params.pointer,
        table=PLATFORM,
        lent=(params, device),
    )
    if not answer.ok:
        raise Blocked(f"create_device({ordinal}) failed: {answer.message}")
    platform.caller.ask_plainly(
        "destroy_device", "platform, device", own, device.pointer, table=PLATFORM, lent=(device,)
    )


@suite.check("SE-118", level=ROBUST, severity=WARNING)
def device_is_created_again(plugin: DeviceLibraryGround) -> None:
    """A device that was destroyed can be created again.

    Otherwise: A service that is closed and opened again in one process loses the device.
    Remedy: Give back in destroy_device all that create_device has taken.
    Source: design 5
    """
    ordinal, platform = _last_ordinal(plugin), plugin.platform
    for _ in range(3):
        answer = platform.create_device(ordinal)
        if not answer.ok and not platform.devices_created:
            raise Blocked(f"create_device({ordinal}) failed: {answer.message}")
        expect(
            answer.ok,
            f"create_device({ordinal}) failed after destroy_device",
            expected="status OK",
            found=code_found(answer),
        )
        answer.value.destroy()


@suite.check("SE-119", level=ROBUST, severity=WARNING)
def devices_leave_nothing(plugin: DeviceLibraryGround) -> None:
    """Devices that were destroyed leave no descriptors, mappings or threads behind.

    Otherwise: A process that opens and closes services runs out of them.
    Remedy: Give back in destroy_device all that create_device has taken.
    """
    ordinal = _last_ordinal(plugin)

    def once() -> None:
        with _device(plugin, ordinal):
            pass

    once()
    threads = _threads()
    expect_no_leak(once, _ROUNDS, "creating and destroying a device")
    expect(
        _threads() - threads < _ROUNDS // 4,
        "creating and destroying a device leaves threads behind",
        expected=f"{threads}, as before",
        found=f"{_threads()}, after {_ROUNDS} rounds",
    )


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


# -- functions ------------------------------------------------------------------------------------


@suite.check("SE-120", level=WORKS, severity=WARNING)
def executors_are_alike(plugin: DeviceLibraryGround) -> None:
    """create_stream_executor gives the same functions each time.

    Otherwise: Hosts take one copy for all devices of the platform: TensorFlow the first.
    Remedy: Tell devices apart by the SP_Device that each function is given.
    Source: TensorFlow 2.21, observed
    """
    platform = plugin.platform
    given = platform.tables.given_executor
    again = _slots_of_another_executor(platform)
    differing = [name for name, address in again.items() if address != given.value(name)]
    expect(
        not differing,
        "create_stream_executor gives other functions when it is called again",
        expected="the same function in each slot",
        found=", ".join(differing),
    )


def _slots_of_another_executor(platform: RawPlatform) -> dict[str, int]:
    shape = platform.tables.given_executor.layout
    executor = GuardedMemory(shape.size, (shape.struct_size or 0).to_bytes(8, "little"))
    params = GuardedMemory.words(24, 0, executor.address)
    own = as_pointer(platform.tables.platform.address)
    answer = platform.caller.ask(
        "create_stream_executor", "platform, params", own, params.pointer, table=PLATFORM
    )
    if not answer.ok:
        raise Deviation(
            "create_stream_executor failed when it was called again",
            expected="status OK",
            found=code_found(answer),
        )
    given = params.word(2)  # the plugin may have put a struct of its own there
    content = bytes(view_of(given, shape.size))
    filled = {field.name: unpack_field(content, field) for field in shape.slots}
    platform.caller.ask_plainly(
        "destroy_stream_executor", "platform, executor", own, as_pointer(given), table=PLATFORM
    )
    return filled


@suite.check("SE-121")
def timers_can_be_read(plugin: DeviceLibraryGround) -> None:
    """create_timer_fns succeeds and fills in nanoseconds.

    Otherwise: Timers cannot be read; here the host's clock measures instead.
    Remedy: Set SP_TimerFns.nanoseconds, or leave create_timer_fns NULL.
    """
    platform = plugin.platform
    if not platform.caller.slots.has("create_timer_fns"):
        raise Unsupported("SP_PlatformFns.create_timer_fns is NULL")
    try:
        platform.fill_timer_fns()
    except ModularTFError as error:
        raise Deviation(
            "create_timer_fns failed", expected="status OK", found=error.message
        ) from None
    expect(
        platform.caller.slots.has("nanoseconds"),
        "create_timer_fns left no function that reads a timer",
        expected="code in SP_TimerFns.nanoseconds",
    )


def _tables(plugin: DeviceLibraryGround) -> DeviceTables:
    verdict = plugin.verdict
    if isinstance(verdict, RefusedDeviceTables):
        raise Blocked(verdict.error().message)
    return verdict


@suite.judge("SE-046", "SE-047")
def _allocator_is_usable(rule_id: str, plugin: DeviceLibraryGround) -> None:
    """Take the host's word on the RFC's allocator."""
    tables = _tables(plugin)
    if tables.dialect is not Dialect.DEVICE_RFC:
        raise Unsupported("the layout has no allocators of its own")
    try:
        allocator = create_allocator(tables)
    except ModularTFError as error:
        if error.rule == rule_id:
            raise Deviation(error.message) from None
        raise Blocked(error.message) from None
    if allocator is None:
        raise Unsupported("the plugin has no allocator of its own")
    allocator.destroy()
