"""Streams: queues of work on a device."""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from modular_tf.abi.status_codes import Code
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import Worker, start_thread
from modular_tf.device.device_core import (
    NativeObject,
    check_natural,
    owned,
    running_as,
    running_core,
    usable,
    whole_number,
)
from modular_tf.device.memory.device_memory import (
    DeviceMemory,
    HostMemory,
    checked_size,
    held,
    host_buffer,
)
from modular_tf.device.streams.event import SLICE_NS, Event, EventStatus, end_of, slice_ns
from modular_tf.errors import (
    ClosedError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    ModularTFError,
    ResourceExhaustedError,
    UnimplementedError,
)
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.fresh_host_memory import fresh_host_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from modular_tf.device.device_core import DeviceCore
    from modular_tf.device.memory.device_memory import HostBuffer

    Used = list[object]
    Batch = list[Used]
    Sealed = list[Any]  # a batch, and its event or None

_MISFITS = TypeError, AttributeError, OverflowError
"""What the native core, and what comes before it, raise of arguments that do not fit."""

_PENDING = int(EventStatus.PENDING)  # members of an enumeration compare slowly
_free_event = lib.mtf_event_free
_BYTES = ffi.typeof("char[]")
_memcpy_htod = lib.mtf_memcpy_htod
_memcpy_dtoh = lib.mtf_memcpy_dtoh
_memcpy_dtod = lib.mtf_memcpy_dtod
_NOTHING: Used = []
_BYTE_MAX = 0xFF
_WORD_MAX = 0xFFFFFFFF
_WORD_BYTES = 4
_CHUNK_BYTES = 1 << 20  # of a fill by copies


class _Fill(NamedTuple):
    """One function of plugins that fills memory."""

    name: str  # of the plugin's function
    operation: int  # its number, to ask whether the plugin has it
    # called with a stream, a memory, an offset, the value if it takes one, a size
    function: Callable[..., Any]
    width: int  # bytes of a value


_MEM_ZERO = _Fill("mem_zero", lib.MTF_MEM_ZERO, lib.mtf_mem_zero, 1)
_MEMSET = _Fill("memset", lib.MTF_MEMSET, lib.mtf_memset, 1)
_MEMSET32 = _Fill("memset32", lib.MTF_MEMSET32, lib.mtf_memset32, _WORD_BYTES)


class _InMemory(Protocol):
    """An array of the device."""

    @property
    def memory(self) -> DeviceMemory | HostMemory:
        """The memory that holds it."""


class Stream(NativeObject):
    """A queue of work, done in order; streams run in parallel. [any thread]

    One thread at a time feeds a stream. Copies return at once; the buffers and memories that they
    use are kept, and must not be written by others, until the stream has passed them. A stream
    that is closed, or dropped, is destroyed when its copies and callbacks are done.

    Methods raise ClosedError where the stream, or what they are given, was closed, and the plugin's
    own status as a ModularTFError; copies and fills raise InvalidArgumentError for bytes outside of
    a memory.
    """

    __slots__ = ("_callbacks", "_in_flight")

    def __init__(self, core: DeviceCore, native: Any, in_flight: InFlight) -> None:
        """Wrap a native stream, whose destruction waits for what is in flight."""
        super().__init__(core, native)
        self._in_flight = in_flight
        self._callbacks: HostCallbacks | None = None

    @classmethod
    def create(cls, core: DeviceCore) -> Stream:
        """Return a new stream; see `Device.create_stream`."""
        in_flight = InFlight()
        core.in_flight.add(in_flight)
        end = end_of_stream(in_flight, core.in_flight)
        native = owned(lib.mtf_stream_new, end, (core.native,), core, "create_stream")
        stream = cls(core, native, in_flight)
        core.streams.add(stream)
        return stream

    def record_event(self) -> Event:
        """Return a new event that marks the end of what the stream holds now."""
        try:
            native = lib.mtf_stream_mark(self.native)
        except TypeError:
            usable(self)
            raise
        if not native:
            raise self._core.failure(lib.mtf_take_error(), "record_event")
        return Event(self._core, ffi.gc(native, _free_event))

    # -- order ------------------------------------------------------------------------------------

    def wait_for(self, other: Stream) -> None:
        """Let later work of this stream wait for what `other` holds now; does not block."""
        error = lib.mtf_stream_depend(usable(self), usable(other, Stream))
        self._check(error, "create_stream_dependency")

    def wait_event(self, event: Event) -> None:
        """Let later work of this stream wait for an event; does not block."""
        error = lib.mtf_stream_wait_for_event(usable(self), usable(event, Event))
        self._check(error, "wait_for_event")

    def add_callback(self, function: Callable[[], object]) -> None:
        """Enqueue a call of a Python function; later work waits for it.

        It runs on a thread of Python's, not the plugin's. What it raises becomes the stream's
        error, seen by `status` and raised by `block_until_done`. It must not wait for its own
        stream: that is refused.

        Raises:
            ModularTFError: The plugin failed or refused.
            TypeError: It is no function.
        """
        native = usable(self)
        if not callable(function):
            raise TypeError(
                f"add_callback: expected a function without arguments, found {function!r}"
            )
        if self._callbacks is None:
            self._callbacks = HostCallbacks(self._core)
        self._callbacks.add(native, function)

    @contextmanager
    def work(self, used: Used) -> Iterator[Any]:
        """Give the native stream to code that enqueues work by itself, and keep what that uses.

        All is kept until the stream has passed its work, also where the code fails: it may have
        enqueued a part.

        Args:
            used: What the work uses; the code may add to it.
        """
        in_flight = self._in_flight
        native = usable(self)
        batch = in_flight.batch
        batch.append(used)
        try:
            yield native
        finally:
            in_flight.keep(batch, used)
            in_flight.room -= COST
            if in_flight.room <= 0:
                in_flight.end_batch(self)

    @contextmanager
    def native_handle(self, *used: _InMemory | DeviceMemory | HostMemory) -> Iterator[int]:
        """Lend the plugin's SP_Stream, as an address, to a block of code that queues work there.

        Work that you queue in the block, by the functions of the plugin's vendor, is the stream's
        from then on: it comes after what the stream holds and before what it gets later, and
        whoever waits for the stream, closes it, or reads an array waits for it. The plugin need
        not know when it fails; then `status` stays OK.

        The plugin owns the handle: use it, and what it leads to, in the block only, and destroy
        nothing. The stream may be closed meanwhile; it is destroyed when the block and the work
        are done. Its device must stay open until the end of the block. Some plugins have the
        handle NULL, which is 0.

        Args:
            used: The arrays and memories that the work reads or writes. They are kept until the
                stream has passed it, also if they are closed; what another stream does with them
                has to be ordered by events. Host memory must not be touched until then.
        """
        with self.work([_hold(each) for each in used]) as native:
            yield int(lib.mtf_stream_handle(native))

    def is_of(self, core: DeviceCore) -> bool:
        """Whether it is a stream of this device, as this service has it."""
        return self._core is core

    @property
    def may_have_work(self) -> bool:
        """Whether a copy, fill or callback may be under way; what it has passed may count too."""
        return self._callbacks is not None or self._in_flight.is_busy()

    # -- copies -----------------------------------------------------------------------------------

    def memcpy_htod(
        self, target: DeviceMemory, source: HostBuffer, n_bytes: int | None = None, offset: int = 0
    ) -> None:
        """Copy from the host to the device.

        The plugin gets the source as it is and reads it when the copy runs; it is kept until then,
        and what is written to it meanwhile may arrive. TensorFlow's interface asks for host memory
        of the plugin (`Device.allocate_host`) in asynchronous copies. TensorFlow gives plugins
        other memory too; one that insists may refuse it, or wait in this call.

        Args:
            target: Where to.
            source: Any object with contiguous bytes, or host memory of the device.
            n_bytes: How many from its start; all of it by default.
            offset: In bytes, into the target.
        """
        try:
            data = ffi.from_buffer(_BYTES, source)
        except (TypeError, ValueError, BufferError):
            data = host_buffer(source)
        used = _NOTHING
        try:
            size = len(data) if n_bytes is None else checked_size(n_bytes, data)
            if not size:
                return
            used = [target.hold, data]
            arguments = self.native, target.native, index(offset), data, size
            self._enqueue(_memcpy_htod, "memcpy_htod", used, size, arguments)
        except Exception as failure:
            self._release_unused(failure, used, data, [target], [offset])
            raise

    def memcpy_dtoh(
        self, target: HostBuffer, source: DeviceMemory, n_bytes: int | None = None, offset: int = 0
    ) -> None:
        """Copy from the device to the host; the bytes are there when the stream has passed it.

        The plugin writes to the target itself, as `memcpy_htod` has it read the source. What is
        read from it, or written to it, before that may be anything.

        Args:
            target: Any object with contiguous writable bytes, or host memory of the device.
            source: Where from.
            n_bytes: How many, from the target's start; by default as many as the target has.
            offset: In bytes, into the source.
        """
        try:
            data = ffi.from_buffer(_BYTES, target, True)  # noqa: FBT003  (to be written)
        except (TypeError, ValueError, BufferError):
            data = host_buffer(target, writable=True)
        used = _NOTHING
        try:
            size = len(data) if n_bytes is None else checked_size(n_bytes, data)
            if not size:
                return
            used = [source.hold, data]
            arguments = self.native, data, source.native, index(offset), size
            self._enqueue(_memcpy_dtoh, "memcpy_dtoh", used, size, arguments)
        except Exception as failure:
            self._release_unused(failure, used, data, [source], [offset])
            raise

    def memcpy_dtod(
        self,
        target: DeviceMemory,
        source: DeviceMemory,
        n_bytes: int | None = None,
        *,
        target_offset: int = 0,
        source_offset: int = 0,
    ) -> None:
        """Copy within the device, or to another of the same plugin.

        Where the plugin has no memcpy_dtod, the bytes go through the host, still in order.

        Args:
            target: Where to.
            source: Where from; of this stream's device.
            n_bytes: How many; by default all that the source has behind its offset.
            target_offset: In bytes.
            source_offset: In bytes.
        """
        used = _NOTHING
        size = -1 if n_bytes is None else n_bytes
        try:
            from_, to_ = index(source_offset), index(target_offset)
            size = source.size - from_ if n_bytes is None else index(n_bytes)
            if not size:
                return
            used = [target.hold, source.hold]
            to, start = (target.native, to_), (source.native, from_)
            self._enqueue(_memcpy_dtod, "memcpy_dtod", used, size, (self.native, *to, *start, size))
        except UnimplementedError:
            if self._has(lib.MTF_MEMCPY_DTOD):
                raise
        except _MISFITS as failure:
            numbers = [target_offset, source_offset, size]
            self._release_unused(failure, used, None, [target, source], numbers)
            raise
        else:
            return
        staging = fresh_host_memory(size)
        self.memcpy_dtoh(staging, source, offset=source_offset)
        self.memcpy_htod(target, staging, offset=target_offset)

    # -- fills ------------------------------------------------------------------------------------

    def mem_zero(self, target: DeviceMemory, n_bytes: int | None = None, offset: int = 0) -> None:
        """Fill with zero bytes; copied from the host where the plugin has no mem_zero.

        Args:
            target: What to fill.
            n_bytes: How much; by default all behind the offset.
            offset: In bytes.
        """
        self._fill(_MEM_ZERO, target, (), n_bytes, offset)

    def memset(
        self, target: DeviceMemory, value: int, n_bytes: int | None = None, offset: int = 0
    ) -> None:
        """Fill with a byte, 0 to 255; otherwise as `mem_zero`."""
        byte = whole_number(value, "memset: a byte")
        if not 0 <= byte <= _BYTE_MAX:
            raise InvalidArgumentError(f"memset: {value} is no byte")
        self._fill(_MEMSET, target, (byte,), n_bytes, offset)

    def memset32(
        self, target: DeviceMemory, value: int, n_bytes: int | None = None, offset: int = 0
    ) -> None:
        """Fill with an unsigned 32-bit number in the host's byte order; sizes stay in bytes.

        Raises:
            InvalidArgumentError: `n_bytes` is no multiple of 4, or as `mem_zero`.
        """
        word = whole_number(value, "memset32: a value")
        if not 0 <= word <= _WORD_MAX:
            raise InvalidArgumentError(f"memset32: {value} is no unsigned 32-bit number")
        held(target)
        check_natural(offset)
        left = target.size - index(offset)
        size = left if n_bytes is None else whole_number(n_bytes, "memset32: bytes")
        if size % _WORD_BYTES:
            raise InvalidArgumentError(f"memset32: {size} bytes are no multiple of {_WORD_BYTES}")
        self._fill(_MEMSET32, target, (word,), size, offset)

    def _fill(
        self,
        kind: _Fill,
        target: DeviceMemory,
        values: tuple[int, ...],
        n_bytes: int | None,
        offset: int,
    ) -> None:
        used = _NOTHING
        size = -1 if n_bytes is None else n_bytes
        try:
            start = index(offset)
            size = target.size - start if n_bytes is None else index(n_bytes)
            if not size:
                return
            used = [target.hold]
            arguments = self.native, target.native, start, *values, size
            self._enqueue(kind.function, kind.name, used, size, arguments)
        except UnimplementedError:
            if self._has(kind.operation):
                raise
        except _MISFITS as failure:
            self._release_unused(failure, used, None, [target], [offset, size])
            raise
        else:
            return
        target.part(start, size).close()  # all or nothing: no copy may start that fails later
        chunk = sum(values).to_bytes(kind.width, sys.byteorder)
        chunk *= min(size, _CHUNK_BYTES) // kind.width
        for at in range(0, size, len(chunk)):
            self.memcpy_htod(target, chunk, min(len(chunk), size - at), start + at)

    def _has(self, operation: int) -> bool:
        return bool(lib.mtf_has_operation(self._core.native, operation))

    # -- what operations use ----------------------------------------------------------------------

    def _enqueue(
        self,
        function: Callable[..., Any],
        operation: str,
        used: Used,
        n_bytes: int,
        arguments: tuple[Any, ...],
    ) -> None:
        """Enqueue an operation by a native function; the memory that it uses is kept first.

        `operation` is the plugin's function. `used` is cleared when the plugin has refused it.
        `n_bytes` are copied or set. The arguments of the native function may be of the wrong kind.
        """
        in_flight = self._in_flight
        batch = in_flight.batch
        batch.append(used)
        try:
            error = function(*arguments)
            if not error:
                in_flight.room -= n_bytes + COST
                if in_flight.batch is not batch:
                    in_flight.keep(batch, used)
                if in_flight.room <= 0:
                    in_flight.end_batch(self)
                return
        except BaseException:
            in_flight.keep(batch, used)  # a signal handler may have raised when it was enqueued
            raise
        in_flight.release_rejected(used)
        raise self._core.failure(error, operation)

    def _release_unused(
        self,
        failure: Exception,
        used: Used,
        data: Any,
        memories: Sequence[object],
        numbers: Sequence[int],
    ) -> None:
        """Release what an operation uses that the plugin did not get; raise if an argument misfits.

        It was refused, and `used` is empty then, or an argument does not fit, or a signal handler
        raised. `data` are its bytes of the host. `memories` should be open memories of devices,
        `numbers` not negative.
        """
        misfit = self._misfit(memories, numbers) if isinstance(failure, _MISFITS) else None
        if misfit is not None:
            self._in_flight.release_rejected(used)
        if data is not None and not used:
            # The traceback keeps it. Python before 3.11.9 and 3.12.3 crashes when its collector
            # finds a memoryview there together with what uses its bytes (gh-77894).
            ffi.release(data)
        if misfit is not None:
            raise misfit

    def _misfit(self, memories: Sequence[object], numbers: Sequence[int]) -> Exception | None:
        """Return the error for arguments that the native core rejected."""
        try:
            usable(self)
            for memory in memories:
                usable(memory, DeviceMemory)
            check_natural(*numbers)
        except (ModularTFError, TypeError) as found:
            return found
        return None

    # -- waiting ----------------------------------------------------------------------------------

    @property
    def error(self) -> ModularTFError | None:
        """The first error of the stream so far, None for none; does not wait.

        A callback's exception is there first; then the plugin is asked, by get_stream_status.
        """
        return self._error_of(usable(self))

    def _error_of(self, native: Any) -> ModularTFError | None:
        if self._callback_error is not None:
            return self._callback_error
        error = lib.mtf_stream_status(native)
        if not error:
            return None
        found = self._core.failure(error, "get_stream_status")
        if isinstance(found, ClosedError):
            raise found
        return found

    @property
    def status(self) -> Code:
        """The code of `error`, OK for none."""
        error = self.error
        return Code.OK if error is None else error.code

    def block_until_done(self, timeout: float | None = None) -> None:
        """Wait until all work is done; other Python threads, and signal handlers, run meanwhile.

        The stream is polled by an event; the plugin's own wait, which no signal interrupts, comes
        when there is nothing to wait for, or at once where the plugin cannot mark the stream.

        Args:
            timeout: In seconds; None waits as long as it takes.

        Raises:
            DeadlineExceededError: It was not done in time; the work goes on.
            ModularTFError: Some work failed, or a callback raised: that is its cause; or, with a
                timeout, the plugin cannot mark the stream.
            FailedPreconditionError: Called by a callback of this device.
        """
        native = self.native
        if native is None:
            usable(self)
        if running_core() is not None:
            self._core.refuse_in_callback("block_until_done")
        sealed = self._in_flight.seal()  # before the wait: others may feed the stream meanwhile
        # Mostly it is done within the first slice, and short copies shall not pay for the rest.
        status = _PENDING if timeout is not None else lib.mtf_stream_poll(native, SLICE_NS)
        if status == _PENDING:
            self.await_passed(end_of(timeout), timeout)
        elif status < 0:
            self._core.failure(lib.mtf_take_error(), "record_event")  # the plugin waits itself
        self._finish(native, sealed)

    def await_passed(self, end: int | None, timeout: float | None) -> None:
        """Wait until the stream has passed what it holds now, or has failed.

        Args:
            end: Until when, as `time.monotonic_ns` counts; None waits as long as it takes.
            timeout: How many seconds that were, for the message.

        Raises:
            DeadlineExceededError: It has not passed it by then.
            ModularTFError: With an end, the plugin cannot mark the stream.
        """
        native = usable(self)
        while (status := lib.mtf_stream_poll(native, slice_ns(end))) == _PENDING:
            if end is not None and time.monotonic_ns() >= end:
                raise DeadlineExceededError(
                    f"{self._core.name}: the stream was not done within {timeout} s"
                    f" (plugin {self._core.plugin})",
                    plugin=self._core.plugin,
                    operation="get_event_status",
                )
        if status < 0:
            failure = self._core.failure(lib.mtf_take_error(), "record_event")
            if end is not None:
                raise failure

    def finish_passed(self) -> None:
        """Release and raise as `block_until_done` does, for a stream that is known to be done."""
        sealed = self._in_flight.seal()
        self._finish(usable(self), sealed)

    def _finish(self, native: Any, sealed: Any) -> None:
        failed = lib.mtf_stream_block_until_done(native)
        if failed:
            failure = self._core.failure(failed, "block_host_until_done")
            self._in_flight.mark(sealed, self)
            raise self._callback_error or failure
        self._in_flight.release_through(sealed)
        error = self._error_of(native)
        if error is not None:
            raise error

    @property
    def _callback_error(self) -> ModularTFError | None:
        return None if self._callbacks is None else self._callbacks.error


def _hold(used: _InMemory | DeviceMemory | HostMemory) -> object:
    """Return what keeps a memory, or that of an array, whose exports wait from then on."""
    memory = used if isinstance(used, (DeviceMemory, HostMemory)) else used.memory
    return held(memory)[1] if isinstance(memory, DeviceMemory) else memory.view


# -- the memory that a stream's work uses, kept alive until the stream has done it; and its end ----


_BATCH_BYTES = 16 << 20
"""Bytes copied between two events of the stream's own: dropped memories must not pile up."""

COST = _BATCH_BYTES // 64
"""Bytes that any operation counts as, besides: an event costs as much as a short copy."""


class InFlight:
    """The buffers and memories of one stream's work. [any thread]

    An operation is in a batch before the plugin has it, so that an interrupt finds everything held
    whenever it comes:

    1. append what it uses, as a list, to `batch`, and enqueue it;
    2. when the plugin has it, or that is not known, call `keep` if `batch` is another one by now;
    3. when the plugin has it, take its bytes and `COST` from `room`; call `end_batch` without any;
    4. when the plugin has refused it, call `release_rejected`.

    A full batch ends with an event; once the plugin says that this is COMPLETE, the batch is
    dropped. Where it says that it failed, or cannot make an event, all is kept until the stream is
    known to be done or is destroyed. No lock is held while the plugin is called, which may wait for
    a callback that uses the stream.
    """

    __slots__ = ("_drops", "_lock", "batch", "room", "sealed")

    def __init__(self) -> None:
        # what the last operations use; another thread may seal it at any time
        self.batch: Batch = []
        # bytes that fit into it; about, where several threads feed the stream
        self.room = _BATCH_BYTES
        # batches that the stream may not have passed, in its order
        self.sealed: deque[Sealed] = deque()
        self._lock = ForkLock()
        self._drops = False

    def keep(self, batch: Batch, used: Used) -> None:
        """Keep what an operation uses, also if its batch was sealed before it was enqueued.

        `batch` is `self.batch` as it was before the operation was enqueued; it has `used`.
        """
        while self.batch is not batch:
            batch = self.batch
            batch.append(used)

    def release_rejected(self, used: Used) -> None:
        """Release what an operation uses that the plugin has rejected."""
        used.clear()
        with suppress(ValueError):  # sealed meanwhile, with its batch
            self.batch.remove(used)  # or another one without content, whose thread removes this

    def end_batch(self, stream: Stream) -> None:
        """Mark the batch for release when the stream has passed it; release those it has passed."""
        self.release_passed()
        self.mark(self.seal(), stream)

    def seal(self) -> Sealed | None:
        """End the batch; return it, or the one before where it is empty, None without any.

        It may be dropped when the stream has passed what it holds now.
        """
        with self._lock:
            batch = self.batch
            if not batch:
                return self.sealed[-1] if self.sealed else None
            sealed: Sealed = [batch, None]
            self.sealed.append(sealed)  # first: an interrupt must find the batch held
            if self.batch is batch:  # not sealed by a signal handler meanwhile
                self.batch, self.room = [], _BATCH_BYTES
            return sealed

    def mark(self, sealed: Sealed | None, stream: Stream) -> None:
        """Mark a sealed batch for release when the stream has passed its present work."""
        if sealed is None:
            return
        with suppress(ModularTFError):
            sealed[1] = stream.record_event()

    def release_passed(self) -> bool:
        """Release the batches that the stream has passed; return whether there were any."""
        dropped = False
        while (first := self._first_sealed()) is not None and _is_passed(first[1]):
            if not self.release_through(first):
                break
            dropped = True
        return dropped

    def _first_sealed(self) -> Sealed | None:
        try:
            return self.sealed[0]
        except IndexError:
            return None

    def release_through(self, sealed: Sealed | None) -> bool:
        """Release a sealed batch and all before it, which the stream has passed.

        Returns whether there was anything; False where this thread is in the middle of it.
        """
        with self._lock:
            held = self.sealed
            if self._drops or not held:
                return False
            passed = [held.popleft()] if held[0] is sealed else self._take_through(sealed)
        _empty(passed)  # without the lock: the plugin gets its memory back
        return bool(passed)

    def _take_through(self, sealed: Sealed | None) -> list[Sealed]:
        if not any(each is sealed for each in self.sealed):
            return []
        self._drops = True  # a signal handler must not take the one that is looked for
        taken: list[Sealed] = []
        try:
            while not taken or taken[-1] is not sealed:
                taken.append(self.sealed.popleft())
        finally:
            self._drops = False
        return taken

    def release_all(self) -> None:
        """Release everything: the stream is done and gets no more work."""
        held, last = self.sealed.copy(), self.batch
        self.batch = []
        self.sealed.clear()
        _empty([*held, [last, None]])

    def is_busy(self) -> bool:
        """Return whether the stream may still use any of it."""
        return bool(self.batch or self.sealed)

    def __len__(self) -> int:
        return len(self.batch) + sum(len(batch) for batch, _ in self.sealed.copy())


def _empty(passed: list[Sealed]) -> None:
    """Release what batches hold, also where frames of a failed wait hold the batches.

    CPython crashes where its collector finds a memoryview together with the one who uses its
    buffer. What an operation uses stays a list, since another thread may be about to keep it again.
    """
    for batch, _ in passed:
        batch.clear()


def _is_passed(event: Event | None) -> bool:
    try:
        return event is not None and event.status is EventStatus.COMPLETE
    except ModularTFError:
        return False


def end_of_stream(in_flight: InFlight, kept: set[InFlight]) -> Callable[[Any], None]:
    """Return a function that destroys a stream: waits for its copies, then releases their buffers.

    Plugins may wait for the stream's work in destroy_stream, so a callback, which some of that work
    may wait for, leaves it to a thread. What the copies use stays in `kept` as long as they may use
    it: also where the end is interrupted, or left to the device, which is being closed.
    """
    core = lib

    def end(native: Any) -> None:
        try:
            done = not len(in_flight) or _is_done(core, native)
        finally:
            core.mtf_stream_free(native)
        if done:
            kept.discard(in_flight)
            in_flight.release_all()

    def end_or_leave(native: Any) -> None:
        if running_core() is None or sys.is_finalizing():
            end(native)
        else:
            _leave(end, native)

    return end_or_leave


def _is_done(core: Any, native: Any) -> bool:
    """Return whether the stream is done; False if closing its device waits for it instead."""
    error = core.mtf_stream_block_until_done(native)
    try:
        return not error or not error.closed
    finally:
        core.mtf_error_free(error)


def _leave(end: Callable[[Any], None], native: Any) -> None:
    """Destroy a stream on a thread; without one it stays until its device is closed."""
    thread = threading.Thread(target=end, args=(native,), name="end of a stream", daemon=True)
    with suppress(ResourceExhaustedError):
        start_thread(thread)


# -- python functions that a stream calls ----------------------------------------------------------


_IDLE_NS = 100_000_000
"""How long a worker without a job stays; streams that are gone have theirs as long."""


class HostCallbacks:
    """The callbacks of one stream, and the thread that runs them. [any thread]

    `error` is of the first callback that raised, as an error of the stream.
    """

    def __init__(self, core: DeviceCore) -> None:
        self.error: ModularTFError | None = None
        self._core = core
        self._lock = ForkLock()
        self._functions: dict[int, tuple[Callable[[], object], Any]] = {}
        self._worker = Worker()
        queue = lib.mtf_callback_queue_new()
        if not queue:
            raise core.failure(lib.mtf_take_error(), "host_callback")
        self._queue = ffi.gc(queue, lib.mtf_callback_queue_free)
        core.callbacks.add(self)

    def add(self, stream: Any, function: Callable[[], object]) -> None:
        """Enqueue the call of a function in a native stream.

        Raises an error if the plugin failed or refused, ResourceExhaustedError if there is no
        thread to run it; then the stream does not call it.
        """
        outcome = ffi.new("int32_t *", lib.MTF_CALLBACK_REFUSED)
        job = lib.mtf_callback_new(self._queue)
        if not job:
            raise self._core.failure(lib.mtf_take_error(), "host_callback")
        try:
            self._file(job, function, stream)
            error = lib.mtf_callback_enqueue(stream, job, outcome)
        finally:
            if outcome[0] != lib.MTF_CALLBACK_ENQUEUED:
                self._functions.pop(job, None)
                lib.mtf_callback_cancel(job)
        if error:
            self._take(job)
            raise self._core.failure(error, "host_callback")
        if outcome[0] == lib.MTF_CALLBACK_RUN_NOW:
            self._run(function)
        elif outcome[0] == lib.MTF_CALLBACK_REFUSED:
            raise InternalError(
                f"{self._core.name}: host_callback returned 0: the callback was not enqueued"
                f" (plugin {self._core.plugin})",
                plugin=self._core.plugin,
                operation="host_callback",
            )

    def cancel_all(self) -> None:
        """Drop the callbacks that no stream will call any more."""
        for job in list(self._functions):
            lib.mtf_callback_cancel(job)
            self._take(job)

    def _file(self, job: int, function: Callable[[], object], stream: Any) -> None:
        """Start the worker if needed; keep the function and the stream until it is called."""
        with self._lock:
            self._worker.ensure(self._work, f"callbacks of {self._core.name}")
            self._functions[job] = function, stream

    def _take(self, job: int) -> Callable[[], object] | None:
        with self._lock:
            function, _ = self._functions.pop(job, (None, None))
            return function

    def _work(self) -> None:
        while not self._may_leave():
            while job := lib.mtf_callback_next(self._queue, _IDLE_NS):
                self._work_on(job)

    def _work_on(self, job: int) -> None:
        code, message = int(Code.INTERNAL), b"the callback could not be run"
        with self._lock:
            function, stream = self._functions.get(job, (None, None))
        try:
            code, message = _as_status(self._run(function))
        finally:
            lib.mtf_callback_done(job, code, message)
            self._take(
                job
            )  # may drop the last reference to the stream; nothing waits for this then
            del stream

    def _may_leave(self) -> bool:
        with self._lock:
            if not self._worker.is_current:
                return True
            if self._functions and not _ended.is_set():
                return False
            self._worker.leave()
            return True

    def _run(self, function: Callable[[], object] | None) -> ModularTFError | None:
        if function is None:
            return None
        try:
            with running_as(self._core):
                function()
        except BaseException as error:  # noqa: BLE001  (nothing may end the worker or cross C)
            failure = self._failure(error)
            self.error = self.error or failure
            return failure
        return None

    def _failure(self, error: BaseException) -> ModularTFError:
        if isinstance(error, ModularTFError):
            return error
        failure = InternalError(
            f"{self._core.name}: a callback raised {type(error).__name__}: {error}",
            code=Code.INTERNAL,
            plugin=self._core.plugin,
            operation="host_callback",
        )
        failure.__cause__ = error
        return failure


def _as_status(error: ModularTFError | None) -> tuple[int, bytes]:
    if error is None:
        return 0, b""
    return int(error.code), error.message.encode("utf-8", "backslashreplace")


_ended = threading.Event()


@atexit.register
def _end() -> None:
    """Release the plugin threads that wait for a worker, at the end of the interpreter."""
    _ended.set()
    lib.mtf_callbacks_end()
