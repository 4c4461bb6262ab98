"""The application's side of the zygote: started lazily, asked for watchers, ended."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.concurrency.owned_file import owned, owned_pipe
from modular_tf.concurrency.threads import call_without_signal_handlers
from modular_tf.processes.interpreter import find_interpreter
from modular_tf.processes.seclusion import SECLUDED

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping, Sequence
    from io import FileIO

_SECLUDES = True
_FIRST_FREE = 3  # after the standard streams
_MOST_SAID = 4096
_PATIENCE_AT_THE_START_S = 120.0
_PATIENCE_AT_THE_END_S = 10.0
_PATIENCE_WITH_THE_KILLED_S = 5.0
_LOOK_EVERY_S = 0.0005
_controls: LiveObjects[socket.socket] = LiveObjects()


class ZygoteProcess:
    """A process that forks watchers (`ForkServer`). Used by one thread at a time."""

    def __init__(
        self, *, command: Callable[[int], Sequence[str]], environment: Mapping[str, str]
    ) -> None:
        self.control, theirs = socket.socketpair()
        _controls.add(self.control)
        self.owner = os.getpid()  # the process that started it
        self.is_secluded = False  # what is tried cannot reach this process; known once it is ready
        self._complaints, complaints_end = owned_pipe()
        with theirs, complaints_end:
            try:
                self._process = self._start(command, environment, theirs, complaints_end)
            except BaseException:
                self.control.close()
                self._complaints.close()
                raise

    def _start(
        self,
        command: Callable[[int], Sequence[str]],
        environment: Mapping[str, str],
        theirs: socket.socket,
        complaints: FileIO,
    ) -> subprocess.Popen[bytes]:
        import fcntl  # noqa: PLC0415  (so that they load when there is something to try)
        import subprocess  # noqa: PLC0415

        # It would be a standard stream where the application has closed its own.
        duplicate = partial(fcntl.fcntl, theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
        with owned(duplicate) as control:
            return subprocess.Popen(  # noqa: S603  (our own interpreter)
                command(control.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                pass_fds=(control.fileno(),),
                start_new_session=True,
                env=environment,
            )

    def wait_until_ready(self) -> bool:
        """Wait until it has imported everything; False if it ended before that."""
        self.control.settimeout(_PATIENCE_AT_THE_START_S)
        said = b""
        with suppress(OSError):
            said = self.control.recv(1)
        self.is_secluded = said == SECLUDED
        return bool(said)

    def new_watcher(self) -> socket.socket:
        """Have a watcher forked, and return the socket to it."""
        return call_without_signal_handlers(self._new_watcher)

    def _new_watcher(self) -> socket.socket:
        ours, theirs = socket.socketpair()
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
        deadline = time.monotonic() + _PATIENCE_AT_THE_END_S
        end = deadline + _PATIENCE_WITH_THE_KILLED_S
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
            time.sleep(_LOOK_EVERY_S)


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
        """Return the running zygote, or a new one when it is ready."""
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
            raise OSError(f"no process can be started: {error}") from error
        if not zygote.wait_until_ready():
            raise OSError(f"the child process {zygote.close()} before it began")
        return zygote

    def end(self) -> None:
        """End the zygote, if there is one."""
        zygote, self._current = self._current, None
        if zygote is not None and zygote.owner == os.getpid():
            zygote.close()
        elif zygote is not None:
            zygote.forget()


def _close_in_child() -> None:
    """Leave the zygote to the parent, which waits for its end when it has closed the socket."""
    for control in _controls.all():
        control.close()


os.register_at_fork(after_in_child=_close_in_child)
