"""Streams: queues of work on a device."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.device.memory.device_memory import DeviceMemory, HostMemory, held
from modular_tf.device.native_object import usable
from modular_tf.device.streams.event import SLICE_NS, Event, EventStatus, end_of, slice_ns
from modular_tf.device.streams.host_callback import HostCallbacks, running_executor
from modular_tf.device.streams.in_flight import COST
from modular_tf.device.streams.stream_copies import StreamCopies
from modular_tf.errors import ClosedError, DeadlineExceededError, ModularTFError
from modular_tf.native.ffi import lib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.device.arrays.array import DeviceArray
    from modular_tf.device.arrays.array_memory import ArrayMemory
    from modular_tf.device.executor import Executor
    from modular_tf.device.streams.in_flight import InFlight, Used

_PENDING = int(EventStatus.PENDING)  # members of an enumeration compare slowly


class Stream(StreamCopies):
    """A queue of work, done in order; streams run in parallel. [any thread]

    One thread at a time feeds a stream. Copies return at once; the buffers and memories that they
    use are kept, and must not be written by others, until the stream has passed them. A stream
    that is closed, or dropped, is destroyed when its copies and callbacks are done.
    """

    __slots__ = ("_callbacks",)

    def __init__(self, executor: Executor, native: Any, in_flight: InFlight) -> None:
        """Wrap a native stream, whose destruction waits for what is in flight."""
        super().__init__(executor, native, in_flight)
        self._callbacks: HostCallbacks | None = None

    # -- order ------------------------------------------------------------------------------------

    def wait_for(self, other: Stream) -> None:
        """Let later work of this stream wait for what `other` holds now; does not block.

        Raises:
            ModularTFError: The plugin's own status.
            ClosedError: One of the streams was closed.
        """
        error = lib.mtf_stream_depend(usable(self), usable(other, Stream))
        self._check(error, "create_stream_dependency")

    def wait_event(self, event: Event) -> None:
        """Let later work of this stream wait for an event; does not block.

        Raises:
            ModularTFError: The plugin's own status.
            ClosedError: The stream or the event was closed.
        """
        error = lib.mtf_stream_wait_for_event(usable(self), usable(event, Event))
        self._check(error, "wait_for_event")

    def add_callback(self, function: Callable[[], object]) -> None:
        """Enqueue a call of a Python function; later work waits for it.

        It runs on a thread of Python's, not the plugin's. What it raises becomes the stream's
        error, seen by `status` and raised by `block_until_done`. It must not wait for its own
        stream: that is refused.

        Raises:
            ModularTFError: The plugin failed or refused.
            ClosedError: The stream was closed.
            TypeError: It is no function.
        """
        native = usable(self)
        if not callable(function):
            raise TypeError(
                f"add_callback: expected a function without arguments, found {function!r}"
            )
        if self._callbacks is None:
            self._callbacks = HostCallbacks(self._executor)
        self._callbacks.add(native, function)

    @contextmanager
    def work(self, used: Used) -> Iterator[Any]:
        """Give the native stream to code that enqueues work by itself, and keep what that uses.

        All is kept until the stream has passed its work, also where the code fails: it may have
        enqueued a part.

        Args:
            used: What the work uses; the code may add to it.

        Raises:
            ClosedError: The stream was closed.
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
    def native_handle(self, *used: DeviceArray | ArrayMemory) -> Iterator[int]:
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

        Raises:
            ClosedError: The stream, or one of those used, was closed.
        """
        with self.work([_hold(each) for each in used]) as native:
            yield int(lib.mtf_stream_handle(native))

    def is_of(self, executor: Executor) -> bool:
        """Whether it is a stream of this device, as this service has it."""
        return self._executor is executor

    @property
    def may_have_work(self) -> bool:
        """Whether a copy, fill or callback may be under way; what it has passed may count too."""
        return self._callbacks is not None or self._in_flight.is_busy()

    # -- waiting ----------------------------------------------------------------------------------

    @property
    def error(self) -> ModularTFError | None:
        """The first error of the stream so far, None for none; does not wait.

        A callback's exception is there first; then the plugin is asked, by get_stream_status.

        Raises:
            ClosedError: The stream was closed.
        """
        return self._error_of(usable(self))

    def _error_of(self, native: Any) -> ModularTFError | None:
        if self._callback_error is not None:
            return self._callback_error
        error = lib.mtf_stream_status(native)
        if not error:
            return None
        found = self._executor.failure(error, "get_stream_status")
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
            ClosedError: The stream was closed.
        """
        native = self.native
        if native is None:
            usable(self)
        if running_executor() is not None:
            self._executor.refuse_in_callback("block_until_done")
        sealed = self._in_flight.seal()  # before the wait: others may feed the stream meanwhile
        # Mostly it is done within the first slice, and short copies shall not pay for the rest.
        status = _PENDING if timeout is not None else lib.mtf_stream_poll(native, SLICE_NS)
        if status == _PENDING:
            self.await_passed(end_of(timeout), timeout)
        elif status < 0:
            self._executor.failure(lib.mtf_take_error(), "record_event")  # the plugin waits itself
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
                    f"{self._executor.name}: the stream was not done within {timeout} s"
                    f" (plugin {self._executor.plugin})",
                    plugin=self._executor.plugin,
                    operation="get_event_status",
                )
        if status < 0:
            failure = self._executor.failure(lib.mtf_take_error(), "record_event")
            if end is not None:
                raise failure

    def finish_passed(self) -> None:
        """Release and raise as `block_until_done` does, for a stream that is known to be done."""
        sealed = self._in_flight.seal()
        self._finish(usable(self), sealed)

    def _finish(self, native: Any, sealed: Any) -> None:
        failed = lib.mtf_stream_block_until_done(native)
        if failed:
            failure = self._executor.failure(failed, "block_host_until_done")
            self._in_flight.mark(sealed, self)
            raise self._callback_error or failure
        self._in_flight.release_through(sealed)
        error = self._error_of(native)
        if error is not None:
            raise error

    @property
    def _callback_error(self) -> ModularTFError | None:
        return None if self._callbacks is None else self._callbacks.error


def _hold(used: DeviceArray | ArrayMemory) -> object:
    """Return what keeps a memory, or that of an array, whose exports wait from then on."""
    memory = used if isinstance(used, (DeviceMemory, HostMemory)) else used.memory
    return held(memory)[1] if isinstance(memory, DeviceMemory) else memory.view
