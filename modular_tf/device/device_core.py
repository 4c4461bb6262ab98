"""The core of a device at work, and the base of its streams, events, timers and memory."""

from __future__ import annotations

import operator
import sys
import threading
from contextlib import contextmanager, suppress
from itertools import starmap
from typing import TYPE_CHECKING, Any, Protocol

from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import (
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    ModularTFError,
    ResourceExhaustedError,
    unexpected,
)
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.plugin_names import named
from modular_tf.native.status import take_error
from modular_tf.native.strings import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Self

_running = threading.local()
_free_of_host = lib.mtf_memory_free_of_host


class DeviceCore:
    """One device as its objects use it: the native executor and its errors. [any thread]

    `modular_tf.device.executor.Executor` completes it.

    Attributes:
        name: The device's, for messages.
        plugin: The plugin's.
        is_host: Whether device memory is the host's.
        native: The native executor.
        arena_of: Returns the native arena of one of `MTF_*_MEMORY`, made at its first use, and
            None for unified memory; None where the plugin allocates each piece.
        streams: Those that are alive.
        callbacks: Those of the streams, to be cancelled when the device is closed.
        in_flight: What the work of each stream uses, of all streams that are not destroyed.
    """

    def __init__(self, table: int, device: int, *, name: str, plugin: str, is_host: bool) -> None:
        self.name = name
        self.plugin = plugin
        self.is_host = is_host
        self.arena_of: Callable[[int], Any] | None = None
        self.streams: LiveObjects[Any] = LiveObjects()
        self.callbacks: LiveObjects[Cancellable] = LiveObjects()
        self.in_flight: set[Any] = set()
        self._closed = False
        self._ended: LiveObjects[Any] = LiveObjects()
        self._release_device: Callable[[], None] | None = None  # after the last host memory
        structs = ffi.cast("void *", table), ffi.cast("void *", device)
        new, free = lib.mtf_executor_new, lib.mtf_executor_free
        arguments = *structs, named(plugin), encode(name), is_host
        self.native = owned(new, free, arguments, self, "the executor")

    # -- errors -----------------------------------------------------------------------------------

    def failure(self, error: Any, operation: str) -> ModularTFError:
        """Return a native error as an exception that names the device."""
        failed = take_error(error, plugin=self.plugin, operation=f"{self.name}: {operation}")
        failed.operation = operation
        return failed

    def check(self, error: Any, operation: str) -> None:
        """Raise the error of a native call, if there is one."""
        if error:
            raise self.failure(error, operation)

    def closed_error(self, what: str, remedy: str = "") -> ClosedError:
        """Return the error of something that was closed."""
        return ClosedError(f"{self.name}: {what} was closed{remedy}", plugin=self.plugin)

    def refuse_in_callback(self, operation: str) -> None:
        """Raise FailedPreconditionError in a callback of this device: it would await itself."""
        if running_core() is self:
            raise self._awaited_error(operation, self)

    def refuse_in_dependent_callback(self, operation: str) -> None:
        """Raise FailedPreconditionError in a callback that is part of the work to wait for.

        It is one of this device, or of another one that works with what belongs to this one.
        """
        running = running_core()
        if running is not None and lib.mtf_executor_waits_for(self.native, running.native):
            raise self._awaited_error(operation, running)

    def _awaited_error(self, operation: str, running: DeviceCore) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"{self.name}: {operation} in a host callback of {running.name} may wait for work that"
            " waits for the callback; call it when the callback has returned",
            plugin=self.plugin,
            operation=operation,
        )

    # -- work -------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def shares_plugin_with(self, other: DeviceCore) -> bool:
        """Whether streams and memory of the two may be used together."""
        return bool(lib.mtf_executors_share_plugin(self.native, other.native))

    def synchronize_now(self) -> None:
        """Wait by the plugin's synchronize_all_activity, which no signal interrupts."""
        self.refuse_in_dependent_callback("synchronize_all_activity")
        self.check(lib.mtf_synchronize_all_activity(self.native), "synchronize_all_activity")

    def release_passed(self) -> bool:
        """Release what streams have passed, which they do in batches; return whether anything was.

        Memory that was dropped is kept by its last copies until then.
        """
        passed = [each.release_passed() for each in list(self.in_flight)]
        return True in passed

    # -- memory that outlives the device ----------------------------------------------------------

    @property
    def host_memories(self) -> int:
        """The number of memories of the host that are still in use."""
        return int(lib.mtf_executor_host_memories(self.native))

    def free_host_memory(self, native: Any) -> None:
        """Free a native memory of the host (or NULL), and release a closed device."""
        # The collector may have freed the core's own native part before: it is not to be asked.
        self.host_memory_ended(left=_free_of_host(native))

    def end_memory(self, found: Any) -> None:
        """Close an array or a memory of this device, which was closed."""
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

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.name}, {'closed' if self._closed else 'open'}>"


class Cancellable(Protocol):
    """The callbacks of a stream."""

    def cancel_all(self) -> None:
        """Drop the callbacks that no stream will call any more."""


@contextmanager
def running_as(core: DeviceCore) -> Iterator[None]:
    """Mark this thread as one that a device waits for."""
    outer = running_core()
    _running.core = core
    try:
        yield
    finally:
        _running.core = outer


def running_core() -> DeviceCore | None:
    """Return the device whose callback this thread runs, None for none."""
    return getattr(_running, "core", None)


class NativeObject:
    """An object of a device. [any thread]

    It is destroyed when it is closed, or dropped, and nothing uses it any more: calls of other
    threads and copies in flight keep the native part. The end of its device destroys it at once.

    Attributes:
        native: The native part, None when closed; for the objects of a device among themselves.
    """

    __slots__ = ("__weakref__", "_core", "native")

    def __init__(self, core: DeviceCore, native: Any) -> None:
        self.native: Any = native
        self._core = core  # last: its close finds the memory that refers to it

    @property
    def closed(self) -> bool:
        """Whether it, or its device, was closed."""
        return self.native is None or self._core.closed

    def close(self) -> None:
        """Destroy it as soon as nothing uses it any more. A second call does nothing."""
        self.native = None

    def _check(self, error: Any, operation: str) -> None:
        if error:
            raise self._core.failure(error, operation)

    def __enter__(self) -> Self:
        usable(self)
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<{type(self).__name__} of {self._core.name}, {state}>"


def usable(found: object, kind: type[NativeObject] = NativeObject) -> Any:
    """Return the native part of an argument.

    Raises ClosedError if it was closed, TypeError if it is nothing of this kind.
    """
    if not isinstance(found, kind):
        raise TypeError(f"expected a {kind.__name__}, found {found!r}")
    native = found.native
    if native is None:
        raise ClosedError(
            f"the {type(found).__name__} was closed",
            plugin=found._core.plugin,  # noqa: SLF001  (of this module's class)
        )
    return native


def owned(
    new: Callable[..., Any],
    free: Callable[[Any], None],
    arguments: tuple[Any, ...],
    core: DeviceCore,
    operation: str,
) -> Any:
    """Return the object that a native function creates; it is freed with its last reference.

    Raises the error that the native core kept, if the object is NULL.
    """
    native = call_and_own(new, arguments, free)
    if not native:
        raise core.failure(lib.mtf_take_error(), operation)
    return native


def call_and_own(
    new: Callable[..., Any], arguments: tuple[Any, ...], free: Callable[[Any], None]
) -> Any:
    """Return what a native function creates, owned by Python from the start; it may be NULL.

    Signal handlers run between two steps of the interpreter, and this is one: none of them can
    raise when the object exists and is not yet owned.
    """
    return next(map(ffi.gc, starmap(new, (arguments,)), (free,)))


def whole_number(found: Any, what: str) -> int:
    """Return a size, an offset or an ordinal as a number; floats are not cut off.

    Raises InvalidArgumentError if it is no whole number.
    """
    try:
        return operator.index(found)
    except TypeError:
        raise unexpected(found, what, "a whole number") from None


def check_natural(*numbers: int) -> None:
    """Raise InvalidArgumentError if a size or an offset is negative, or no whole number.

    It would become unsigned in the native core.
    """
    for number in numbers:
        if whole_number(number, "a size or an offset") < 0:
            raise InvalidArgumentError(f"{number}: sizes and offsets are not negative")
