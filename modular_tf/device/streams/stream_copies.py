"""The copies and fills of a stream."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

from modular_tf.device.memory.device_memory import DeviceMemory, held
from modular_tf.device.memory.host_buffer import (
    checked_size,
    host_buffer,
    release,
    writable_host_buffer,
)
from modular_tf.device.memory.memory_fill import MEM_ZERO, MEMSET, MEMSET32, Fill, fill_by_copies
from modular_tf.device.native_object import NativeObject, check_natural, usable, whole_number
from modular_tf.device.streams.event import Event
from modular_tf.device.streams.in_flight import COST
from modular_tf.errors import InvalidArgumentError, ModularTFError, UnimplementedError
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.fresh_host_memory import fresh_host_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modular_tf.device.executor import Executor
    from modular_tf.device.memory.host_buffer import HostBuffer
    from modular_tf.device.streams.in_flight import InFlight, Used

_MISFITS = TypeError, AttributeError, OverflowError
"""What the native core, and what comes before it, raise of arguments that do not fit."""

_free_event = lib.mtf_event_free
_BYTES = ffi.typeof("char[]")
_memcpy_htod = lib.mtf_memcpy_htod
_memcpy_dtoh = lib.mtf_memcpy_dtoh
_memcpy_dtod = lib.mtf_memcpy_dtod
_NOTHING: Used = []
_BYTE_MAX = 0xFF
_WORD_MAX = 0xFFFFFFFF
_WORD_BYTES = 4


class StreamCopies(NativeObject):
    """The copies and fills of a stream, and the events that tell when they are done.

    They return at once; what they use is held before the plugin has them, and until the stream has
    passed them.
    """

    __slots__ = ("_in_flight",)

    def __init__(self, executor: Executor, native: Any, in_flight: InFlight) -> None:
        """Wrap a native stream, whose destruction waits for what is in flight."""
        super().__init__(executor, native)
        self._in_flight = in_flight

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

        Raises:
            InvalidArgumentError: The bytes lie outside of one of the two.
            ModularTFError: The plugin's own status.
            ClosedError: The stream or the target was closed.
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

        Raises:
            InvalidArgumentError: The bytes lie outside of one of the two.
            ModularTFError: The plugin's own status.
            ClosedError: The stream or the source was closed.
        """
        try:
            data = ffi.from_buffer(_BYTES, target, True)  # noqa: FBT003  (to be written)
        except (TypeError, ValueError, BufferError):
            data = writable_host_buffer(target)
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

        Raises:
            InvalidArgumentError: The bytes lie outside of one of the two.
            ModularTFError: The plugin's own status.
            ClosedError: One of the three was closed.
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
        self._copy_by_host(target, source, size, target_offset, source_offset)

    def _copy_by_host(
        self,
        target: DeviceMemory,
        source: DeviceMemory,
        size: int,
        target_offset: int,
        source_offset: int,
    ) -> None:
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
        byte = whole_number(value, "memset: a byte")
        if not 0 <= byte <= _BYTE_MAX:
            raise InvalidArgumentError(f"memset: {value} is no byte")
        self._fill(MEMSET, target, (byte,), n_bytes, offset)

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
        self._fill(MEMSET32, target, (word,), size, offset)

    def _fill(
        self,
        kind: Fill,
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
        fill_by_copies(self, target, kind.pattern(*values), size, start)

    def _has(self, operation: int) -> bool:
        return bool(lib.mtf_has_operation(self._executor.native, operation))

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
        raise self._executor.failure(error, operation)

    def _release_unused(
        self,
        failure: Exception,
        used: Used,
        data: Any,
        memories: Sequence[object],
        numbers: Sequence[int],
    ) -> None:
        """Release what an operation uses that the plugin did not get.

        Args:
            failure: Why: refused, or an argument does not fit, or from a signal handler.
            used: What the operation uses; empty where it was refused.
            data: Its bytes of the host, None for none.
            memories: Arguments that should be open memories of devices.
            numbers: Arguments that should not be negative.

        Raises:
            ModularTFError: An argument does not fit.
            TypeError: Likewise.
        """
        misfit = self._misfit(memories, numbers) if isinstance(failure, _MISFITS) else None
        if misfit is not None:
            self._in_flight.release_rejected(used)
        if data is not None and not used:
            release(data)
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
