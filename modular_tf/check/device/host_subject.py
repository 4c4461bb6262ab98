"""A device through this package: what an application sees of the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.device.host_answer import HostCaller
from modular_tf.check.device.host_copies import HostCopies
from modular_tf.check.device.host_memory import HostedBlock, HostedMemory
from modular_tf.check.device.subject import Answer, DeviceFacts, PlatformFacts
from modular_tf.errors import error_from_code

if TYPE_CHECKING:
    from modular_tf.check.calls import CallJournal
    from modular_tf.check.device.subject import Work
    from modular_tf.device.device import Device
    from modular_tf.device.platform import DevicePlatform
    from modular_tf.device.streams.event import Event
    from modular_tf.device.streams.stream import Stream
    from modular_tf.device.streams.timer import Timer

_UNIFIED = frozenset({"unified_memory_allocate", "unified_memory_deallocate"})


class HostDeviceSubject(HostCopies):
    """One device of a service; see `DeviceSubject` for the methods. [any thread]"""

    def __init__(self, device: Device, platform: DevicePlatform, journal: CallJournal) -> None:
        super().__init__(HostCaller(journal), device)
        self._platform = platform

    def has(self, slot: str) -> bool:
        """Return whether the plugin has a slot."""
        tables = self._platform.tables
        given = (tables.platform_fns, tables.device_fns, tables.executor, *tables.given)
        return any(table.has(slot) for table in given)

    def offers(self, slot: str) -> bool:
        """Return whether the operation can be called: all but unified memory have a stand-in."""
        return slot not in _UNIFIED or self.platform().unified_memory

    def platform(self) -> PlatformFacts:
        """Return what the plugin registered."""
        tables = self._platform.tables
        return PlatformFacts(
            name=tables.name,
            device_type=tables.device_type,
            unified_memory=tables.supports_unified_memory,
            use_bfc=tables.use_bfc_allocator,
            force_growth=tables.force_memory_growth,
        )

    def facts(self) -> DeviceFacts:
        """Return the device's details."""
        details = self.device.details
        return DeviceFacts(
            ordinal=self.device.ordinal,
            hardware_name=details.hardware_name,
            vendor=details.vendor,
            pci_bus_id=details.pci_bus_id,
            numa_node=details.numa_node,
            memory_bandwidth=details.memory_bandwidth,
            gflops=details.gflops,
        )

    def get_device_count(self) -> Answer:
        """Value: the count."""
        return self._ask("device_count()", self._platform.device_count)

    # -- memory -----------------------------------------------------------------------------------

    def allocate(self, n_bytes: int) -> Answer:
        """Allocate device memory."""
        return self._ask(
            f"allocate({n_bytes})", lambda: HostedMemory(self.device.allocate(n_bytes))
        )

    def deallocate(self, memory: HostedMemory) -> None:
        """Deallocate device memory."""
        self._do(f"close of memory {memory.address:#x}", memory.native.close)

    def host_memory_allocate(self, n_bytes: int) -> Answer:
        """Allocate host memory."""
        return self._ask(
            f"allocate_host({n_bytes})",
            lambda: HostedBlock(self.device.allocate_host(n_bytes), None),
        )

    def host_memory_deallocate(self, block: HostedBlock) -> None:
        """Deallocate host memory."""
        self._do(f"close of host memory {block.address:#x}", block.native.close)

    def unified_memory_allocate(self, n_bytes: int) -> Answer:
        """Allocate unified memory."""

        def work() -> HostedBlock:
            memory = self.device.allocate_unified(n_bytes)
            return HostedBlock(memory, HostedMemory(memory))

        return self.caller.ask_if_offered(f"allocate_unified({n_bytes})", work)

    def unified_memory_deallocate(self, block: HostedBlock) -> None:
        """Deallocate unified memory."""
        self._do(f"close of unified memory {block.address:#x}", block.native.close)

    def device_memory_usage(self) -> Answer:
        """Value: (free, total)."""
        return self._ask("memory_usage()", lambda: tuple(self.device.memory_usage()))

    def get_allocator_stats(self) -> Answer:
        """Return an answer whose value is an `AllocatorStats`."""
        return self._ask("allocator_stats()", self.device.allocator_stats)

    # -- streams ----------------------------------------------------------------------------------

    def create_stream(self) -> Answer:
        """Create a stream."""
        return self._ask("create_stream()", self.device.create_stream)

    def destroy_stream(self, stream: Stream) -> None:
        """Close a stream."""
        self._do("close of a stream", stream.close)

    def create_stream_dependency(self, dependent: Stream, other: Stream) -> Answer:
        """Let a stream wait for another."""
        return self._ask("stream.wait_for(other)", lambda: dependent.wait_for(other))

    def get_stream_status(self, stream: Stream) -> Answer:
        """Return the status of a stream."""

        def work() -> None:
            if (error := stream.error) is not None:
                raise error

        return self._ask("stream.error", work)

    def block_host_until_done(self, stream: Stream) -> Answer:
        """Wait for a stream."""
        return self._ask("stream.block_until_done()", stream.block_until_done)

    def synchronize_all_activity(self) -> Answer:
        """Wait for all streams."""
        return self._ask("device.synchronize()", self.device.synchronize)

    def host_callback(self, stream: Stream, work: Work) -> Answer:
        """Have a function called when the stream gets there."""

        def run() -> None:
            if (failure := work()) is not None:
                raise error_from_code(*failure)

        return self._ask("stream.add_callback(function)", lambda: stream.add_callback(run))

    # -- events -----------------------------------------------------------------------------------

    def create_event(self) -> Answer:
        """Create an event."""
        return self._ask("create_event()", self.device.create_event)

    def destroy_event(self, event: Event) -> None:
        """Close an event."""
        self._do("close of an event", event.close)

    def get_event_status(self, event: Event) -> Answer:
        """Ask for the status of an event."""
        return self._ask("event.status", lambda: int(event.status))

    def record_event(self, stream: Stream, event: Event) -> Answer:
        """Record an event."""
        return self._ask("event.record(stream)", lambda: event.record(stream))

    def wait_for_event(self, stream: Stream, event: Event) -> Answer:
        """Let a stream wait for an event."""
        return self._ask("stream.wait_event(event)", lambda: stream.wait_event(event))

    def block_host_for_event(self, event: Event) -> Answer:
        """Wait for an event."""
        return self._ask("event.block()", event.block)

    # -- timers -----------------------------------------------------------------------------------

    def create_timer(self) -> Answer:
        """Create a timer."""
        return self._ask("create_timer()", self.device.create_timer)

    def destroy_timer(self, timer: Timer) -> None:
        """Close a timer."""
        self._do("close of a timer", timer.close)

    def start_timer(self, stream: Stream, timer: Timer) -> Answer:
        """Start a timer."""
        return self._ask("timer.start(stream)", lambda: timer.start(stream))

    def stop_timer(self, stream: Stream, timer: Timer) -> Answer:
        """Stop a timer."""
        return self._ask("timer.stop(stream)", lambda: timer.stop(stream))

    def nanoseconds(self, timer: Timer) -> Answer:
        """Read a timer."""
        return self._ask("timer.nanoseconds", lambda: timer.nanoseconds)
