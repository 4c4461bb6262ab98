"""Python functions that a stream calls.

1. `add` files the function under a number of the native core's and gives the number to the plugin.
2. The stream gets there; the plugin's thread calls the native core, which wakes our worker and
   waits. That thread never enters Python.
3. The worker runs the function, catches whatever it raises, and reports a code and a message.
4. The plugin's thread goes on; the stream's work behind the callback starts.
A plugin that calls from inside `add` (streams that run at once) gets its result at once, and `add`
runs the function itself.
"""

from __future__ import annotations

import atexit
import threading
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import Worker
from modular_tf.device.device_core import running_as
from modular_tf.errors import InternalError, ModularTFError
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.device_core import DeviceCore

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
