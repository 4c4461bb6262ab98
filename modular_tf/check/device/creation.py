"""Checks of counting and creating devices, what they are made with, and what they report."""

from __future__ import annotations

import math
import os
import re
from typing import TYPE_CHECKING, Any

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.check.answers import code_found
from modular_tf.check.check import LIBRARY, RAW, REGISTERS, ROBUST, WARNING, WORKS, Suite
from modular_tf.check.device.by_slots import as_pointer, view_of
from modular_tf.check.expectation import (
    Blocked,
    Deviation,
    Unsupported,
    expect,
    expect_at_least,
    expect_at_most,
    expect_equal,
)
from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.check.under_load import Held, at_once, must_not_grow, of_the_process
from modular_tf.device.factory import MAX_DEVICES
from modular_tf.errors import ModularTFError
from modular_tf.loading.plugin_allocator import create_allocator
from modular_tf.native.host_struct import unpack_field

if TYPE_CHECKING:
    from modular_tf.check.answers import Answer
    from modular_tf.check.device.session import DeviceLibrary
    from modular_tf.check.device.workspace import Workspace

creation = Suite("device", "creation", level=REGISTERS, ways=LIBRARY, source="device.h")

_LOOKS = 200
_MOST_TRIED = 16
_PRESETS = (7777, 8888)
_THREADS = 8
_ROUNDS = 60


def _last_ordinal(plugin: DeviceLibrary) -> int:
    if not plugin.count:
        raise Unsupported("the plugin has no devices here: there is nothing to check")
    return min(plugin.count, _MOST_TRIED) - 1


def _must_succeed(answer: Answer) -> Any:
    """Demand that a call succeeded, which no plugin may leave out, and return its value."""
    message = f"{answer.call} failed"
    expect(answer.ok, message, expected="status OK", found=code_found(answer))
    return answer.value


# -- counting -------------------------------------------------------------------------------------


@creation.check("SE-040")
def count_succeeds(plugin: DeviceLibrary) -> None:
    """Tried once; any count will do."""
    _must_succeed(plugin.platform.device_count())


@creation.check("SE-111")
def count_is_not_negative(plugin: DeviceLibrary) -> None:
    """The device count is not negative.

    Otherwise: No device of the platform is listed, with no word of why.
    Remedy: Set 0 where there is no device, and a failed status where the number is unknown.
    Source: TensorFlow 2.21, observed
    """
    answer = plugin.platform.device_count()
    if answer.ok:
        expect_at_least(answer.value, 0, "the device count is negative")


@creation.check("SE-041")
def count_is_believable(plugin: DeviceLibrary) -> None:
    """Tried where the call succeeds."""
    answer = plugin.platform.device_count()
    if answer.ok:
        expect_at_most(answer.value, MAX_DEVICES, "the device count is impossible")


@creation.check("SE-112")
def count_is_set(plugin: DeviceLibrary) -> None:
    """get_device_count sets the count in every call.

    Otherwise: Whatever was in the host's variable is taken for the number of devices.
    Remedy: Assign *device_count on every path that leaves the status OK.
    Source: TensorFlow 2.21, observed
    """
    platform = plugin.platform
    if platform.tables.visible_device_count is not None:
        raise Unsupported("the layout has no get_device_count")
    answers = [(preset, platform.device_count(preset)) for preset in _PRESETS]
    expect(
        not all(answer.ok and answer.value == preset for preset, answer in answers),
        "get_device_count succeeded and did not set the count",
        expected="the number of devices in *device_count",
        found=f"{_PRESETS[0]} and {_PRESETS[1]}, as they were before",
    )


@creation.check("SE-113", level=WORKS, severity=WARNING)
def count_stays(plugin: DeviceLibrary) -> None:
    """The device count does not change from call to call.

    Otherwise: TensorFlow asks again and again; a device may vanish from a list, or have no device.
    Remedy: Count once, when the plugin is initialised.
    Source: TensorFlow 2.21, observed
    """
    _ = plugin.count
    counts = {plugin.platform.device_count().value for _ in range(_LOOKS)}
    message, found = "the device count changes from call to call", str(sorted(counts))
    expect(len(counts) == 1, message, expected="one number", found=found)


@creation.check("SE-114", level=ROBUST)
def count_by_threads(plugin: DeviceLibrary) -> None:
    """get_device_count can be called by several threads at once.

    Otherwise: TensorFlow asks again and again; a device may vanish from a list, or have no device.
    Remedy: Guard what it shares, or count once when the plugin is initialised.
    """
    count, platform = plugin.count, plugin.platform

    def ask() -> set[int]:
        return {platform.device_count().value for _ in range(_LOOKS)}

    found = set().union(*at_once([ask] * _THREADS))
    expect_equal(found, {count}, f"the device count, asked by {_THREADS} threads,")


# -- creating -------------------------------------------------------------------------------------


@creation.check("SE-042")
def each_device_is_created(plugin: DeviceLibrary) -> None:
    """The first sixteen, one after the other."""
    for ordinal in range(_last_ordinal(plugin) + 1):
        _must_succeed(plugin.platform.create_device(ordinal)).destroy()


@creation.judge("SE-043", "SE-044", "SE-045")
def _without_warning(rule_id: str, plugin: DeviceLibrary) -> None:
    """Take the host's word on a device for whether a rule is kept."""
    for ordinal in range(_last_ordinal(plugin) + 1):
        with plugin.device(ordinal) as device:
            warnings = device.created.details.warnings
        found = [one.message for one in warnings if one.rule_id == rule_id]
        if found:
            raise Deviation(f"device {ordinal}: {'; '.join(found)}")


@creation.check("SE-115", severity=WARNING)
def ordinal_is_filled_in(plugin: DeviceLibrary) -> None:
    """create_device writes the ordinal that it was asked for into SP_Device.

    Otherwise: Work for one device goes to another, if the plugin itself goes by the ordinal.
    Remedy: Copy params->ordinal to params->device->ordinal.

    Of the last device: a zero would not be seen in the first.
    """
    ordinal = _last_ordinal(plugin)
    with plugin.device(ordinal) as device:
        expect_equal(device.created.table.value("ordinal"), ordinal, "SP_Device.ordinal")


@creation.check("SE-116", level=ROBUST, severity=WARNING)
def wrong_ordinals_are_refused(plugin: DeviceLibrary) -> None:
    """create_device refuses an ordinal that is not below the count.

    Otherwise: A mistake of the host's becomes a device that does not exist.
    Remedy: Compare params->ordinal with the count, and set INVALID_ARGUMENT.
    """
    for ordinal in (plugin.count, -1):
        answer = plugin.platform.create_device(ordinal)
        if answer.ok:
            answer.value.destroy()
            raise Deviation(
                f"create_device made a device {ordinal}",
                expected=f"a failed status: there are {plugin.count} devices",
                found="OK",
            )


@creation.check("SE-117")
def device_stays_inside(plugin: DeviceLibrary) -> None:
    """create_device writes no further than SP_Device goes.

    Otherwise: The host's memory behind the struct is overwritten.
    Remedy: Assign fields one by one, of the header that the host has.
    """
    ordinal, platform = _last_ordinal(plugin), plugin.platform
    shape = layout("SP_Device", platform.tables.dialect)
    device = GuardedMemory(shape.size, (shape.struct_size or 0).to_bytes(8, "little"))
    params = GuardedMemory.words(32, 0, ordinal, device.address)
    shown, lent = f"platform, {{ordinal={ordinal}}}", (params, device)
    platform.ask("create_device", shown, params.pointer, lent=lent).needed("SE-042")
    platform.destroy("device", device.pointer, lent=(device,))


@creation.check("SE-118", level=ROBUST, severity=WARNING)
def device_is_created_again(plugin: DeviceLibrary) -> None:
    """A device that was destroyed can be created again.

    Otherwise: A service that is closed and opened again in one process loses the device.
    Remedy: Give back in destroy_device all that create_device has taken.
    Source: host recommendation
    """
    ordinal, platform = _last_ordinal(plugin), plugin.platform
    for _ in range(3):
        answer = platform.create_device(ordinal)
        if not platform.devices_created:
            answer.needed("SE-042")
        _must_succeed(answer).destroy()


@creation.check("SE-119", level=ROBUST, severity=WARNING)
def devices_leave_nothing(plugin: DeviceLibrary) -> None:
    """Devices that were destroyed leave no descriptors, mappings or threads behind.

    Otherwise: A process that opens and closes services runs out of them.
    Remedy: Give back in destroy_device all that create_device has taken.
    """
    ordinal = _last_ordinal(plugin)

    def once() -> None:
        with plugin.device(ordinal):
            pass

    threads = Held("threads", lambda: len(os.listdir("/proc/self/task")))
    of = (*of_the_process(), threads)
    must_not_grow(once, _ROUNDS, "creating and destroying a device", of=of)


# -- functions ------------------------------------------------------------------------------------


@creation.check("SE-120", level=WORKS, severity=WARNING)
def executors_are_alike(plugin: DeviceLibrary) -> None:
    """create_stream_executor gives the same functions each time.

    Otherwise: Hosts take one copy for all devices of the platform: TensorFlow the first.
    Remedy: Tell devices apart by the SP_Device that each function is given.
    Source: TensorFlow 2.21, observed
    """
    platform = plugin.platform
    given = platform.tables.given_executor
    shape = given.layout
    executor = GuardedMemory(shape.size, (shape.struct_size or 0).to_bytes(8, "little"))
    params = GuardedMemory.words(24, 0, executor.address)
    _must_succeed(platform.ask("create_stream_executor", "platform, params", params.pointer))
    again = params.word(2)  # the plugin may have put a struct of its own there
    content = bytes(view_of(again, shape.size))
    differing = [
        one.name for one in shape.slots if unpack_field(content, one) != given.value(one.name)
    ]
    platform.destroy("stream_executor", as_pointer(again))
    expect(
        not differing,
        "create_stream_executor gives other functions when it is called again",
        expected="the same function in each slot",
        found=", ".join(differing),
    )


@creation.check("SE-121")
def timers_can_be_read(plugin: DeviceLibrary) -> None:
    """create_timer_fns succeeds and fills in nanoseconds.

    Otherwise: Timers cannot be read; here the host's clock measures instead.
    Remedy: Set SP_TimerFns.nanoseconds, or leave create_timer_fns NULL.
    """
    platform = plugin.platform
    if not platform.caller.has("create_timer_fns"):
        raise Unsupported("SP_PlatformFns.create_timer_fns is NULL")
    try:
        platform.fill_timer_fns()
    except ModularTFError as error:
        raise Deviation(
            "create_timer_fns failed", expected="status OK", found=error.message
        ) from None
    expect(
        platform.caller.has("nanoseconds"),
        "create_timer_fns left no function that reads a timer",
        expected="code in SP_TimerFns.nanoseconds",
    )


@creation.judge("SE-046", "SE-047")
def _allocator_is_usable(rule_id: str, plugin: DeviceLibrary) -> None:
    """Take the host's word on the RFC's allocator."""
    tables = plugin.tables
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


facts = Suite("device", "facts", source="device.h")

_BUS_ID = re.compile(r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_LAST_NODE = 1023  # kernels are built for so many
_LEAST_BANDWIDTH = 1_000_000
_MOST_BANDWIDTH = 10**15
_SURROGATES = re.compile("[\udc80-\udcff]")


@facts.check("SE-124", severity=WARNING)
def texts_are_text(device: Workspace) -> None:
    """Hardware name, vendor and bus id are UTF-8, without control characters.

    Otherwise: They cannot be shown, nor written to JSON or logs as they are.
    Remedy: Encode them as UTF-8, and end them where the hardware's own buffer has blanks or NULs.
    """
    facts = device.facts()
    for name in ("hardware_name", "vendor", "pci_bus_id"):
        text = getattr(facts, name) or ""
        expect(
            text.isprintable() and not _SURROGATES.search(text),
            f"the device's {name} is no printable text",
            expected="UTF-8 without control characters",
            found=ascii(text),
        )


@facts.check("SE-125", severity=WARNING)
def bus_id_has_its_form(device: Workspace) -> None:
    """The PCI bus id looks like 0000:00:02.1, or is not given.

    Otherwise: The NUMA node and the driver of the device cannot be found by it.
    Remedy: Write domain:bus:device.function in hexadecimal, or leave it NULL.
    """
    bus_id = device.facts().pci_bus_id
    if not bus_id:
        raise Unsupported("the device has no PCI bus id")
    message = "the PCI bus id has another form"
    expect(_BUS_ID.fullmatch(bus_id), message, expected="such as 0000:00:02.1", found=bus_id)


@facts.check("SE-126", "get_numa_node", ways=RAW, severity=WARNING)
def numa_node_is_one(device: Workspace) -> None:
    """The NUMA node is negative, or the number of a node.

    Otherwise: Threads and memory are bound to a node that is not there.
    Remedy: Return a negative number for what is not known.
    """
    expect_at_most(device.facts().numa_node or 0, _LAST_NODE, "the NUMA node is out of range")


@facts.check("SE-127", "get_memory_bandwidth", ways=RAW, severity=WARNING)
def bandwidth_is_one(device: Workspace) -> None:
    """The memory bandwidth is negative, or a number of bytes per second.

    Otherwise: Lists of devices, and who chooses a device by them, are misled.
    Remedy: The unit is bytes per second. Return a negative number for what is not known.
    """
    found = device.facts().memory_bandwidth
    if found is not None and found >= 0:
        message = "the memory bandwidth is out of range"
        expect_at_least(found, _LEAST_BANDWIDTH, message, " bytes per second")
        expect_at_most(found, _MOST_BANDWIDTH, message, " bytes per second")


@facts.check("SE-128", "get_gflops", ways=RAW, severity=WARNING)
def gflops_are_some(device: Workspace) -> None:
    """The GFLOPS are negative, or a finite number above 0.

    Otherwise: Lists of devices, and who chooses a device by them, are misled.
    Remedy: The unit is 1e9 operations per second. Return a negative number for what is not known.
    """
    found = device.facts().gflops
    is_fine = found is None or (math.isfinite(found) and found != 0)
    expected = "a finite number that is not 0"
    expect(is_fine, "the GFLOPS are out of range", expected=expected, found=str(found))


@facts.check("SE-129", severity=WARNING)
def facts_stay(device: Workspace) -> None:
    """What a device says of itself does not change.

    Otherwise: Hosts ask once or often: two of them see two devices.
    Remedy: Find the facts out once, in create_device.
    """
    before = device.facts()
    device.memory()
    expect_equal(device.facts(), before, "what the device says of itself")
