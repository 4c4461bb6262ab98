"""A device by the plugin's own slots, called as a host calls them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modular_tf.abi.layouts import layout
from modular_tf.abi.status_codes import Code
from modular_tf.check.device.raw_copies import RawCopies
from modular_tf.check.device.raw_handles import RawHandle, handle_out, status_callback
from modular_tf.check.device.raw_memory import RawAllocation, RawBlock, RawMemory
from modular_tf.check.device.subject import Answer, DeviceFacts, PlatformFacts
from modular_tf.check.expectation import Blocked
from modular_tf.check.native.raw_device import DEVICE, TIMER, as_pointer
from modular_tf.device.memory.allocator_stats import AllocatorStats
from modular_tf.native.host_struct import unpack_field
from modular_tf.native.strings import read_string

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.raw_platform import RawPlatform
    from modular_tf.check.device.subject import Work
    from modular_tf.device.plugin_device import PluginDevice

_NONE = as_pointer(0)
_STATS = layout("SP_AllocatorStats")


class RawDeviceSubject(RawCopies):
    """One created device; see `DeviceSubject` for the methods. [any thread]

    Attributes:
        raw_platform: Whose it is.
        created: What create_device left.
        memory: The functions of memory that serve it.
    """

    def __init__(self, platform: RawPlatform, device: PluginDevice) -> None:
        super().__init__(platform.caller, as_pointer(device.address))
        self.raw_platform = platform
        self.created = device
        allocator = platform.allocator
        kind = None if allocator is None else allocator.kind
        address = 0 if allocator is None else allocator.address
        self.memory = RawAllocation(self.caller, self.device, kind, address)
        self._callbacks: list[Any] = []

    def poisoned(self) -> AbstractContextManager[None]:
        """Preset statuses to UNKNOWN within a block."""
        return self.caller.poisoned()

    def has(self, slot: str) -> bool:
        """Return whether the plugin has a slot."""
        if slot == "nanoseconds":
            self.raw_platform.fill_timer_fns()
        return self.caller.slots.has(slot)

    def offers(self, slot: str) -> bool:
        """Return whether the operation can be called."""
        return self.has(slot) or slot == "block_host_until_done"

    def platform(self) -> PlatformFacts:
        """Return what the plugin registered."""
        tables, allocator = self.raw_platform.tables, self.raw_platform.allocator
        by_allocator = allocator is not None and allocator.has_unified_memory
        return PlatformFacts(
            name=tables.name,
            device_type=tables.device_type,
            unified_memory=by_allocator or tables.supports_unified_memory,
            use_bfc=tables.use_bfc_allocator,
            force_growth=tables.force_memory_growth,
        )

    def facts(self) -> DeviceFacts:
        """Return what SP_Device and SP_DeviceFns say."""
        table = self.created.table
        texts = {
            name: read_string(as_pointer(table.value(name))) if table.has(name) else None
            for name in ("hardware_name", "device_vendor", "pci_bus_id")
        }
        return DeviceFacts(
            ordinal=table.value("ordinal"),
            hardware_name=texts["hardware_name"],
            vendor=texts["device_vendor"],
            pci_bus_id=texts["pci_bus_id"],
            numa_node=self._fact("get_numa_node"),
            memory_bandwidth=self._fact("get_memory_bandwidth"),
            gflops=self._fact("get_gflops"),
        )

    def _fact(self, slot: str) -> Any:
        if not self.has(slot):
            return None
        return self.caller.ask_plainly(slot, "device", self.device, table=DEVICE)

    def get_device_count(self) -> Answer:
        """Value: the count."""
        return self.raw_platform.device_count()

    # -- memory -----------------------------------------------------------------------------------

    def allocate(self, n_bytes: int) -> Answer:
        """Allocate device memory."""
        return self.memory.allocate(n_bytes)[0]

    def deallocate(self, memory: RawMemory) -> None:
        """Give device memory back by its address alone."""
        self.memory.deallocate(memory.address)

    def host_memory_allocate(self, n_bytes: int) -> Answer:
        """Allocate host memory."""
        return self.memory.allocate_block("host", n_bytes)

    def host_memory_deallocate(self, block: RawBlock) -> None:
        """Deallocate host memory."""
        self.memory.deallocate_block("host", block.address)

    def unified_memory_allocate(self, n_bytes: int) -> Answer:
        """Allocate unified memory."""
        return self.memory.allocate_block("unified", n_bytes)

    def unified_memory_deallocate(self, block: RawBlock) -> None:
        """Deallocate unified memory."""
        self.memory.deallocate_block("unified", block.address)

    def device_memory_usage(self) -> Answer:
        """Value: (free, total)."""
        known, free, total = self.memory.usage()
        found = tuple(int.from_bytes(one.raw(), "little", signed=True) for one in (free, total))
        return _known(known, "device_memory_usage", found)

    def get_allocator_stats(self) -> Answer:
        """Return an answer whose value is an `AllocatorStats`."""
        known, stats = self.memory.stats()
        return _known(known, "get_allocator_stats", _stats_of(stats.raw()))

    # -- streams ----------------------------------------------------------------------------------

    def create_stream(self) -> Answer:
        """Create a stream."""
        return self._create("stream")

    def destroy_stream(self, stream: RawHandle) -> None:
        """Destroy a stream."""
        self._destroy(stream)

    def create_stream_dependency(self, dependent: RawHandle, other: RawHandle) -> Answer:
        """Let a stream wait for another."""
        return self._with_handles("create_stream_dependency", dependent, other)

    def get_stream_status(self, stream: RawHandle) -> Answer:
        """Return the status of a stream."""
        return self._with_handles("get_stream_status", stream)

    def block_host_until_done(self, stream: RawHandle) -> Answer:
        """Wait for a stream, by an event where there is no slot."""
        if self.has("block_host_until_done"):
            return self._with_handles("block_host_until_done", stream)
        made = self.create_event()
        if not made.ok:
            return made
        recorded = self.record_event(stream, made.value)
        waited = self.block_host_for_event(made.value) if recorded.ok else recorded
        self.destroy_event(made.value)
        return waited

    def synchronize_all_activity(self) -> Answer:
        """Wait for all streams."""
        return self._ask("synchronize_all_activity", "device")

    def host_callback(self, stream: RawHandle, work: Work) -> Answer:
        """Have the host called when the stream gets there."""
        function = status_callback(work)
        self._callbacks.append(function)  # when the last call of it is over is unknown
        found = self.caller.ask_plainly(
            "host_callback", str(stream), self.device, stream.pointer, function, _NONE
        )
        code = Code.OK if found else Code.INTERNAL
        text = "" if found else "host_callback returned 0: the callback was not enqueued"
        return Answer(int(code), text, returned=int(found), call=f"host_callback({stream})")

    # -- events -----------------------------------------------------------------------------------

    def create_event(self) -> Answer:
        """Create an event."""
        return self._create("event")

    def destroy_event(self, event: RawHandle) -> None:
        """Destroy an event."""
        self._destroy(event)

    def get_event_status(self, event: RawHandle) -> Answer:
        """Ask for the status of an event."""
        found = self.caller.ask_plainly("get_event_status", str(event), self.device, event.pointer)
        return Answer(0, value=int(found), returned=int(found))

    def record_event(self, stream: RawHandle, event: RawHandle) -> Answer:
        """Record an event."""
        return self._with_handles("record_event", stream, event)

    def wait_for_event(self, stream: RawHandle, event: RawHandle) -> Answer:
        """Let a stream wait for an event."""
        return self._with_handles("wait_for_event", stream, event)

    def block_host_for_event(self, event: RawHandle) -> Answer:
        """Wait for an event."""
        return self._with_handles("block_host_for_event", event)

    # -- timers -----------------------------------------------------------------------------------

    def create_timer(self) -> Answer:
        """Create a timer."""
        return self._create("timer")

    def destroy_timer(self, timer: RawHandle) -> None:
        """Destroy a timer."""
        self._destroy(timer)

    def start_timer(self, stream: RawHandle, timer: RawHandle) -> Answer:
        """Start a timer."""
        return self._with_handles("start_timer", stream, timer)

    def stop_timer(self, stream: RawHandle, timer: RawHandle) -> Answer:
        """Stop a timer."""
        return self._with_handles("stop_timer", stream, timer)

    def nanoseconds(self, timer: RawHandle) -> Answer:
        """Read a timer."""
        self.raw_platform.fill_timer_fns()
        found = self.caller.ask_plainly("nanoseconds", str(timer), timer.pointer, table=TIMER)
        return Answer(0, value=int(found), returned=int(found))

    # -- calls ------------------------------------------------------------------------------------

    def _with_handles(self, slot: str, *handles: RawHandle) -> Answer:
        shown = ", ".join(map(str, handles))
        return self._ask(slot, shown, *(handle.pointer for handle in handles))

    def _create(self, kind: str) -> Answer:
        out = handle_out()
        answer = self._ask(f"create_{kind}", "device", out.pointer, lent=(out,))
        handle = RawHandle.of(kind, out) if answer.ok else None
        return replace(answer, value=handle)

    def _destroy(self, handle: RawHandle) -> None:
        self.caller.ask_plainly(f"destroy_{handle.kind}", str(handle), self.device, handle.pointer)


def _known(known: int, slot: str, value: object) -> Answer:
    if known:
        return Answer(0, value=value, returned=known)
    text = f"{slot}: the plugin does not know"
    return Answer(int(Code.UNAVAILABLE), text, returned=known, call=f"{slot}()")


def _stats_of(raw: bytes) -> AllocatorStats:
    numbers: dict[str, Any] = {one.name: unpack_field(raw, one) for one in _STATS.fields[1:]}
    for limit in ("bytes_limit", "bytes_reservable_limit"):
        if not numbers.pop(f"has_{limit}"):
            numbers[limit] = None
    return AllocatorStats(**numbers)


def created_device(platform: RawPlatform, ordinal: int) -> RawDeviceSubject:
    """Create a device for checks to work with.

    Raises:
        Blocked: The plugin does not create it.
    """
    answer = platform.create_device(ordinal)
    if not answer.ok:
        raise Blocked(f"create_device({ordinal}) failed: {answer.message}")
    return RawDeviceSubject(platform, answer.value)


def raw_subject(ground: DeviceGround) -> RawDeviceSubject:
    """Return the device of a ground in the raw pass, for what the protocol has no word for."""
    subject = ground.subject
    if not isinstance(subject, RawDeviceSubject):
        raise TypeError("the check is for the raw pass only")
    return subject
