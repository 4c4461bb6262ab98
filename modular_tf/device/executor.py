"""The stream executor of one device: what makes its streams, events, timers and memory."""

from __future__ import annotations

import atexit
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.concurrency.threads import start_thread
from modular_tf.device.executor_end import close_executors
from modular_tf.device.memory.allocator_stats import AllocatorStats, MemoryUsage
from modular_tf.device.memory.device_memory import (
    DeviceMemory,
    HostMemory,
    UnifiedMemory,
    host_memory_end,
)
from modular_tf.device.native_object import call_and_own, owned
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
    InvalidArgumentError,
    ModularTFError,
    OutOfMemoryError,
    ResourceExhaustedError,
    UnavailableError,
)
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.plugin_names import named
from modular_tf.native.status import take_error
from modular_tf.native.strings import encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.memory.executor_arenas import ExecutorArenas
    from modular_tf.device.streams.host_callback import HostCallbacks
    from modular_tf.device.streams.timer import Timer
    from modular_tf.loading.plugin_allocator import PluginAllocator

_MOST_BYTES = (1 << 63) - 1
_DEVICE, _HOST, _UNIFIED = lib.MTF_DEVICE_MEMORY, lib.MTF_HOST_MEMORY, lib.MTF_UNIFIED_MEMORY
_ALLOCATES = {
    _DEVICE: "allocate",
    _HOST: "host_memory_allocate",
    _UNIFIED: "unified_memory_allocate",
}
_new_memory = lib.mtf_memory_new
_new_arena_memory = lib.mtf_arena_memory_new
_free_memory = lib.mtf_memory_free
_free_event = lib.mtf_event_free

_LAST_LOOK_S = 1.0
"""How long closing waits for the event manager to see what is done; the rest fails as closed."""

atexit.register(lib.mtf_executors_process_ends)


class Executor:
    """One device at work. [any thread]: calls run beside each other.

    The owner of the device closes it; then all that it made is closed too, in this order: timers,
    events, streams, device memory. Host and unified memory that is still viewed stays, and with
    it the device.

    Attributes:
        name: The device's, for messages.
        plugin: The plugin's name for users.
        native: The native part.
        events: Calls functions when events are done.
        context: The streams that every device has.
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
    ) -> None:
        """Make an executor that has not called the plugin yet.

        Args:
            table: Address of an SP_StreamExecutor of the newest layout; it is copied.
            device: Address of the SP_Device, valid until `close` has returned, and as long as
                `host_memories` is not 0.
            name: The device's.
            plugin: The plugin's.
            timer: Returns the address of SP_TimerFns.nanoseconds, 0 for none; asked for the first
                timer.
            allocator: The plugin's own, instead of the functions of the table.
            arenas: Makes what cuts the plugin's memory; None to ask the plugin for each piece.
            copy_streams: How many streams share the copies to other devices, 1 to 4.
        """
        self.name = name
        self.plugin = plugin
        self._timer = timer
        self._callbacks: LiveObjects[HostCallbacks] = LiveObjects()
        self._in_flight: set[InFlight] = set()  # of all streams that are not destroyed
        self._streams: LiveObjects[Stream] = LiveObjects()
        self._closed = False
        self._release_device: Callable[[], None] | None = (
            None  # for the end of the last host memory
        )
        self.events = EventManager(self)
        self.context = DeviceContext(self, copy_streams)
        structs = ffi.cast("void *", table), ffi.cast("void *", device)
        new, free = lib.mtf_executor_new, lib.mtf_executor_free
        arguments = *structs, named(plugin), encode(name)
        self.native = owned(new, free, arguments, self, "the executor")
        self._allocator = allocator  # has the struct that the plugin gets with each call
        if allocator is not None:
            self.check(allocator.give_to(self.native), "the allocator")
        self._arenas = None if arenas is None else arenas(self)

    # -- memory -----------------------------------------------------------------------------------

    def allocate(self, n_bytes: int) -> DeviceMemory:
        """Allocate device memory, out of an arena where there is one; 0 bytes need no plugin.

        Raises:
            OutOfMemoryError: The plugin gave none, or the limit of the arena is reached, whose
                picture the message has then.
            InvalidArgumentError: Nobody has so many bytes, or fewer than none.
            ClosedError: The device was closed.
        """
        return DeviceMemory(self, self._new_memory(_DEVICE, n_bytes, _free_memory), n_bytes)

    def allocate_host(self, n_bytes: int) -> HostMemory:
        """Allocate host memory that copies can use beside the host; errors as in `allocate`."""
        return HostMemory(self, self._new_memory(_HOST, n_bytes, host_memory_end(self)), n_bytes)

    def allocate_unified(self, n_bytes: int) -> UnifiedMemory:
        """Allocate memory that host and device share; errors as in `allocate`, and:

        Raises:
            UnimplementedError: The plugin has no such memory.
        """
        native = self._new_memory(_UNIFIED, n_bytes, host_memory_end(self))
        return UnifiedMemory(self, native, n_bytes)

    def _new_memory(self, kind: int, n_bytes: int, free: Callable[[Any], None]) -> Any:
        if not 0 <= n_bytes <= _MOST_BYTES:
            raise InvalidArgumentError(f"{self.name}: {n_bytes} bytes cannot be allocated")
        native = self._ask_for_memory(kind, n_bytes, free)
        if native:
            return native
        failure = self._memory_failure(_ALLOCATES[kind])
        if isinstance(failure, OutOfMemoryError) and self._drop_passed():
            native = self._ask_for_memory(kind, n_bytes, free)
            if native:
                return native
            failure = self._memory_failure(_ALLOCATES[kind])
        raise failure

    def _ask_for_memory(self, kind: int, n_bytes: int, free: Callable[[Any], None]) -> Any:
        arena = None if self._arenas is None else self._arenas.of(kind)
        if arena is None:
            return call_and_own(_new_memory, (self.native, kind, n_bytes), free)
        return call_and_own(_new_arena_memory, (self.native, arena.native, kind, n_bytes), free)

    def _memory_failure(self, operation: str) -> ModularTFError:
        error = self.failure(lib.mtf_take_error(), operation)
        if error.code is not Code.RESOURCE_EXHAUSTED:
            return error
        return OutOfMemoryError(error.message, plugin=error.plugin, operation=error.operation)

    def _drop_passed(self) -> bool:
        """Let go of what streams have passed, which they do in batches; return whether of anything.

        A memory that was dropped is kept by its last copies until then.
        """
        return sum(in_flight.release_passed() for in_flight in list(self._in_flight)) > 0

    def borrow_native(self, address: int, size: int, payload: int) -> Any:
        """Return a native memory that somebody else frees."""
        arguments = self.native, ffi.cast("void *", address), size, payload
        return owned(lib.mtf_memory_borrow, _free_memory, arguments, self, "borrow")

    def memory_usage(self) -> MemoryUsage:
        """Ask for free and total bytes.

        Raises:
            UnavailableError: The plugin does not know.
            ModularTFError: It threw.
            ClosedError: The device was closed.
        """
        free, total = ffi.new("int64_t *"), ffi.new("int64_t *")
        known = ffi.new("int32_t *")
        error = lib.mtf_device_memory_usage(self.native, free, total, known)
        self._check_known(error, known[0], "device_memory_usage")
        return MemoryUsage(free[0], total[0])

    def allocator_stats(self) -> AllocatorStats:
        """Return the figures of the device memory's arena, or else ask what the plugin counts.

        Raises:
            ModularTFError: As `memory_usage`.
        """
        arena = None if self._arenas is None else self._arenas.of(lib.MTF_DEVICE_MEMORY)
        if arena is not None and lib.mtf_executor_is_open(self.native):
            return arena.allocator_stats()
        stats, known = ffi.new("mtf_allocator_stats *"), ffi.new("int32_t *")
        error = lib.mtf_get_allocator_stats(self.native, stats, known)
        self._check_known(error, known[0], "get_allocator_stats")
        return AllocatorStats.from_native(stats)

    def _check_known(self, error: Any, known: int, operation: str) -> None:
        self.check(error, operation)
        if not known:
            raise UnavailableError(
                f"{self.name}: {operation}: the plugin does not know (plugin {self.plugin})",
                plugin=self.plugin,
                operation=operation,
            )

    # -- streams and events -----------------------------------------------------------------------

    def create_stream(self) -> Stream:
        """Return a new stream.

        Raises:
            ModularTFError: The plugin's own status.
            ClosedError: The device was closed.
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

        Raises:
            ModularTFError: The plugin's own status.
            ClosedError: The device was closed.
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
        """Wait until streams with work have passed it, or failed; see `synchronize`."""
        if timeout is None:
            for in_flight in tuple(self._in_flight):  # a loop: most copies come through here
                if in_flight.batch or in_flight.is_busy():
                    break
            else:
                return
        end = end_of(timeout)
        for stream in self._streams.all():
            with suppress(ClosedError):
                stream.wait_until_passed(end, timeout)

    def synchronize_now(self) -> None:
        """Wait by the plugin's own synchronize_all_activity alone; errors as in `synchronize`."""
        self.refuse_in_dependent_callback("synchronize_all_activity")
        self.check(lib.mtf_synchronize_all_activity(self.native), "synchronize_all_activity")

    # -- the end ----------------------------------------------------------------------------------

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
        """How many host and unified memories somebody may still look at."""
        return int(lib.mtf_executor_host_memories(self.native))

    @property
    def is_idle(self) -> bool:
        """Whether nobody holds anything of it: streams, events, timers or memory."""
        held = int(lib.mtf_executor_held_objects(self.native))
        return held <= self.context.n_created and not len(self.events)

    def close(self) -> None:
        """Wait for calls and work in flight, then end all that was made. Safe to call twice.

        Raises:
            ModularTFError: Work in flight failed; all was ended nevertheless.
            FailedPreconditionError: Called by a callback that this would wait for; nothing has
                happened.
        """
        failures = close_executors([self])
        if failures:
            raise failures[0]

    def begin_close(self) -> None:
        """Let those who wait for events see how they ended, then refuse everything."""
        if len(self.events) and lib.mtf_executor_is_open(self.native):
            lib.mtf_error_free(lib.mtf_synchronize_all_activity(self.native))
            self.events.drain(_LAST_LOOK_S)
        lib.mtf_executor_refuse_calls(self.native)
        self._closed = True  # not before: whoever sees it finds calls refused

    def finish_close(self) -> None:
        """Let go of what the plugin does not need any more, now that all was destroyed."""
        if lib.mtf_executor_is_inherited(self.native):
            return  # the plugin has it in the parent, and so may threads have locks
        if self._arenas is not None:
            self._arenas.close()
        for callbacks in self._callbacks.all():
            callbacks.cancel_all()
        for in_flight in list(self._in_flight):
            in_flight.drop_all()
        self._in_flight.clear()

    def call_when_unused(self, release: Callable[[], None]) -> None:
        """Have a function called when a closed device has no host memory left.

        Args:
            release: A second call of it must do nothing. Where the call is interrupted,
                or no thread can be started for it, the next `call_when_unused` tries again.
        """
        self._release_device = release
        self.host_memory_ended(left=self.host_memories)

    def host_memory_ended(self, *, left: int) -> None:
        """Let the device go if none is left; may be called by the garbage collector."""
        release = self._release_device
        if left or release is None or sys.is_finalizing():
            return  # a thread that starts while the interpreter ends would never run
        # The collector may have come while this very thread holds the locks that this needs.
        thread = threading.Thread(target=release, name=f"end of {self.name}")
        with suppress(ResourceExhaustedError):  # the device stays
            start_thread(thread)
            self._release_device = None  # not before: an interrupt must not lose it

    # -- for the objects --------------------------------------------------------------------------

    def failure(self, error: Any, operation: str) -> ModularTFError:
        """Turn a native error into one that names the device, not raised."""
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
        """Cancel the callbacks that were never called when the device is closed."""
        self._callbacks.add(callbacks)

    def refuse_in_callback(self, operation: str) -> None:
        """Refuse to wait for a callback in that callback.

        Raises:
            FailedPreconditionError: This thread runs a callback of this device.
        """
        if running_executor() is self:
            raise self._awaited_error(operation, self)

    def refuse_in_dependent_callback(self, operation: str) -> None:
        """Refuse to wait for all work of the device in a callback that is part of it.

        Raises:
            FailedPreconditionError: This thread runs a callback of this device, or of one that
                works with what belongs to this one.
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
        """Raise what a native call reported."""
        if error:
            raise self.failure(error, operation)

    def __repr__(self) -> str:
        return f"<Executor of {self.name}, {'closed' if self._closed else 'open'}>"
