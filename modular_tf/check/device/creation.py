"""Checks of counting and creating devices, and what they are made with."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.check.answers import code_found
from modular_tf.check.check import LIBRARY, CheckList
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.expectation import Blocked, Deviation, Unsupported, expect, expect_equal
from modular_tf.check.level import Level
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

CHECKS = CheckList("device", "creation")

_LOOKS = 200
_MOST_TRIED = 16
_PRESETS = (7777, 8888)
_THREADS = 8
_ROUNDS = 60


def _count(ground: DeviceLibraryGround) -> int:
    """Return the number of devices, which other checks are about."""
    answer = ground.platform.device_count()
    if not answer.ok:
        raise Blocked(f"get_device_count failed: {answer.message}")
    count: int = answer.value
    if not 0 <= count <= MAX_DEVICES:
        raise Blocked(f"get_device_count said {count}")
    return count


def _last_ordinal(ground: DeviceLibraryGround) -> int:
    count = _count(ground)
    if not count:
        raise Unsupported("the plugin has no devices here: there is nothing to check")
    return min(count, _MOST_TRIED) - 1


@contextmanager
def _device(ground: DeviceLibraryGround, ordinal: int) -> Iterator[PluginDevice]:
    """Create a device for a while."""
    answer = ground.platform.create_device(ordinal)
    if not answer.ok:
        raise Blocked(f"create_device({ordinal}) failed: {answer.message}")
    device: PluginDevice = answer.value
    try:
        yield device
    finally:
        device.destroy()


# -- counting -------------------------------------------------------------------------------------


@CHECKS.check("SE-040", Level.REGISTERS, passes=LIBRARY)
def count_succeeds(ground: DeviceLibraryGround) -> None:
    """Tried once; any count will do."""
    answer = ground.platform.device_count()
    expect(answer.ok, "get_device_count failed", expected="status OK", found=code_found(answer))


@CHECKS.check("SE-111", Level.REGISTERS, passes=LIBRARY)
def count_is_not_negative(ground: DeviceLibraryGround) -> None:
    """Tried where the call succeeds."""
    answer = ground.platform.device_count()
    expect(
        not answer.ok or answer.value >= 0,
        "the device count is negative",
        expected="0 or more",
        found=str(answer.value),
    )


@CHECKS.check("SE-041", Level.REGISTERS, passes=LIBRARY)
def count_is_believable(ground: DeviceLibraryGround) -> None:
    """Tried where the call succeeds."""
    answer = ground.platform.device_count()
    expect(
        not answer.ok or answer.value <= MAX_DEVICES,
        "the device count is impossible",
        expected=f"at most {MAX_DEVICES}",
        found=str(answer.value),
    )


@CHECKS.check("SE-112", Level.REGISTERS, passes=LIBRARY)
def count_is_set(ground: DeviceLibraryGround) -> None:
    """With something else in the variable each time."""
    if not ground.platform.counts_by_function:
        raise Unsupported("the layout has no get_device_count")
    answers = [ground.platform.device_count(preset) for preset in _PRESETS]
    untouched = all(
        one.ok and one.value == preset for one, preset in zip(answers, _PRESETS, strict=True)
    )
    expect(
        not untouched,
        "get_device_count succeeded and did not set the count",
        expected="the number of devices in *device_count",
        found=f"{_PRESETS[0]} and {_PRESETS[1]}, as they were before",
    )


@CHECKS.check("SE-113", Level.WORKS, passes=LIBRARY)
def count_stays(ground: DeviceLibraryGround) -> None:
    """Tried several times in a row."""
    _count(ground)
    counts = {ground.platform.device_count().value for _ in range(_LOOKS)}
    expect(
        len(counts) == 1,
        "the device count changes from call to call",
        expected="one number",
        found=f"{sorted(counts)} in {_LOOKS} calls",
    )


@CHECKS.check("SE-114", Level.ROBUST, passes=LIBRARY)
def count_by_threads(ground: DeviceLibraryGround) -> None:
    """Tried again and again by several threads."""
    count, platform = _count(ground), ground.platform

    def ask() -> set[int]:
        return {platform.device_count().value for _ in range(_LOOKS)}

    found = set().union(*run_at_once([ask] * _THREADS))
    expect_equal(found, {count}, f"the device count, asked by {_THREADS} threads,")


# -- creating -------------------------------------------------------------------------------------


@CHECKS.check("SE-042", Level.REGISTERS, passes=LIBRARY)
def each_device_is_created(ground: DeviceLibraryGround) -> None:
    """The first sixteen, one after the other."""
    for ordinal in range(_last_ordinal(ground) + 1):
        answer = ground.platform.create_device(ordinal)
        if not answer.ok:
            raise Deviation(
                f"create_device({ordinal}) failed", expected="status OK", found=code_found(answer)
            )
        answer.value.destroy()


def _without_warning(rule_id: str, ground: DeviceLibraryGround) -> None:
    """Take the host's word on a device for whether a rule is kept."""
    for ordinal in range(_last_ordinal(ground) + 1):
        with _device(ground, ordinal) as device:
            found = [one.message for one in device.details.warnings if one.rule_id == rule_id]
        if found:
            raise Deviation(f"device {ordinal}: {'; '.join(found)}")


for _rule_id in ("SE-043", "SE-044", "SE-045"):
    CHECKS.check(_rule_id, Level.REGISTERS, passes=LIBRARY)(partial(_without_warning, _rule_id))


@CHECKS.check("SE-115", Level.REGISTERS, passes=LIBRARY)
def ordinal_is_filled_in(ground: DeviceLibraryGround) -> None:
    """Of the last device: a zero would not be seen in the first."""
    ordinal = _last_ordinal(ground)
    with _device(ground, ordinal) as device:
        expect_equal(device.table.value("ordinal"), ordinal, "SP_Device.ordinal")


@CHECKS.check("SE-116", Level.ROBUST, passes=LIBRARY)
def wrong_ordinals_are_refused(ground: DeviceLibraryGround) -> None:
    """One behind the last, and a negative one."""
    for ordinal in (_count(ground), -1):
        answer = ground.platform.create_device(ordinal)
        if answer.ok:
            answer.value.destroy()
            raise Deviation(
                f"create_device made a device {ordinal}",
                expected=f"a failed status: there are {_count(ground)} devices",
                found="OK",
            )


@CHECKS.check("SE-117", Level.REGISTERS, passes=LIBRARY)
def device_stays_inside(ground: DeviceLibraryGround) -> None:
    """The caller looks at guards on both sides of the structs."""
    ordinal, platform = _last_ordinal(ground), ground.platform
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


@CHECKS.check("SE-118", Level.ROBUST, passes=LIBRARY)
def device_is_created_again(ground: DeviceLibraryGround) -> None:
    """By this check, and by others before."""
    ordinal, platform = _last_ordinal(ground), ground.platform
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


@CHECKS.check("SE-119", Level.ROBUST, passes=LIBRARY)
def devices_leave_nothing(ground: DeviceLibraryGround) -> None:
    """Tried in rounds that create and destroy one device."""
    ordinal = _last_ordinal(ground)

    def once() -> None:
        with _device(ground, ordinal):
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


@CHECKS.check("SE-120", Level.WORKS, passes=LIBRARY)
def executors_are_alike(ground: DeviceLibraryGround) -> None:
    """The loader has created one; this one is the second."""
    platform = ground.platform
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


@CHECKS.check("SE-121", Level.REGISTERS, passes=LIBRARY)
def timers_can_be_read(ground: DeviceLibraryGround) -> None:
    """Where the plugin offers functions of timers."""
    platform = ground.platform
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


def _tables(ground: DeviceLibraryGround) -> DeviceTables:
    verdict = ground.verdict
    if isinstance(verdict, RefusedDeviceTables):
        raise Blocked(verdict.error().message)
    return verdict


def _allocator_is_usable(rule_id: str, ground: DeviceLibraryGround) -> None:
    """Take the host's word on the RFC's allocator."""
    tables = _tables(ground)
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


for _rule_id in ("SE-046", "SE-047"):
    CHECKS.check(_rule_id, Level.REGISTERS, passes=LIBRARY)(partial(_allocator_is_usable, _rule_id))
