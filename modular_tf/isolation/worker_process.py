"""The application's side of one worker process: started, asked what it offers, ended."""

from __future__ import annotations

import atexit
import os
import socket
import struct
import time
import weakref
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from modular_tf.codec import at_most, decode, encode
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.concurrency.threads import call_without_signal_handlers
from modular_tf.isolation.job import ASK, ENDED, OFFER, READY, read_offer
from modular_tf.processes.ending import MOST_FRAMES
from modular_tf.processes.zygote_process import Lane, isolated_zygotes

if TYPE_CHECKING:
    from modular_tf.isolation.job import Job, WorkerOffer

_TIME_TO_BEGIN_S = 30.0
_CREDENTIALS = struct.Struct("=3i")  # process, user, group


_zygotes = isolated_zygotes("modular_tf.isolation.zygote")
_lock = ForkLock()


@atexit.register
def end_zygote() -> None:
    """End the zygote of this process; the next worker starts another."""
    with _lock:
        _zygotes.end()


class WorkerEnding(NamedTuple):
    """How a worker ended."""

    words: str  # a verb and its object, as `crashed with SIGSEGV (signal 11, ...)`
    frames: Annotated[tuple[str, ...], at_most(MOST_FRAMES)] = ()  # native, the innermost first
    last_output: str = ""  # the end of the text on its standard streams


_GONE = WorkerEnding("ended, and so did the process that watched over it")


class _OwnedDescriptor:
    """A descriptor, closed with this or when this is dropped, unless it was taken."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def take(self) -> int | None:
        """Return it, which is the caller's; None once taken."""
        # Without a call, behind which an interrupt would lose it.
        descriptor, self._descriptor = self._descriptor, None
        return descriptor

    def close(self) -> None:
        """Close it, unless it was taken; an interrupt leaves it to the next call."""
        if (descriptor := self.take()) is not None:
            os.close(descriptor)

    __del__ = close


class WorkerProcess:
    """One worker. Used by one thread at a time, but for `ask_for_end`."""

    def __init__(self, job: Job) -> None:
        # what it has loaded; None until `wait_for_offer` has returned
        self.offer: WorkerOffer | None = None
        self.ending: WorkerEnding | None = None
        self.pid = 0  # of its watcher, as this process sees it; 0 where it is not known
        self._owner = os.getpid()
        self._control: list[_OwnedDescriptor] = []  # until it is taken
        with _lock:
            self._lane: Lane[str] = Lane(_new_watcher())
        # Also when it is dropped: an interrupt may come at any line of the code that starts it.
        self._release = weakref.finalize(self, _close, self._lane.connection, self._control)
        self._release.atexit = False
        _processes.add(self)
        try:
            # So that the kernel names the sender of what comes next.
            self._lane.connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            self._lane.give(job.task.plugin, encode(job))
            self.pid = _sender_of_next(self._lane.connection)
            self._wait_for(READY, time.monotonic() + _TIME_TO_BEGIN_S)
            # An interrupt ends the wait, and not the thread that sends it: what that returns is
            # dropped then.
            self._control.append(call_without_signal_handlers(self._send_control))
        except BaseException:
            self.release()
            raise

    @property
    def watcher(self) -> int:
        """`pid`, in the process that started it; 0 in its forked children."""
        return self.pid if self._owner == os.getpid() else 0

    def take_control(self) -> int | None:
        """Return the socket on which it takes channels, which is the caller's; None once taken."""
        for control in self._control:
            return control.take()
        return None

    def close_control(self) -> None:
        """Close the socket on which it takes channels, unless it was taken."""
        _close_control(self._control)

    def release(self) -> None:
        """Close this process's end, which ends the worker unless a fork has started it."""
        self._release()

    def _send_control(self) -> _OwnedDescriptor:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                socket.send_fds(self._lane.connection, [b"c"], [theirs.fileno()])
            except BaseException:
                ours.close()
                raise
        return _OwnedDescriptor(ours.detach())

    def _wait_for(self, wanted: str, deadline: float) -> Any:
        """Return the entry of this name; None where the time is up or the worker has ended."""
        while self.ending is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            try:
                self._lane.connection.settimeout(left)
                entries = self._lane.receive()
            except TimeoutError:
                return None
            except (EOFError, OSError, ValueError):
                self.ending = _GONE
                return None
            for entry in entries:
                if ENDED in entry:
                    self.ending = decode(WorkerEnding, entry[ENDED])
                if wanted in entry:
                    return entry[wanted]
        return None

    def wait_for_offer(self, seconds: float) -> WorkerOffer | None:
        """Wait until the plugin is loaded; None where it ended or the time is up (`ending`)."""
        message = self._wait_for(OFFER, time.monotonic() + seconds)
        if message is None:
            return None
        try:
            self.offer = read_offer(message)
        except ValueError as error:
            self.ending = WorkerEnding(f"reported an offer that is none: {error}")
        return self.offer

    @property
    def is_own(self) -> bool:
        """Whether this process has started it, and is no fork of the one that did."""
        return self._owner == os.getpid()

    def ends_within(self, seconds: float) -> bool:
        """Wait a while for its end; return whether it has ended."""
        self._wait_for(ENDED, time.monotonic() + seconds)
        return self.ending is not None

    def ask_for_end(self) -> None:
        """Have it report its stack, and end."""
        try:
            self._lane.connection.send(ASK)
        except OSError:
            return

    def wait_for_end(self, seconds: float) -> WorkerEnding:
        """Wait until it has ended; end it where that takes longer. Return how it ended.

        One that another process has started goes on; only this process's end is closed.
        """
        if self.is_own:
            self._wait_for(ENDED, time.monotonic() + seconds)
        self.release()  # which ends the watcher, and all that it watches
        if not self.is_own:
            return _GONE
        return self.ending or WorkerEnding("did not end in time, and was killed")


_processes: LiveObjects[WorkerProcess] = LiveObjects()


def _release_in_child() -> None:
    """Leave workers to the parent: one whose start a signal handler has interrupted, above all."""
    for process in _processes.all():
        process.release()


os.register_at_fork(after_in_child=_release_in_child)


def _close(connection: socket.socket, control: list[_OwnedDescriptor]) -> None:
    try:
        connection.close()
    finally:
        _close_control(control)


def _close_control(control: list[_OwnedDescriptor]) -> None:
    for descriptor in control:
        descriptor.close()


def _sender_of_next(connection: socket.socket) -> int:
    """Return the process that sends what comes next, which stays to be read; 0 for nobody."""
    connection.settimeout(_TIME_TO_BEGIN_S)
    try:
        size = socket.CMSG_SPACE(_CREDENTIALS.size)
        _, ancillary, _, _ = connection.recvmsg(1, size, socket.MSG_PEEK)
    except OSError:
        return 0
    finally:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
    kinds = (socket.SOL_SOCKET, socket.SCM_CREDENTIALS)
    found = (data for level, kind, data in ancillary if (level, kind) == kinds)
    return next((_CREDENTIALS.unpack(data)[0] for data in found), 0)


def _new_watcher() -> socket.socket:
    try:
        return _zygotes.warm().new_watcher()
    except ConnectionError:  # it was idle for too long
        _zygotes.end()
        return _zygotes.warm().new_watcher()
