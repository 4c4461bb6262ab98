"""How long a service lives: its lock, and what the end of the process and a fork do to it."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from functools import wraps
from typing import TYPE_CHECKING, Protocol, TypeVar

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.concurrency.threads import uninterrupted
from modular_tf.errors import ClosedError, DeadlineExceededError, ModularTFError
from modular_tf.rules.shortage import raise_shortage
from modular_tf.service.log_output import listener

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import ParamSpec

    _Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def entry_point(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Make a function end as a whole (`uninterrupted`), or with the shortage that it met.

    What this process has too little of is no verdict on a plugin: it raises `ShortageError`, the
    plugins are left as they are, and the next call tries again.
    """

    @wraps(function)
    def run(*arguments: _Given.args, **named: _Given.kwargs) -> _Result:
        try:
            return function(*arguments, **named)
        except (OSError, MemoryError) as error:  # also of an import
            if not isinstance(error, ModularTFError):
                raise_shortage(error)
            raise

    return uninterrupted(run)


class ServiceLock(ForkLock):  # type: ignore[misc]
    """Re-entrant lock on the state of a service; `closed` is set under it. [any thread]

    What runs under it may load plugins, whose code may hang.
    """

    __slots__ = ("closed",)

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def check_open(self) -> None:
        """Refuse work for a service that has ended."""
        if self.closed:
            raise ClosedError("the plugin service is closed")


class LiveService(Protocol):
    """What a service does at the two moments that it cannot choose: exit and fork."""

    def close_at_exit(self) -> list[ModularTFError]:
        """Run every plugin's cleanup; return what went wrong."""

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable, or give it up; raise nothing."""


_live: LiveObjects[LiveService] = LiveObjects()
_ending = threading.Event()
_exit_timeouts_s: set[float | None] = set()  # what the services of this process asked for


def close_with_process(service: LiveService, exit_timeout_s: float | None = None) -> None:
    """Close a service at exit, and inform it of a fork, as long as something refers to it.

    Python runs no exit handler that another one registers. So a service that an exit handler makes
    after the others were closed ends when the interpreter drops it and its files: what is open is
    written out, and plugins' cleanup functions run, as those hold each other.

    `exit_timeout_s` is how many seconds exit handlers and destructors of plugins may take, which
    the process cannot leave out; None as long as they take. Of several services, also of those that
    were closed, the longest time counts. Raises ClosedError if the process ends, and this is not
    the thread that runs exit handlers: others are stopped wherever they are, and one in a plugin's
    code would abort the process.
    """
    thread = threading.current_thread()
    if _ending.is_set() and thread is not threading.main_thread():
        raise ClosedError(
            "the process ends, and all plugin services are closed; end the thread"
            f" {thread.name!r} before, or let the process wait for it (daemon=False)"
        )
    _live.add(service)
    _exit_timeouts_s.add(exit_timeout_s)


def is_awaited() -> bool:
    """Return whether this thread is in the middle of a call whose end a close may wait for.

    It runs a callback of a device, or a signal handler that interrupted a call to a worker or a
    write of a stream, whose lock another thread would wait for.
    """
    devices = sys.modules.get("modular_tf.device.device_core")
    if devices is not None and devices.running_core() is not None:
        return True
    worker = sys.modules.get("modular_tf.isolation.worker")
    if worker is not None and worker.handles_signals():
        return True
    streams = sys.modules.get("modular_tf.filesystem.streams")
    return streams is not None and streams.is_in_write()


def not_closed_in_time(left: Sequence[str], timeout_s: float) -> DeadlineExceededError:
    """Return the error that names the plugins that a service did not close in time."""
    now, *later = [*reversed(left)] or ["of an old library"]
    then = f"; after it: {', '.join(later)}" if later else ""
    return DeadlineExceededError(
        f"plugin {now} was not closed within {timeout_s:g} s{then}. It goes on in a thread, which"
        " the end of the process waits for; `close_timeout_s` of the configuration bounds it",
        plugin=now if left else None,
        operation="close",
    )


def _close_all() -> None:
    """Run cleanups while the interpreter is whole: without them, some plugins abort the process."""
    _ending.set()
    failures: list[BaseException] = []
    for service in _live.all():
        try:
            failures += service.close_at_exit()
        except BaseException as interrupt:  # noqa: BLE001  (the others are to be closed as well)
            failures.append(interrupt)
    listener.stop()  # after the cleanups, which may log as well
    if (native := sys.modules.get("modular_tf.native.ffi")) is not None:  # plugins may be mapped
        bounds = [seconds for seconds in _exit_timeouts_s if seconds is not None]
        is_bounded = len(bounds) == len(_exit_timeouts_s)
        native.lib.mtf_process_exits(round(max(bounds) * 1000) if bounds and is_bounded else 0)
    if failures:
        raise failures[0]


def _fork_all() -> None:
    for service in _live.all():
        service.after_fork_in_child()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_fork_all)
