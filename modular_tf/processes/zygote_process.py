"""The application's side: the zygote, started lazily, and the channels to its watchers."""

from __future__ import annotations

import json
import math
import os
import selectors
import signal
import socket
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.concurrency.owned_file import owned, owned_pipe
from modular_tf.concurrency.threads import call_without_signal_handlers
from modular_tf.native.preloading import preload
from modular_tf.processes.interpreter import child_environment, find_interpreter, isolated_command
from modular_tf.processes.seclusion import SECLUDED
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_SECLUDES = True
_FIRST_FREE = 3  # after the standard streams
_MOST_SAID = 4096
_START_TIMEOUT_S = 120.0
_END_TIMEOUT_S = 10.0
_KILL_TIMEOUT_S = 5.0
_POLL_EVERY_S = 0.0005
_AT_ONCE = 1 << 16
_LONGEST_ENTRY = 8 << 20  # more than what is in bounds takes in JSON
Work = TypeVar("Work")
_sockets: LiveObjects[socket.socket] = LiveObjects()  # to zygotes and watchers


class ZygoteProcess:
    """A process that forks watchers (`ForkServer`). Used by one thread at a time."""

    def __init__(
        self, *, command: Callable[[int], Sequence[str]], environment: Mapping[str, str]
    ) -> None:
        import fcntl  # noqa: PLC0415  (so that they load when there is something to try)
        import subprocess  # noqa: PLC0415

        self.control, theirs = socket.socketpair()
        _sockets.add(self.control)
        self.owner = os.getpid()  # the process that started it
        self.is_secluded = False  # what is tried cannot reach this process; known once it is ready
        self._complaints, complaints_end = owned_pipe()
        # It would be a standard stream where the application has closed its own.
        duplicate = partial(fcntl.fcntl, theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
        try:
            with theirs, complaints_end, owned(duplicate) as control:
                self._process = subprocess.Popen(  # noqa: S603  (our own interpreter)
                    command(control.fileno()),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=complaints_end,
                    pass_fds=(control.fileno(),),
                    start_new_session=True,
                    env=environment,
                )
        except BaseException:
            self.control.close()
            self._complaints.close()
            raise

    def wait_until_ready(self) -> bool:
        """Wait until it has imported everything; False if it ended before that."""
        self.control.settimeout(_START_TIMEOUT_S)
        said = b""
        with suppress(OSError):
            said = self.control.recv(1)
        self.is_secluded = said == SECLUDED
        return bool(said)

    def new_watcher(self) -> socket.socket:
        """Have a watcher forked, and return the socket to it, which forked children close.

        Raises `ConnectionError` if the zygote has ended, or is the parent's.
        """
        return call_without_signal_handlers(self._new_watcher)

    def _new_watcher(self) -> socket.socket:
        if self.owner != os.getpid():
            raise ConnectionError("the process belongs to the parent of a fork")
        ours, theirs = socket.socketpair()
        _sockets.add(ours)
        try:
            socket.send_fds(self.control, [b"w"], [theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return ours

    def forget(self) -> None:
        """Close what a fork has copied; the process is the parent's."""
        self.control.close()
        self._complaints.close()
        self._process.returncode = 0  # else `Popen` would wait for it

    def close(self) -> str:
        """End the process and all that it has started; return how it ended, and what it said.

        One that cannot be ended, since it hangs in a driver or in a file system, is left behind.
        """
        self.control.close()
        status = self._wait()
        self._process.returncode = status or 0  # else `Popen` would wait for it once more
        with self._complaints:
            os.set_blocking(self._complaints.fileno(), False)
            said = self._complaints.read(_MOST_SAID) or b""
        words = said.decode("utf-8", "replace").strip().splitlines()[-1:]
        return ": ".join([f"ended with status {status}", *words])

    def _wait(self) -> int | None:
        """Wait for its end, which its socket's end brings; kill it if that takes long.

        Returns its status; None where it is not known, or the process does not end.
        """
        deadline = time.monotonic() + _END_TIMEOUT_S
        end = deadline + _KILL_TIMEOUT_S
        while True:
            try:
                found, status = os.waitpid(self._process.pid, os.WNOHANG)
            except ChildProcessError:  # the application takes the status of every child itself
                return None
            if found:
                return os.waitstatus_to_exitcode(status)
            if (now := time.monotonic()) > end:
                return None
            if now > deadline:
                # Nobody has waited for it, so the number is still its own.
                os.kill(self._process.pid, signal.SIGKILL)
            time.sleep(_POLL_EVERY_S)


class Zygotes:
    """The current zygote, started when it is needed. Used by one thread at a time.

    Its command is made of the interpreter, and those arguments of `serve_zygote` that this process
    chooses.
    """

    def __init__(
        self,
        command: Callable[[str, dict[str, Any]], Sequence[str]],
        environment: Callable[[], Mapping[str, str]],
    ) -> None:
        self._command = command
        self._environment = environment
        self._current: ZygoteProcess | None = None

    def warm(self) -> ZygoteProcess:
        """Return the running zygote, or a new one when it is ready.

        Raises `OSError` if there can be none, `ShortageError` for want of descriptors or processes.
        """
        if self._current is not None and self._current.owner != os.getpid():
            self._current.forget()
            self._current = None
        if self._current is None:
            self._current = self._start()
        return self._current

    def _start(self) -> ZygoteProcess:
        python = find_interpreter()
        if python is None:
            raise OSError("this process is no Python command, and names none")
        if not os.path.exists("/proc/self/status"):
            raise OSError("/proc is not mounted, where processes are watched; mount it")

        def command(control: int) -> Sequence[str]:
            own = {"control": control, "parent": os.getpid(), "secludes": _SECLUDES}
            return self._command(python, own)

        try:
            start = partial(ZygoteProcess, command=command, environment=self._environment())
            zygote = call_without_signal_handlers(start)
        except (OSError, ValueError) as error:
            raise_shortage(error)
            raise OSError(f"no process can be started: {error}") from error
        if not zygote.wait_until_ready():
            if zygote.owner != os.getpid():  # a signal handler forked during the wait
                zygote.forget()
                return self._start()
            raise OSError(f"the child process {zygote.close()} before it began")
        return zygote

    def end(self) -> None:
        """End the zygote, if there is one."""
        zygote, self._current = self._current, None
        if zygote is not None and zygote.owner == os.getpid():
            zygote.close()
        elif zygote is not None:
            zygote.forget()


def isolated_zygotes(module: str, **job: Any) -> Zygotes:
    """Return zygotes without the user's settings, which call `serve` of a module with a job.

    Their environment has what plugins may see, and preloads the package's library for them.
    """

    def command(python: str, own: dict[str, Any]) -> list[str]:
        return isolated_command(python, module, {**own, **job})

    return Zygotes(command, lambda: preload(child_environment(os.environ)))


def _close_in_child() -> None:
    """Leave zygotes and watchers to the parent: to read their answers, and to close the sockets."""
    for each in _sockets.all():
        each.close()


os.register_at_fork(after_in_child=_close_in_child)


# -- channels --------------------------------------------------------------------------------------


class Lane(Generic[Work]):
    """The channel to one watcher, and the job that it has now."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        # what the application knows of the job; None if there is none
        self.work: Work | None = None
        self.deadline = math.inf  # of the job, by the monotonic clock
        self._received = b""

    @property
    def is_late(self) -> bool:
        """Whether the watcher should have finished its job by now."""
        return self.work is not None and time.monotonic() > self.deadline

    def give(self, work: Work, job: Mapping[str, Any], seconds: float = math.inf) -> None:
        """Hand a job over."""
        self.work = work
        self.deadline = time.monotonic() + seconds
        self.connection.sendall(json.dumps(job).encode() + b"\n")

    def receive(self) -> list[Any]:
        """Return the entries that have come whole.

        Raises `EOFError` if the watcher is gone, and `ValueError` if what came is no JSON, has no
        end, or came when there was no job.
        """
        try:
            data = self.connection.recv(_AT_ONCE)
        except (BlockingIOError, TimeoutError):
            raise
        except OSError:  # it was reset, or closed since a signal handler has forked
            data = b""
        if not data:
            raise EOFError
        *lines, self._received = (self._received + data).split(b"\n")
        if len(self._received) > _LONGEST_ENTRY:
            raise ValueError("an entry without end")
        if lines and self.work is None:
            raise ValueError("an entry of no job")
        try:
            return [json.loads(line) for line in lines]
        except RecursionError as error:  # a plugin may have a part of it written
            raise ValueError("an entry that is nested too deeply") from error


class Lanes(Generic[Work]):
    """The lanes that are open. Used by one thread."""

    def __init__(self) -> None:
        self._lanes: list[Lane[Work]] = []

    def __iter__(self) -> Iterator[Lane[Work]]:
        return iter(list(self._lanes))

    def __len__(self) -> int:
        return len(self._lanes)

    def under_way(self) -> list[Work]:
        """Return what is known of each job that a watcher has now."""
        return [lane.work for lane in self._lanes if lane.work is not None]

    def free(self, most: int, new_watcher: Callable[[], socket.socket]) -> Lane[Work] | None:
        """Return a lane for one more job, None where all are busy."""
        for lane in self._lanes:
            if lane.work is None:
                return lane
        if len(self._lanes) >= most:
            return None
        lane = Lane(new_watcher())
        self._lanes.append(lane)
        return lane

    def ready(self, seconds: float | None = None) -> Iterator[Lane[Work]]:
        """Wait, and yield each lane on which something has come and that was not removed.

        In a child that a signal handler has forked these are the parent's, which the fork closed.
        """
        found = []
        with selectors.PollSelector() as selector:  # that of `epoll` is shared with forked children
            for lane in self._lanes:
                try:
                    selector.register(lane.connection, selectors.EVENT_READ, lane)
                except ValueError:  # closed by the fork
                    found.append(lane)
            found += [key.data for key, _ in selector.select(0 if found else seconds)]
        for lane in found:
            if lane in self._lanes:
                yield lane

    def remove(self, lane: Lane[Work]) -> None:
        """Close a lane; its watcher ends."""
        self._lanes.remove(lane)
        lane.connection.close()

    def close(self) -> None:
        """Close all lanes. Safe to call twice."""
        for lane in self._lanes:
            lane.connection.close()
        self._lanes.clear()
