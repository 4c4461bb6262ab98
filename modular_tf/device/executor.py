"""The stream executor of one device: its streams together, whole copies, and its end."""

from __future__ import annotations

import atexit
import gc
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.device.device_core import DeviceCore
from modular_tf.device.memory.device_memory import DeviceMemory, UnifiedMemory, host_buffer
from modular_tf.device.streams.event import end_of
from modular_tf.device.streams.stream import Stream
from modular_tf.errors import ClosedError, InvalidArgumentError, unexpected
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.fresh_host_memory import fresh_host_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeGuard

    from modular_tf.device.memory.arenas import Arenas
    from modular_tf.device.memory.device_memory import ArrayMemory, HostBuffer
    from modular_tf.device.streams.event import Event
    from modular_tf.errors import ModularTFError
    from modular_tf.loading.plugin_allocator import PluginAllocator

atexit.register(lib.mtf_executors_process_ends)


class Executor(DeviceCore):
    """One device at work. [any thread]; calls run in parallel.

    The owner of the device closes it. That closes everything that it created, in this order:
    timers, events, streams, device memory. Memory of the host that is still viewed stays valid, and
    keeps the device: host and unified memory, and all memory of a host device.

    Attributes:
        context: The streams that every device has.
        device_address: Of the plugin's SP_Device, valid until the executor is closed.
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
        arenas: Callable[[DeviceCore], Arenas] | None = None,
        copy_streams: int = 1,
        is_host: bool = False,
    ) -> None:
        """Create an executor; the plugin is not called yet.

        `table` is the address of an SP_StreamExecutor of the newest layout, which is copied;
        `device` that of the SP_Device, valid until `close` has returned, and as long as
        `host_memories` is not 0. `timer` returns the address of SP_TimerFns.nanoseconds, 0 for
        none; it is called for the first timer. An allocator replaces the functions of the table.
        `arenas` creates the arenas; without it the plugin allocates each piece. One to four
        `copy_streams` share the copies to other devices.
        """
        super().__init__(table, device, name=name, plugin=plugin, is_host=is_host)
        self.device_address = device
        self.context = DeviceContext(self, copy_streams)
        self._timer = timer
        self._allocator = allocator  # has the struct that the plugin gets with each call
        if allocator is not None:
            self.check(allocator.attach_to(self.native), "the allocator")
        self._arenas = None if arenas is None else arenas(self)
        if self._arenas is not None:
            self.arena_of = self._arenas.of

    def has_timers(self) -> bool:
        """Return whether the plugin has timers, whose functions it is asked for once."""
        if self._timer is not None:
            lib.mtf_executor_set_timer(self.native, ffi.cast("void *", self._timer()))
            self._timer = None
        return bool(lib.mtf_has_timers(self.native))

    # -- all streams ------------------------------------------------------------------------------

    def synchronize(self, timeout: float | None = None) -> None:
        """Wait until all streams of the device are done; see `Device.synchronize`."""
        self.refuse_in_dependent_callback("synchronize_all_activity")
        self.await_streams(timeout)
        self.synchronize_now()

    def await_streams(self, timeout: float | None = None) -> None:
        """Wait until streams with work have finished it, or failed; see `synchronize`.

        They are polled by events, as `Stream.block_until_done` does.
        """
        if timeout is None:
            for in_flight in tuple(self.in_flight):  # a loop: copies and calls come through here
                if in_flight.batch or in_flight.sealed:
                    break
            else:
                return
        end = end_of(timeout)
        for stream in self.streams.all():
            with suppress(ClosedError):
                stream.await_passed(end, timeout)

    def order_after_all(self, stream: Stream) -> None:
        """Let later work of a stream wait for what all streams of the device hold now.

        It blocks only where a stream that was closed has work left; errors as in `synchronize`.
        """
        others = [each for each in self.streams.all() if each.native is not None]
        if len(self.in_flight) > len(others):
            self.synchronize()
        try:
            for other in others:
                if other is not stream and other.may_have_work:
                    stream.wait_for(other)
        except ClosedError:  # another thread has closed one meanwhile
            self.synchronize()

    # -- whole copies -----------------------------------------------------------------------------
    #
    # They are done when they return, and raise as the operations of `Stream`. Device memory goes
    # over the context's streams, in TensorFlow's order; pinned memory needs no stream.

    def write(self, target: ArrayMemory, data: HostBuffer, *, is_new: bool = False) -> None:
        """Copy bytes of the host into memory, which may be in use unless it is new."""
        if self._reaches(target):
            context = self.context
            _finish(context.copy_host_to_device(target, data), context.host_to_device)
            return
        if not is_new:  # no stream waits for what is in flight
            self.await_work()
        _copy_bytes(host_buffer(_host_side(target), writable=True), host_buffer(data))

    def read(self, target: HostBuffer, source: ArrayMemory) -> None:
        """Copy a memory into bytes of the host."""
        if self._reaches(source):
            self.await_streams()
            context = self.context
            _finish(context.copy_device_to_host(target, source), context.device_to_host)
        else:
            self.await_work()
            _copy_bytes(host_buffer(target, writable=True), host_buffer(_host_side(source)))

    def read_output(self, target: HostBuffer, source: int, n_bytes: int) -> None:
        """Copy bytes at an address of a host device, which the caller keeps.

        Raises ClosedError if the device was closed.
        """
        self.await_streams()
        to = host_buffer(target, writable=True)
        self.check(lib.mtf_read_host_memory(self.native, to, source, n_bytes), "read")

    def copy(self, source: ArrayMemory, other: Executor, target: DeviceMemory) -> None:
        """Copy a memory to another device, or to the same."""
        if not self._reaches(source):
            self.await_work()
            other.write(target, _host_side(source), is_new=True)
        elif self is other:
            stream = self.context.compute
            self.context.copy_on_device(target, source)
            _finish(stream.record_event(), stream)
        else:
            self.await_streams()
            here, there = self.context, other.context
            event = here.copy_to_device(there, target, source)
            _finish(event, *here.device_to_device, here.device_to_host, there.host_to_device)

    def await_work(self) -> None:
        """Wait until the device neither reads nor writes memory; returns at once if it was closed.

        Raises ClosedError while the device is being closed, as it works until that has ended.
        """
        if self.may_work:
            self.synchronize()

    def _reaches(self, memory: ArrayMemory) -> TypeGuard[DeviceMemory]:
        """Whether streams copy a memory; unified memory of a closed device is the host's."""
        is_left_to_host = self._closed and isinstance(memory, UnifiedMemory)
        return isinstance(memory, DeviceMemory) and not is_left_to_host

    # -- closing ----------------------------------------------------------------------------------

    @property
    def may_work(self) -> bool:
        """Whether its memory may still be read or written: until `close` has ended all work."""
        return not (self._closed and lib.mtf_executor_has_ended(self.native))

    @property
    def is_idle(self) -> bool:
        """Whether no streams, events, timers or memory of it are in use."""
        return int(lib.mtf_executor_held_objects(self.native)) <= self.context.n_created

    def close(self) -> None:
        """Close this one; see `close_executors`, whose first error it raises."""
        failures = close_executors([self])
        if failures:
            raise failures[0]

    def begin_close(self) -> None:
        """Refuse all calls from now on."""
        lib.mtf_executor_refuse_calls(self.native)
        self._closed = True  # not before: a thread that sees it must find calls refused

    def finish_close(self) -> None:
        """Release what the plugin needed until everything was destroyed."""
        if lib.mtf_executor_is_inherited(self.native):
            return  # the parent's plugin uses it, and its threads may hold locks
        if self._arenas is not None:
            self._arenas.close()
        for callbacks in self.callbacks.all():
            callbacks.cancel_all()
        for in_flight in list(self.in_flight):
            in_flight.release_all()
        self.in_flight.clear()


def _host_side(memory: ArrayMemory) -> memoryview:
    return memory.view  # type: ignore[union-attr]  # plain device memory does not get here


def _finish(event: Event, *streams: Stream) -> None:
    """Wait for a copy, and release what its streams kept for it."""
    event.wait()  # only this reports that the copy failed
    for stream in streams:
        stream.finish_passed()


def _copy_bytes(target: Any, source: Any) -> None:
    if len(target) != len(source):
        raise InvalidArgumentError(
            f"{len(source)} bytes cannot be copied over a memory of {len(target)}"
        )
    ffi.memmove(target, source, len(source))


def close_executors(executors: Sequence[Executor]) -> list[ModularTFError]:
    """Refuse new work on all executors, wait for all work in flight, then destroy them.

    Work of other executors that uses objects of these is waited for too. A second call, also in
    another thread, returns when everything is done. Returns the errors of work in flight; raises
    FailedPreconditionError if called by a callback that this would wait for, and then nothing has
    happened.
    """
    for executor in executors:
        executor.refuse_in_dependent_callback("close")
    for executor in executors:
        executor.begin_close()
    natives = ffi.new("mtf_executor *[]", [executor.native for executor in executors])
    errors = ffi.new("mtf_error *[]", len(executors))
    lib.mtf_executors_close(natives, errors, len(executors))
    failures = [
        executor.failure(error, "synchronize_all_activity")
        for executor, error in zip(executors, errors, strict=True)
        if error
    ]
    for executor, error in zip(executors, errors, strict=True):
        executor.finish_close()
        if executor.is_host and not error and executor.host_memories:
            _close_memory(executor)
    return failures


def _close_memory(executor: Executor) -> None:
    """Close the device memory of a host device, which stays only where others view it.

    Nothing lists it: arrays are made within each call of a kernel, which should not pay for that.
    What `gc.freeze` was applied to is not found, and keeps its memory until it is dropped.
    """
    users = gc.get_referrers(executor)
    for found in users:
        if hasattr(type(found), "ends_with_device") and found.ends_with_device:  # an array
            executor.end_memory(found)
    for found in users:  # not before: of these some are an array's
        if type(found) is DeviceMemory and found.native is not None:
            executor.end_memory(found)


# -- the streams that every device has, and the copies between host and devices in order -----------


_MOST_DEVICE_TO_DEVICE = 4
_PIECE = 16 << 20
"""Bytes of the host that a copy between two plugins has in hand at a time; there are two such."""


class DeviceContext:
    """The streams of one device. [any thread]

    They are created together, when the first of them is used, in this order: compute, host to
    device, device to host, then those from device to device; and closed with the device. Copies
    raise as the operations of `Stream`.
    """

    def __init__(self, core: DeviceCore, n_device_to_device: int = 1) -> None:
        """Create a context without streams; 1 to 4 will share the copies between devices.

        Raises InvalidArgumentError for another number.
        """
        if not 1 <= n_device_to_device <= _MOST_DEVICE_TO_DEVICE:
            raise InvalidArgumentError(
                f"{core.name}: {n_device_to_device} device-to-device streams,"
                f" expected 1 to {_MOST_DEVICE_TO_DEVICE}"
            )
        self.core = core
        self._n_device_to_device = n_device_to_device
        self._lock = ForkLock()
        self._turn = count()
        self._streams: tuple[Stream, ...] = ()

    @property
    def streams(self) -> tuple[Stream, ...]:
        """All streams, in the order of their creation; none of them is kept where one fails."""
        return self._streams or self._created()

    def _created(self) -> tuple[Stream, ...]:
        with self._lock:
            if not self._streams:
                created = (Stream.create(self.core) for _ in range(self.n_streams))
                self._streams = tuple(created)
            return self._streams

    @property
    def n_streams(self) -> int:
        """The number of streams once they are created; creates none."""
        return 3 + self._n_device_to_device

    @property
    def n_created(self) -> int:
        """The number of streams that exist now."""
        return len(self._streams)

    @property
    def compute(self) -> Stream:
        """The stream of the device's work."""
        return self.streams[0]

    @property
    def host_to_device(self) -> Stream:
        """The stream of copies to the device."""
        return self.streams[1]

    @property
    def device_to_host(self) -> Stream:
        """The stream of copies from the device."""
        return self.streams[2]

    @property
    def device_to_device(self) -> tuple[Stream, ...]:
        """The streams of copies to other devices."""
        return self.streams[3:]

    def copy_host_to_device(
        self, target: DeviceMemory, source: HostBuffer, n_bytes: int | None = None, offset: int = 0
    ) -> Event:
        """Copy to the device after the present work of the compute stream, by `Stream.memcpy_htod`.

        Returns the event of the copy's end; without a byte to copy too.
        """
        stream = self.host_to_device
        stream.wait_for(self.compute)
        stream.memcpy_htod(target, source, n_bytes, offset)
        return stream.record_event()

    def copy_device_to_host(
        self, target: HostBuffer, source: DeviceMemory, n_bytes: int | None = None, offset: int = 0
    ) -> Event:
        """Copy from the device after all its present work, by `Stream.memcpy_dtoh`.

        Returns the event of the copy's end; without a byte to copy too.
        """
        self.core.synchronize_now()
        stream = self.device_to_host
        stream.wait_for(self.compute)
        stream.memcpy_dtoh(target, source, n_bytes, offset)
        return stream.record_event()

    def copy_on_device(
        self, target: DeviceMemory, source: DeviceMemory, n_bytes: int | None = None
    ) -> None:
        """Copy within the device, on the compute stream, which orders it by itself."""
        self.compute.memcpy_dtod(target, source, n_bytes)

    def copy_to_device(
        self,
        other: DeviceContext,
        target: DeviceMemory,
        source: DeviceMemory,
        n_bytes: int | None = None,
    ) -> Event:
        """Copy to the device of another context; through the host if that is another plugin's.

        Copies all of the source by default, which is on this device. Returns the event of the
        copy's end.
        """
        if not isinstance(other, DeviceContext):
            raise unexpected(other, "copy_to_device", "the context of a device")
        if not self.core.shares_plugin_with(other.core):
            return self._copy_through_host(other, target, source, n_bytes)
        self.core.synchronize_now()
        streams = self.device_to_device
        stream = streams[next(self._turn) % len(streams)]
        stream.wait_for(self.compute)
        stream.wait_for(other.compute)
        stream.memcpy_dtod(target, source, n_bytes)
        return stream.record_event()

    def _copy_through_host(
        self, other: DeviceContext, target: DeviceMemory, source: DeviceMemory, n_bytes: int | None
    ) -> Event:
        """Copy in pieces: one is read while the one before it is written."""
        size = source.size if n_bytes is None else n_bytes
        fits = 0 <= size <= min(source.size, target.size)
        if not fits:  # or else the first pieces would be there
            raise InvalidArgumentError(
                f"{size} bytes reach outside of memories of {source.size} and {target.size} bytes"
            )
        pieces = [fresh_host_memory(min(size, _PIECE)) for _ in range(2 if size > _PIECE else 1)]
        last: Event | None = None
        for number, offset in enumerate(range(0, size, _PIECE)):
            piece = pieces[number % 2][: min(_PIECE, size - offset)]
            self.copy_device_to_host(piece, source, offset=offset).wait()
            if last is not None:
                last.wait()
            last = other.copy_host_to_device(target, piece, offset=offset)
        return other.copy_host_to_device(target, b"") if last is None else last
