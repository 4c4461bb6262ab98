"""A device by the plugin's own slots, called as a host calls them.

Unlike `core/executor.h` nothing stands between: no lifetime, no emulation, no judgement of what
comes back, no catching of exceptions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import Answer
from modular_tf.check.calls import SlotCaller
from modular_tf.check.device.operations import OPERATIONS, DeviceAccess, DeviceFacts
from modular_tf.check.expectation import Deviation
from modular_tf.check.memory_watch import MEMORY_RULES
from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.check.native.raw_status import set_status
from modular_tf.device.memory.allocator_stats import AllocatorStats
from modular_tf.device.plugin_device import PluginDevice
from modular_tf.errors import ModularTFError
from modular_tf.loading.device_loader import RefusedDeviceTables, read_device_tables
from modular_tf.loading.plugin_allocator import create_allocator
from modular_tf.native.device_calls import announce_calls
from modular_tf.native.ffi import ffi
from modular_tf.native.host_struct import unpack_field
from modular_tf.native.strings import read_string

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from modular_tf.check.calls import CallJournal
    from modular_tf.check.device.operations import (
        Operation,
        Size,
        Stream,
        Timer,
        Work,
    )
    from modular_tf.loading.device_loader import ExportingLibrary
    from modular_tf.loading.device_tables import DeviceTable, DeviceTables

ENTRY = "SE_PlatformRegistrationParams"
PLATFORM = "SP_PlatformFns"
_DEVICE = "SP_DeviceFns"
_EXECUTOR = "SP_StreamExecutor"
_TIMER = "SP_TimerFns"
_CUSTOM = "SP_CustomAllocatorFns"
_ALLOCATORS = ("SP_AllocatorFns", _CUSTOM)
"""Tables of the RFC, which have the functions of memory instead of SP_StreamExecutor."""
_OF_MEMORY = {one.name for one in layout(_ALLOCATORS[0], Dialect.DEVICE_RFC).slots}

_OVERRUN = "SE-130"
"""The rule that a plugin writes no further than its output goes."""

# -- functions ------------------------------------------------------------------------------------

_ARGUMENTS = {"Size": "uint64_t", "Byte": "uint8_t", "Word": "uint32_t"}
"""The C types of the kinds of arguments that are no pointers."""
# Booleans come back as a byte, enumerations as an int: a plugin's may be any number.
_RETURNS = {"memory": "void *", "number": "int", "flag": "uint8_t"}
_TYPES: Mapping[str, tuple[str, str]] = {
    "SE_InitPlugin": ("void", "void *, void *"),
    "destroy_platform": ("void", "void *"),
    "destroy_platform_fns": ("void", "void *"),
    "get_device_count": ("void", "void *, int *, void *"),
    **{
        f"{verb}_{what}": ("void", ", ".join(["void *"] * arguments))
        for what in ("device", "device_fns", "stream_executor", "timer_fns")
        for verb, arguments in (("create", 3), ("destroy", 2))
    },
    "get_numa_node": ("int32_t", "void *"),
    "get_memory_bandwidth": ("int64_t", "void *"),
    "get_gflops": ("double", "void *"),
    "nanoseconds": ("uint64_t", "void *"),
    "host_callback": ("uint8_t", "void *, void *, void *, void *"),
    "allocate": ("void", "void *, uint64_t, int64_t, void *"),
    "allocate_raw": ("void *", "void *, size_t, size_t"),
    "deallocate_raw": ("void", "void *, void *"),
    "host_allocate_raw": ("void *", "void *, uint64_t"),
    "host_deallocate_raw": ("void", "void *, void *"),
    "get_allocator_stats": ("uint8_t", "void *, void *"),
    "device_memory_usage": ("uint8_t", "void *, void *, void *"),
}
"""What functions return and take that are no operation, or another one in C."""


@cache
def _type(table: str, slot: str) -> Any:
    if slot in _TYPES:
        returned, arguments = _TYPES[slot]
    else:
        row = OPERATIONS[slot]
        kinds = [_ARGUMENTS.get(kind, "void *") for kind in row.parameters.values()]
        last = {"handle": ["void *", "void *"], "status": ["void *"]}.get(row.result, [])
        returned, arguments = _RETURNS.get(row.result, "void"), ", ".join(["void *", *kinds, *last])
    if table in _ALLOCATORS:  # it comes after the device
        arguments = f"void *, {arguments}"
    return ffi.typeof(f"{returned}(*)({arguments})")


class DeviceSlotCaller(SlotCaller):
    """Calls slots, of `SP_StreamExecutor` where no other table is named. [any thread]"""

    def __init__(self, journal: CallJournal) -> None:
        super().__init__(journal, _EXECUTOR, MEMORY_RULES["device"])
        self._addresses: dict[str, Mapping[str, int]] = {}

    def add(self, table: str, slots: Mapping[str, int]) -> None:
        """Add a table by its C name: the address of each slot, 0 for NULL."""
        self._addresses[table] = slots

    def add_table(self, table: DeviceTable) -> None:
        """Add a table that the loader has read."""
        self.add(table.layout.name, {one.name: table.value(one.name) for one in table.layout.slots})

    def has(self, slot: str) -> bool:
        """Return whether a slot is set, in any table."""
        return any(slots.get(slot) for slots in self._addresses.values())

    def _function(self, table: str, slot: str) -> Any:
        address = self._addresses.get(table, {}).get(slot)
        return ffi.cast(_type(table, slot), address) if address else None

    def _raise_overrun(self, slot: str, memory: GuardedMemory, where: str) -> None:
        raise Deviation(
            f"{slot} wrote beside its output (rule {_OVERRUN})",
            expected=f"at most {memory.size} bytes are written",
            found=where,
        )


def as_pointer(address: int) -> Any:
    """Return an address, or an opaque handle, as a pointer that can be passed to a slot."""
    return ffi.cast("void *", address)


def view_of(address: int, size: int) -> memoryview:
    """Return memory that is trusted to be there, writable; nothing keeps it."""
    return memoryview(ffi.buffer(ffi.cast("char *", address), size)).cast("B")


# -- the platform ---------------------------------------------------------------------------------


def read_tables(
    library: ExportingLibrary, journal: CallJournal
) -> DeviceTables | RefusedDeviceTables:
    """Initialise a plugin that is mapped, and judge what it leaves, as a service does."""
    announce_calls(journal.enter)
    return read_device_tables(library, plugin="plugin")


def accepted(verdict: DeviceTables | RefusedDeviceTables) -> DeviceTables:
    """Return the tables of a plugin that is not refused.

    Raises `RefusedDevicePluginError` where it breaks rules.
    """
    if isinstance(verdict, RefusedDeviceTables):
        raise verdict.error()
    return verdict


class SlotPlatform:
    """A platform as the loader accepted it.

    Attributes:
        tables: The accepted tables, all in the newest layout.
        caller: Calls the slots.
        allocator: The RFC's allocator, None for other plugins.
        devices_created: How many times create_device has succeeded here.
    """

    def __init__(self, tables: DeviceTables, journal: CallJournal) -> None:
        """Create the RFC's allocator, if there is one; no device yet.

        Raises `ModularTFError` where it cannot be created or used.
        """
        self.tables = tables
        self.devices_created = 0
        self.caller = DeviceSlotCaller(journal)
        for table in (tables.platform_fns, tables.device_fns, tables.executor):
            self.caller.add_table(table)
        self.allocator = create_allocator(tables)
        if self.allocator is not None:
            self.caller.add_table(self.allocator.fns)
        self._has_timer_fns = False

    def ask(
        self, slot: str, shown: str, *arguments: Any, lent: Sequence[GuardedMemory] = ()
    ) -> Answer:
        """Call a slot of the platform; see `SlotCaller`."""
        own = as_pointer(self.tables.platform.address)
        return self.caller.ask(slot, shown, own, *arguments, table=PLATFORM, lent=lent)

    def destroy(self, what: str, pointer: Any, *, lent: Sequence[GuardedMemory] = ()) -> None:
        """Have the plugin destroy what it has filled, such as a `device`."""
        own, slot = as_pointer(self.tables.platform.address), f"destroy_{what}"
        shown = f"platform, {what}"
        self.caller.ask_plainly(slot, shown, own, pointer, table=PLATFORM, lent=lent)

    def device_count(self, preset: int = 0) -> Answer:
        """Return the number of devices as the value; the variable holds `preset` before."""
        announced = self.tables.visible_device_count
        if announced is not None:  # by the oldest layout
            return Answer(0, value=announced, call="SP_Platform.visible_device_count")
        count = ffi.new("int *", preset)
        answer = self.ask("get_device_count", "platform", count)
        return replace(answer, value=int(count[0]))

    def create_device(self, ordinal: int) -> Answer:
        """Create a device; the value is a `PluginDevice`, which the caller destroys."""
        call = f"create_device(platform, {{ordinal={ordinal}}})"
        try:
            device = PluginDevice(self.tables, ordinal)
            device.create()
        except ModularTFError as error:
            self.caller.journal.leave(call, error.code.name)
            return Answer(int(error.code), error.message, call=call)
        self.caller.journal.leave(call, "OK")
        self.devices_created += 1
        return Answer(0, value=device, call=call)

    def fill_timer_fns(self) -> None:
        """Have the plugin fill SP_TimerFns, once, if it has the functions for that.

        Raises `ModularTFError` with the plugin's own status where it fails.
        """
        if not self._has_timer_fns:
            self._has_timer_fns = True
            tables = self.tables
            address = tables.registration.create_timer_fns(tables.platform, tables.platform_fns)
            self.caller.add(_TIMER, {"nanoseconds": address})

    def take_down(self) -> list[str]:
        """Destroy what was made here, in TensorFlow's order, and return what went wrong.

        The devices must be gone.
        """
        failures = [] if self.allocator is None else self.allocator.destroy()
        failures += self.tables.registration.tear_down()
        return [failure.message for failure in failures]


# -- the device -----------------------------------------------------------------------------------

_CUSTOM_NAMES = {
    "host_memory_allocate": "host_allocate_raw",
    "host_memory_deallocate": "host_deallocate_raw",
}
_ALIGNMENT = 64
"""What the RFC's custom allocators are called with, as TensorFlow calls its allocators."""
_STATS = layout("SP_AllocatorStats")


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """A stream, event or timer of the plugin's, whose number may be 0 for NULL."""

    kind: str
    number: int

    @property
    def pointer(self) -> Any:
        """The handle as slots take it."""
        return as_pointer(self.number)

    def __str__(self) -> str:
        return f"{self.kind} {self.number:#x}"


@dataclass(frozen=True, slots=True)
class SlotMemory:
    """Device, host or unified memory, or a part of it.

    Attributes:
        address: `opaque`, or where it lies.
        size: How many bytes were requested.
        payload: The plugin's own number.
        given: The SP_DeviceMemoryBase that `allocate` has filled; None where there was none.
    """

    address: int
    size: int
    payload: int = 0
    given: GuardedMemory | None = None

    def part(self, offset: int, size: int) -> SlotMemory:
        """Return a part of the memory."""
        return SlotMemory(self.address + offset, size, self.payload)

    @property
    def view(self) -> memoryview:
        """The bytes, writable, of memory that the host sees."""
        return view_of(self.address, self.size)

    def base(self, size: int) -> GuardedMemory:
        """Return an SP_DeviceMemoryBase of its first bytes."""
        return GuardedMemory.words(40, 0, self.address, size, self.payload)


class SlotDevice(DeviceAccess):
    """One created device; see `Operations`. [any thread]

    Attributes:
        platform: Whose it is.
        created: What create_device left.
    """

    def __init__(self, platform: SlotPlatform, ordinal: int) -> None:
        """Create the device; as `Answer.needed` where the plugin does not."""
        self.platform = platform
        self.created: PluginDevice = platform.create_device(ordinal).needed("SE-042")
        self.tables = platform.tables
        self.caller = platform.caller
        self._pointer = as_pointer(self.created.address)
        allocator = platform.allocator
        self.has_unified_memory = self.tables.supports_unified_memory
        self._memory_table = _EXECUTOR
        self._front: tuple[Any, ...] = (self._pointer,)
        if allocator is not None:
            self.has_unified_memory |= allocator.has_unified_memory
            self._memory_table = allocator.fns.layout.name
            self._front = (self._pointer, as_pointer(allocator.address))
        self._callbacks: list[Any] = []

    def has(self, slot: str) -> bool:
        """Return whether the plugin has a slot."""
        if slot == "nanoseconds":
            self.platform.fill_timer_fns()
        return self.caller.has(slot)

    def offers(self, slot: str) -> bool:
        """Return whether the operation can be called."""
        return self.has(slot) or slot == "block_host_until_done"

    def facts(self) -> DeviceFacts:
        """Return what SP_Device and SP_DeviceFns report."""
        table = self.created.table
        facts: list[Any] = [table.value("ordinal")]
        for name in ("hardware_name", "device_vendor", "pci_bus_id"):
            text = as_pointer(table.value(name)) if table.has(name) else None
            facts.append(None if text is None else read_string(text))
        for slot in ("get_numa_node", "get_memory_bandwidth", "get_gflops"):
            ask = self.caller.ask_plainly if self.has(slot) else None
            facts.append(ask and ask(slot, "device", self._pointer, table=_DEVICE))
        return DeviceFacts(*facts)

    def close(self) -> None:
        """Destroy the device and take its platform down."""
        self.created.destroy()
        self.platform.take_down()

    def call(self, row: Operation, *arguments: Any) -> Answer:
        """Call a slot."""
        passed: list[Any] = [self._pointer]
        lent: list[GuardedMemory] = []
        for kind, argument in zip(row.parameters.values(), arguments, strict=True):
            if kind == "Memory":
                lent.append(argument.base(arguments[-1]))  # the size comes last
                passed.append(lent[-1].pointer)
            elif kind == "Bytes":
                passed.append(as_pointer(argument.address))
            else:
                passed.append(argument.pointer if isinstance(argument, Handle) else argument)
        shown = ", ".join(map(_shown, arguments)) or "device"
        if row.result == "status":
            return self.caller.ask(row.name, shown, *passed, lent=lent)
        if row.result == "handle":
            out = GuardedMemory(8)
            answer = self.caller.ask(row.name, shown, *passed, out.pointer, lent=(out,))
            handle = Handle(row.name.removeprefix("create_"), out.word())
            return replace(answer, value=handle) if answer.ok else answer
        if row.name in _OF_MEMORY:
            found = self._of_memory(row.name, shown, *passed[1:])
        else:
            found = self.caller.ask_plainly(row.name, shown, *passed)
        if row.result == "memory":
            return _allocated(SlotMemory(_address(found), arguments[0]), "NULL")
        number = int(found) if row.result == "number" else None
        return Answer(0, value=number, returned=number)

    # -- what differs from the others -------------------------------------------------------------

    def _block_host_until_done(self, stream: Stream) -> Answer:
        """Wait for a stream, by an event where there is no slot."""
        if self.has("block_host_until_done"):
            return self.call(OPERATIONS["block_host_until_done"], stream)
        made = self.create_event()
        if not made.ok:
            return made
        recorded = self.record_event(stream, made.value)
        waited = self.block_host_for_event(made.value) if recorded.ok else recorded
        self.destroy_event(made.value)
        return waited

    def _host_callback(self, stream: Stream, work: Work) -> Answer:
        """Have the host called by an SE_StatusCallbackFn; it must not raise across C."""

        def run(_: Any, status: Any) -> None:
            try:
                failure = work()
            except Exception as error:  # noqa: BLE001  (the stream has to fail)
                failure = (int(Code.INTERNAL), f"a callback raised {error!r}")
            if failure is not None:
                set_status(status, *failure)

        function = ffi.callback("void(void *, void *)", run)
        self._callbacks.append(function)  # when the last call of it is over is unknown
        taken = self.caller.ask_plainly(
            "host_callback", str(stream), self._pointer, stream.pointer, function, as_pointer(0)
        )
        if taken:
            return Answer(0, returned=int(taken))
        message = "host_callback returned 0: the callback was not enqueued"
        return Answer(int(Code.INTERNAL), message, returned=0)

    def _nanoseconds(self, timer: Timer) -> Answer:
        self.platform.fill_timer_fns()
        found = self.caller.ask_plainly("nanoseconds", str(timer), timer.pointer, table=_TIMER)
        return Answer(0, value=int(found), returned=int(found))

    # -- memory, by the executor's functions or the RFC's -----------------------------------------

    def _of_memory(
        self, slot: str, shown: str, *arguments: Any, lent: Sequence[GuardedMemory] = ()
    ) -> Any:
        is_custom = self._memory_table == _CUSTOM
        slot = _CUSTOM_NAMES.get(slot, slot) if is_custom else slot
        return self.caller.ask_plainly(
            slot, shown, *self._front, *arguments, table=self._memory_table, lent=lent
        )

    def _allocate(self, n_bytes: Size) -> Answer:
        if self._memory_table == _CUSTOM:
            found = self._of_memory("allocate_raw", str(n_bytes), n_bytes, _ALIGNMENT)
            return _allocated(SlotMemory(_address(found), n_bytes), "NULL")
        base = SlotMemory(0, 0).base(0)
        self._of_memory("allocate", f"{n_bytes}, 0", n_bytes, 0, base.pointer, lent=(base,))
        return _allocated(SlotMemory(base.word(2), n_bytes, base.word(4), base), "opaque is NULL")

    def _deallocate(self, memory: Any) -> Answer:
        if self._memory_table == _CUSTOM:
            self._of_memory("deallocate_raw", hex(memory.address), as_pointer(memory.address))
        else:
            base = SlotMemory(memory.address, 0).base(0)
            shown = f"{{opaque={memory.address:#x}}}"
            self._of_memory("deallocate", shown, base.pointer, lent=(base,))
        return Answer(0)

    def _device_memory_usage(self) -> Answer:
        out = GuardedMemory(8), GuardedMemory(8)
        pointers = (one.pointer for one in out)
        known = self._of_memory("device_memory_usage", "", *pointers, lent=out)
        numbers = tuple(int.from_bytes(one.raw(), "little", signed=True) for one in out)
        return _known(known, "device_memory_usage", numbers)

    def read_stats(self) -> tuple[int, GuardedMemory]:
        """Return what get_allocator_stats returned, and the struct."""
        stats = GuardedMemory(_STATS.size, _STATS.size.to_bytes(8, "little"))
        known = self._of_memory("get_allocator_stats", "", stats.pointer, lent=(stats,))
        return int(known), stats

    def _get_allocator_stats(self) -> Answer:
        known, stats = self.read_stats()
        raw = stats.raw()
        numbers: dict[str, Any] = {one.name: unpack_field(raw, one) for one in _STATS.fields[1:]}
        for limit in ("bytes_limit", "bytes_reservable_limit"):
            if not numbers.pop(f"has_{limit}"):
                numbers[limit] = None
        return _known(known, "get_allocator_stats", AllocatorStats(**numbers))


def _shown(argument: Any) -> str:
    return str(argument) if isinstance(argument, (int, Handle)) else f"{argument.address:#x}"


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def _allocated(memory: SlotMemory, otherwise: str) -> Answer:
    if memory.address:
        return Answer(0, value=memory)
    return Answer(int(Code.RESOURCE_EXHAUSTED), f"{memory.size} bytes: {otherwise}")


def _known(known: int, slot: str, value: object) -> Answer:
    if known:
        return Answer(0, value=value, returned=int(known))
    message = f"{slot}: the plugin does not know"
    return Answer(int(Code.UNAVAILABLE), message, returned=int(known))
