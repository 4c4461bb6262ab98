"""The stream executor of one device, which creates its streams, events, timers and memory."""

from __future__ import annotations

import atexit
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.concurrency.threads import start_thread
from modular_tf.device.executor_close import close_executors
from modular_tf.device.memory.allocation import allocator_stats, memory_usage, new_memory
from modular_tf.device.memory.device_memory import (
    DeviceMemory,
    HostMemory,
    UnifiedMemory,
    host_memory_end,
)
from modular_tf.device.native_object import owned
from modular_tf.device.streams.device_context import DeviceContext
from modular_tf.device.streams.event import Event, end_of
from modular_tf.device.streams.event_manager import EventManager
from modular_tf.device.streams.host_callback import running_executor
from modular_tf.device.streams.in_flight import InFlight
from modular_tf.device.streams.stream import Stream
from modular_tf.device.streams.stream_end import stream_end
from modular_tf.device.streams.timer import HostClockTimer, PluginTimer
from modular_tf.errors import (
    ClosedError,
    FailedPreconditionError,
    ModularTFError,
    ResourceExhaustedError,
)
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.plugin_names import named
from modular_tf.native.status import take_error
from modular_tf.native.strings import encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.arrays.array import DeviceArray
    from modular_tf.device.memory.allocator_stats import AllocatorStats, MemoryUsage
    from modular_tf.device.memory.executor_arenas import ExecutorArenas
    from modular_tf.device.streams.host_callback import HostCallbacks
    from modular_tf.device.streams.timer import Timer
    from modular_tf.loading.plugin_allocator import PluginAllocator

_DEVICE, _HOST, _UNIFIED = lib.MTF_DEVICE_MEMORY, lib.MTF_HOST_MEMORY, lib.MTF_UNIFIED_MEMORY
_free_memory = lib.mtf_memory_free
_free_event = lib.mtf_event_free

_LAST_POLL_S = 1.0
"""How long closing waits for the event manager; events not done by then fail as closed."""

atexit.register(lib.mtf_executors_process_ends)


class Executor:
    """The executor of one device. [any thread]; calls run in parallel.

    The owner of the device closes it. That closes everything that it created, in this order:
    timers, events, streams, device memory. Memory of the host that is still viewed stays valid, and
    keeps the device: host and unified memory, and all memory of a host device.
    """

    def __init__(
        self,
        table: int,
        device: int,
        *,
        name: str,
        plugin: str,
        timer: Callable[[], int] | None,
        allocator: PluginAllocator | None = None,
        arenas: Callable[[Executor], ExecutorArenas] | None = None,
        copy_streams: int = 1,
        is_host: bool = False,
    ) -> None:
        """Create an executor; the plugin is not called yet.

        Args:
            table: Address of an SP_StreamExecutor of the newest layout; it is copied.
            device: Address of the SP_Device, valid until `close` has returned, and as long as
                `host_memories` is not 0.
            name: The device's.
            plugin: The plugin's.
            timer: Returns the address of SP_TimerFns.nanoseconds, 0 for none; asked for the first
                timer.
            allocator: The plugin's own, instead of the functions of the table.
            arenas: Creates the arenas; None to let the plugin allocate each piece.
            copy_streams: How many streams share the copies to other devices, 1 to 4.
            is_host: Whether device memory is the host's.
        """
        self.name = name  # the device's, for messages
        self.plugin = plugin
        self._timer = timer
        self._callbacks: LiveObjects[HostCallbacks] = LiveObjects()
        self._in_flight: set[InFlight] = set()  # of all streams that are not destroyed
        self._streams: LiveObjects[Stream] = LiveObjects()
        self._closed = False
        self._release_device: Callable[[], None] | None = None  # after the last host memory
        self.events = EventManager(self)  # calls functions when events are done
        self.context = DeviceContext(self, copy_streams)  # the streams that every device has
        structs = ffi.cast("void *", table), ffi.cast("void *", device)
        new, free = lib.mtf_executor_new, lib.mtf_executor_free
        arguments = *structs, named(plugin), encode(name), is_host
        self.native = owned(new, free, arguments, self, "the executor")
        # of the plugin's SP_Device, valid until the executor is closed
        self.device_address = device
        self.is_host = is_host  # device memory is the host's
        self._ended: LiveObjects[DeviceArray | DeviceMemory] = LiveObjects()
        self._free_device_memory = host_memory_end(self) if is_host else _free_memory
        self._allocator = allocator  # has the struct that the plugin gets with each call
        if allocator is not None:
            self.check(allocator.attach_to(self.native), "the allocator")
        # of its memory; None if the plugin allocates each piece
        self.arenas = None if arenas is None else arenas(self)

    # -- memory -----------------------------------------------------------------------------------

    def allocate(self, n_bytes: int) -> DeviceMemory:
        """Return new device memory, out of an arena if there is one; 0 bytes need no plugin.

        Raises:
            OutOfMemoryError: The plugin has none, or the limit of the arena is reached; then the
                message shows the arena's blocks.
            InvalidArgumentError: The size is negative or impossible.
            ClosedError: The device was closed.
        """
        return DeviceMemory(
            self, new_memory(self, _DEVICE, n_bytes, self._free_device_memory), n_bytes
        )

    def allocate_host(self, n_bytes: int) -> HostMemory:
        """Return new host memory that the device can copy from and to; errors as in `allocate`."""
        return HostMemory(self, new_memory(self, _HOST, n_bytes, host_memory_end(self)), n_bytes)

    def allocate_unified(self, n_bytes: int) -> UnifiedMemory:
        """Return new memory that host and device share; errors as in `allocate`.

        Also raises UnimplementedError if the plugin has no such memory.
        """
        native = new_memory(self, _UNIFIED, n_bytes, host_memory_end(self))
        return UnifiedMemory(self, native, n_bytes)

    def borrow_native(self, address: int, size: int, payload: int) -> Any:
        """Return a native memory that its owner frees."""
        arguments = self.native, ffi.cast("void *", address), size, payload
        return owned(lib.mtf_memory_borrow, _free_memory, arguments, self, "borrow")

    def memory_usage(self) -> MemoryUsage:
        """Return the free and total bytes of the device.

        Raises:
            UnavailableError: The plugin does not know.
            ModularTFError: The plugin threw an exception.
            ClosedError: The device was closed.
        """
        return memory_usage(self)

    def allocator_stats(self) -> AllocatorStats:
        """Return the figures of the device memory's arena, or those that the plugin counts.

        Errors as of `memory_usage`.
        """
        return allocator_stats(self)

    def release_passed(self) -> bool:
        """Release what streams have passed, which they do in batches; return whether anything was.

        Memory that was dropped is kept by its last copies until then.
        """
        return sum(in_flight.release_passed() for in_flight in list(self._in_flight)) > 0

    # -- streams and events -----------------------------------------------------------------------

    def create_stream(self) -> Stream:
        """Return a new stream.

        Errors are the plugin's own status, or ClosedError for the device.
        """
        in_flight = InFlight()
        self._in_flight.add(in_flight)
        end = stream_end(in_flight, self._in_flight)
        native = owned(lib.mtf_stream_new, end, (self.native,), self, "create_stream")
        stream = Stream(self, native, in_flight)
        self._streams.add(stream)
        return stream

    def create_event(self) -> Event:
        """Return a new event, not recorded yet; errors as in `create_stream`."""
        native = lib.mtf_event_new(self.native)
        if not native:
            raise self.failure(lib.mtf_take_error(), "create_event")
        return Event(self, ffi.gc(native, _free_event))

    def create_timer(self) -> Timer:
        """Return a new timer, by the host's clock where the plugin has none.

        Errors are the plugin's own status, or ClosedError for the device.
        """
        if self._timer is not None:
            lib.mtf_executor_set_timer(self.native, ffi.cast("void *", self._timer()))
            self._timer = None
        if not lib.mtf_has_timers(self.native):
            return HostClockTimer(self)
        new, free = lib.mtf_timer_new, lib.mtf_timer_free
        return PluginTimer(self, owned(new, free, (self.native,), self, "create_timer"))

    def synchronize(self, timeout: float | None = None) -> None:
        """Wait until all streams of the device are done; signal handlers run meanwhile.

        Streams with work are polled by events, as `Stream.block_until_done` does, before the
        plugin's own wait, which no signal interrupts.

        Args:
            timeout: In seconds; None waits as long as it takes.

        Raises:
            DeadlineExceededError: They were not done in time; the work goes on.
            ModularTFError: The plugin's own status.
            FailedPreconditionError: Called by a callback of this device.
            ClosedError: The device was closed.
        """
        self.refuse_in_dependent_callback("synchronize_all_activity")
        self.await_streams(timeout)
        self.synchronize_now()

    def await_streams(self, timeout: float | None = None) -> None:
        """Wait until streams with work have finished it, or failed; see `synchronize`."""
        if timeout is None:
            for in_flight in tuple(self._in_flight):  # a loop: copies and calls come through here
                if in_flight.batch or in_flight.sealed:
                    break
            else:
                return
        end = end_of(timeout)
        for stream in self._streams.all():
            with suppress(ClosedError):
                stream.await_passed(end, timeout)

    def synchronize_now(self) -> None:
        """Wait by the plugin's synchronize_all_activity only; errors as in `synchronize`."""
        self.refuse_in_dependent_callback("synchronize_all_activity")
        self.check(lib.mtf_synchronize_all_activity(self.native), "synchronize_all_activity")

    def order_after_all(self, stream: Stream) -> None:
        """Let later work of a stream wait for what all streams of the device hold now.

        It blocks only where a stream that was closed has work left; errors as in `synchronize`.
        """
        others = [each for each in self._streams.all() if each.native is not None]
        if len(self._in_flight) > len(others):
            self.synchronize()
        try:
            for other in others:
                if other is not stream and other.may_have_work:
                    stream.wait_for(other)
        except ClosedError:  # another thread has closed one meanwhile
            self.synchronize()

    # -- closing -----------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def may_work(self) -> bool:
        """Whether its memory may still be read or written: until `close` has ended all work."""
        return not (self._closed and lib.mtf_executor_has_ended(self.native))

    @property
    def host_memories(self) -> int:
        """The number of memories of the host that are still in use."""
        return int(lib.mtf_executor_host_memories(self.native))

    @property
    def is_idle(self) -> bool:
        """Whether no streams, events, timers or memory of it are in use."""
        held = int(lib.mtf_executor_held_objects(self.native))
        return held <= self.context.n_created and not len(self.events)

    def close(self) -> None:
        """Wait for calls and work in flight, then destroy everything. Safe to call twice.

        Raises:
            ModularTFError: Work in flight failed; everything was destroyed nevertheless.
            FailedPreconditionError: Called by a callback that this would wait for; nothing has
                happened.
        """
        failures = close_executors([self])
        if failures:
            raise failures[0]

    def begin_close(self) -> None:
        """Report the events that are done to their waiters, then refuse all calls."""
        if len(self.events) and lib.mtf_executor_is_open(self.native):
            lib.mtf_error_free(lib.mtf_synchronize_all_activity(self.native))
            self.events.drain(_LAST_POLL_S)
        lib.mtf_executor_refuse_calls(self.native)
        self._closed = True  # not before: a thread that sees it must find calls refused

    def finish_close(self) -> None:
        """Release what the plugin needed until everything was destroyed."""
        if lib.mtf_executor_is_inherited(self.native):
            return  # the parent's plugin uses it, and its threads may hold locks
        if self.arenas is not None:
            self.arenas.close()
        for callbacks in self._callbacks.all():
            callbacks.cancel_all()
        for in_flight in list(self._in_flight):
            in_flight.release_all()
        self._in_flight.clear()

    def end_memory(self, found: DeviceArray | DeviceMemory) -> None:
        """Close what has memory of this device, which was closed, unless it was closed before."""
        self._ended.add(found)
        found.close()

    def has_ended(self, found: object) -> bool:
        """Whether `end_memory` closed something, and not its owner.

        The error of what ended with its device advises to copy it to the host before that.
        """
        return any(each is found for each in self._ended.all())

    def call_when_unused(self, release: Callable[[], None]) -> None:
        """Call a function on a thread when a closed device has no host memory left.

        A second call of `release` must do nothing. Where the call is interrupted, or no thread can
        be started for it, the next `call_when_unused` tries again.
        """
        self._release_device = release
        self.host_memory_ended(left=self.host_memories)

    def host_memory_ended(self, *, left: int) -> None:
        """Release the device if no host memory is left; the garbage collector may call this."""
        release = self._release_device
        if left or release is None or sys.is_finalizing():
            return  # a thread that starts while the interpreter ends would never run
        # The collector may have come while this very thread holds the locks that this needs.
        thread = threading.Thread(target=release, name=f"end of {self.name}")
        with suppress(ResourceExhaustedError):  # the device stays
            start_thread(thread)
            self._release_device = None  # not before: an interrupt must not lose it

    # -- for its objects ---------------------------------------------------------------------------

    def failure(self, error: Any, operation: str) -> ModularTFError:
        """Return a native error as an exception that names the device."""
        failed = take_error(error, plugin=self.plugin, operation=f"{self.name}: {operation}")
        failed.operation = operation
        return failed

    def shares_plugin_with(self, other: Executor) -> bool:
        """Whether streams and memory of the two may be used together."""
        return bool(lib.mtf_executors_share_plugin(self.native, other.native))

    def closed_error(self, what: str, remedy: str = "") -> ClosedError:
        """Return the error of something that was closed."""
        return ClosedError(f"{self.name}: {what} was closed{remedy}", plugin=self.plugin)

    def keep_callbacks(self, callbacks: HostCallbacks) -> None:
        """Cancel these callbacks, if they were not called, when the device is closed."""
        self._callbacks.add(callbacks)

    def refuse_in_callback(self, operation: str) -> None:
        """Raise FailedPreconditionError in a callback of this device: it would await itself."""
        if running_executor() is self:
            raise self._awaited_error(operation, self)

    def refuse_in_dependent_callback(self, operation: str) -> None:
        """Raise FailedPreconditionError in a callback that is part of the work to wait for.

        It is one of this device, or of another one that works with what belongs to this one.
        """
        running = running_executor()
        if running is not None and lib.mtf_executor_waits_for(self.native, running.native):
            raise self._awaited_error(operation, running)

    def _awaited_error(self, operation: str, running: Executor) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"{self.name}: {operation} in a host callback of {running.name} may wait for work that"
            " waits for the callback; call it when the callback has returned",
            plugin=self.plugin,
            operation=operation,
        )

    def check(self, error: Any, operation: str) -> None:
        """Raise the error of a native call, if there is one."""
        if error:
            raise self.failure(error, operation)

    def __repr__(self) -> str:
        return f"<Executor of {self.name}, {'closed' if self._closed else 'open'}>"
