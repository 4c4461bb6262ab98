"""Streams: queues of work on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.codes import Code
from modular_tf.device.event import Event
from modular_tf.device.host_buffer import (
    checked_size,
    host_buffer,
    release,
    writable_host_buffer,
)
from modular_tf.device.host_callback import HostCallbacks
from modular_tf.device.memory import DeviceMemory
from modular_tf.device.memory_fill import MEM_ZERO, MEMSET, MEMSET32, Fill, fill_by_copies
from modular_tf.device.native_object import NativeObject, check_natural, usable
from modular_tf.errors import ClosedError, InvalidArgumentError, ModularTFError
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.fresh_host_memory import fresh_host_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.executor import Executor
    from modular_tf.device.host_buffer import HostBuffer
    from modular_tf.device.in_flight import InFlight

_MISFITS = TypeError, AttributeError, OverflowError
"""What the native core, and what comes before it, raise of arguments that do not fit."""

_free_event = lib.mtf_event_free
_BYTE_MAX = 0xFF
_WORD_MAX = 0xFFFFFFFF
_WORD_BYTES = 4


class Stream(NativeObject):
    """A queue of work, done in order; streams run beside each other. [any thread]

    One thread at a time feeds a stream. Copies return at once; the buffers and memories that they
    use are kept, and must not be written by others, until the stream has passed them. A stream
    that is closed, or dropped, is destroyed when its copies and callbacks are done.
    """

    __slots__ = ("_callbacks", "_in_flight")

    def __init__(self, executor: Executor, native: Any, in_flight: InFlight) -> None:
        """Wrap a native stream, whose destruction waits for what is in flight."""
        super().__init__(executor, native)
        self._in_flight = in_flight
        self._callbacks: HostCallbacks | None = None

    # -- copies -----------------------------------------------------------------------------------

    def memcpy_htod(
        self, target: DeviceMemory, source: HostBuffer, n_bytes: int | None = None, offset: int = 0
    ) -> None:
        """Copy from the host to the device.

        Args:
            target: Where to.
            source: Any object with contiguous bytes, or host memory of the device.
            n_bytes: How many from its start; all of it by default.
            offset: In bytes, into the target.

        Raises:
            InvalidArgumentError: The bytes lie outside of one of the two.
            ModularTFError: The plugin's own status.
            ClosedError: The stream or the target was closed.
        """
        try:
            data = ffi.from_buffer("char[]", source)
        except (TypeError, ValueError, BufferError):
            data = host_buffer(source)
        try:
            size = len(data) if n_bytes is None else checked_size(n_bytes, data)
            if not size:
                return
            hold = target.hold
            error = lib.mtf_memcpy_htod(self.native, target.native, offset, data, size)
            if error:
                self._check(error, "memcpy_htod")
        except Exception as failure:
            release(data)
            self._explain(failure, target, offset)
            raise
        self._in_flight.hold((hold, data), size, self)

    def memcpy_dtoh(
        self, target: HostBuffer, source: DeviceMemory, n_bytes: int | None = None, offset: int = 0
    ) -> None:
        """Copy from the device to the host; the bytes are there when the stream has passed it.

        Args:
            target: Any object with contiguous writable bytes, or host memory of the device.
            source: Where from.
            n_bytes: How many, from the target's start; by default as many as the target has.
            offset: In bytes, into the source.

        Raises:
            InvalidArgumentError: The bytes lie outside of one of the two.
            ModularTFError: The plugin's own status.
            ClosedError: The stream or the source was closed.
        """
        try:
            data = ffi.from_buffer("char[]", target, True)  # noqa: FBT003  (to be written)
        except (TypeError, ValueError, BufferError):
            data = writable_host_buffer(target)
        try:
            size = len(data) if n_bytes is None else checked_size(n_bytes, data)
            if not size:
                return
            hold = source.hold
            error = lib.mtf_memcpy_dtoh(self.native, data, source.native, offset, size)
            if error:
                self._check(error, "memcpy_dtoh")
        except Exception as failure:
            release(data)
            self._explain(failure, source, offset)
            raise
        self._in_flight.hold((hold, data), size, self)

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

        Raises:
            InvalidArgumentError: The bytes lie outside of one of the two.
            ModularTFError: The plugin's own status.
            ClosedError: One of the three was closed.
        """
        try:
            size = source.size - source_offset if n_bytes is None else n_bytes
            if not size:
                return
            holds, to, start = (target.hold, source.hold), target.native, source.native
            if not lib.mtf_has_operation(self._executor.native, lib.MTF_MEMCPY_DTOD):
                self._copy_by_host(target, source, size, target_offset, source_offset)
                return
            error = lib.mtf_memcpy_dtod(self.native, to, target_offset, start, source_offset, size)
        except _MISFITS as failure:
            self._explain(failure, target, target_offset)
            self._explain(failure, source, source_offset, size)
            raise
        if error:
            raise self._executor.failure(error, "memcpy_dtod")
        self._in_flight.hold(holds, size, self)

    def _copy_by_host(
        self,
        target: DeviceMemory,
        source: DeviceMemory,
        size: int,
        target_offset: int,
        source_offset: int,
    ) -> None:
        check_natural(size)
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

        Raises:
            InvalidArgumentError: The bytes lie outside of the target.
            ModularTFError: The plugin's own status.
            ClosedError: The stream or the target was closed.
        """
        self._fill(MEM_ZERO, target, (), n_bytes, offset)

    def memset(
        self, target: DeviceMemory, value: int, n_bytes: int | None = None, offset: int = 0
    ) -> None:
        """Fill with a byte, 0 to 255; otherwise as `mem_zero`."""
        if not 0 <= value <= _BYTE_MAX:
            raise InvalidArgumentError(f"memset: {value} is no byte")
        self._fill(MEMSET, target, (value,), n_bytes, offset)

    def memset32(
        self, target: DeviceMemory, value: int, n_bytes: int | None = None, offset: int = 0
    ) -> None:
        """Fill with an unsigned 32-bit number in the host's byte order; sizes stay in bytes.

        Raises:
            InvalidArgumentError: `n_bytes` is no multiple of 4, or as `mem_zero`.
        """
        if not 0 <= value <= _WORD_MAX:
            raise InvalidArgumentError(f"memset32: {value} is no unsigned 32-bit number")
        size = target.size - offset if n_bytes is None else n_bytes
        if size % _WORD_BYTES:
            raise InvalidArgumentError(f"memset32: {size} bytes are no multiple of {_WORD_BYTES}")
        self._fill(MEMSET32, target, (value,), size, offset)

    def _fill(
        self,
        kind: Fill,
        target: DeviceMemory,
        values: tuple[int, ...],
        n_bytes: int | None,
        offset: int,
    ) -> None:
        try:
            size = target.size - offset if n_bytes is None else n_bytes
            if not size:
                return
            hold, native = target.hold, target.native
            if not lib.mtf_has_operation(self._executor.native, kind.operation):
                check_natural(size, offset)
                fill_by_copies(self, target, kind.pattern(*values), size, offset)
                return
            error = kind.function(self.native, native, offset, *values, size)
        except _MISFITS as failure:
            self._explain(failure, target, offset, size)
            raise
        if error:
            raise self._executor.failure(error, kind.name)
        self._in_flight.hold(hold, size, self)

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

    def record_event(self) -> Event:
        """Return a new event that marks the end of what the stream holds now.

        Raises:
            ModularTFError: The plugin's own status.
            ClosedError: The stream was closed.
        """
        try:
            native = lib.mtf_stream_mark(self.native)
        except TypeError:
            usable(self)
            raise
        if not native:
            raise self._executor.failure(lib.mtf_take_error(), "record_event")
        return Event(self._executor, ffi.gc(native, _free_event))

    def add_callback(self, function: Callable[[], object]) -> None:
        """Have a Python function called when the stream gets there; later work waits for it.

        It runs on a thread of Python's, not the plugin's. What it raises becomes the stream's
        error, seen by `status` and raised by `block_until_done`. It must not wait for its own
        stream: that is refused.

        Raises:
            ModularTFError: The plugin failed or refused.
            ClosedError: The stream was closed.
        """
        native = usable(self)
        if self._callbacks is None:
            self._callbacks = HostCallbacks(self._executor)
        self._callbacks.add(native, function)

    # -- waiting ----------------------------------------------------------------------------------

    @property
    def error(self) -> ModularTFError | None:
        """What went wrong on the stream so far, None for nothing; does not wait.

        A callback's exception is there first; then the plugin is asked, by get_stream_status.

        Raises:
            ClosedError: The stream was closed.
        """
        native = usable(self)
        if self._callback_error is not None:
            return self._callback_error
        error = lib.mtf_stream_status(native)
        found = self._executor.failure(error, "get_stream_status") if error else None
        if isinstance(found, ClosedError):
            raise found
        return found

    @property
    def status(self) -> Code:
        """The code of `error`, OK for none."""
        error = self.error
        return Code.OK if error is None else error.code

    def block_until_done(self) -> None:
        """Wait until all work is done; other Python threads run meanwhile.

        Raises:
            ModularTFError: Some work failed, or a callback raised: that is its cause.
            FailedPreconditionError: Called by a callback of this device.
            ClosedError: The stream was closed.
        """
        native = usable(self)
        self._executor.refuse_in_callback("block_until_done")
        passed = self._in_flight.take_all()  # before the wait: others may feed the stream meanwhile
        failed = lib.mtf_stream_block_until_done(native)
        error = self._executor.failure(failed, "block_host_until_done") if failed else None
        del passed
        error = self._callback_error or error or self.error
        if error is not None:
            raise error

    def drop_passed(self) -> bool:
        """Let go of what is known to be done of what copies use; does not wait.

        Returns:
            Whether there was anything.
        """
        return self._in_flight.drop_passed()

    @property
    def _callback_error(self) -> ModularTFError | None:
        return None if self._callbacks is None else self._callbacks.error

    def _explain(self, failure: Exception, memory: object, *numbers: int) -> None:
        """Find the argument that the native core did not take, if that is what failed."""
        if not isinstance(failure, _MISFITS):
            return
        usable(self)
        usable(memory, DeviceMemory)
        check_natural(*numbers)
