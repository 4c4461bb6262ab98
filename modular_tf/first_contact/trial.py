"""One plugin in a child process, as the application sees it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.first_contact.task import child_environment, command_for
from modular_tf.first_contact.verdict import Ending, violation_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.first_contact.task import Task
    from modular_tf.rules import Violation

_FIRST_FREE = 3  # after the standard streams
_AT_ONCE = 1 << 16
_READS_OF_A_FULL_PIPE = 2
_MOST_SAID = 4096
_LONGEST_ENTRY = 1 << 16
_PATIENCE_WITH_THE_KILLED_S = 5.0


class Trial:
    """A child process that tries one plugin, and all that it started.

    To be waited for by the thread that made it: the child is killed when that thread ends.

    Attributes:
        ending: What is known of its end so far.
        readers: The descriptors that are still open, each with what takes its bytes.

    Args:
        task: What to try.
        python: The interpreter.
        seconds: How long it may take.

    Raises:
        OSError: No process can be started.
    """

    def __init__(self, task: Task, *, python: str, seconds: float) -> None:
        self.ending = Ending()
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._entries = b""
        self._said = b""
        report, report_end = _new_pipe()
        said, said_end = _new_pipe()
        self.readers: dict[int, Callable[[bytes], None]] = {
            report: self._take_entries,
            said: self._take_words,
        }
        try:
            self.pid = _spawn(task, python=python, report=report_end, said=said_end)
        except BaseException:
            self._close_all()
            raise
        finally:
            os.close(report_end)
            os.close(said_end)
        for fd in self.readers:
            os.set_blocking(fd, False)

    def read(self, fd: int) -> bool:
        """Take what is there, of a descriptor in `readers`; False at the end."""
        try:
            data = os.read(fd, _AT_ONCE)
        except BlockingIOError:
            return True
        self.readers[fd](data)
        return bool(data)

    def close(self, fd: int) -> None:
        """Close a descriptor in `readers`."""
        del self.readers[fd]
        os.close(fd)

    def _take_entries(self, data: bytes) -> None:
        *lines, rest = (self._entries + data).split(b"\n")
        self._entries = rest[:_LONGEST_ENTRY]
        for line in lines:
            with suppress(ValueError, RecursionError):  # not ours: the plugin wrote into the pipe
                self._take_entry(json.loads(line))

    def _take_entry(self, entry: Any) -> None:
        if not isinstance(entry, dict):
            return
        ending = self.ending
        ending.entered = entry.get("enters", ending.entered)
        ending.lost = entry.get("lost", ending.lost)
        ending.fault = entry.get("fault", ending.fault)
        ending.finished = ending.finished or "finished" in entry

    def _take_words(self, data: bytes) -> None:
        self._said = (self._said + data)[-_MOST_SAID:]

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to wait for, be it that its time is up."""
        if self.ending.finished or _has_ended(self.pid):
            return True
        if time.monotonic() < self._deadline:
            return False
        self.ending.timed_out = self._seconds
        return True

    def conclude(self) -> Violation | None:
        """End what still runs, and return what the plugin did."""
        # The leader is not taken off the kernel's list before: its number stays its group's.
        _kill_group(self.pid)
        self.ending.status = _reap(self.pid)
        for fd in self.readers:
            # What the dead left fits in so many; somebody who got away may write on for ever.
            any(not self.read(fd) for _ in range(_READS_OF_A_FULL_PIPE))
        self._close_all()
        self.ending.said = self._said.decode("utf-8", "replace")
        return violation_of(self.ending)

    def _close_all(self) -> None:
        for fd in list(self.readers):
            self.close(fd)


def _new_pipe() -> tuple[int, int]:
    """Return a pipe whose end for the child is none of its standard streams.

    It would be where the application has closed its own.
    """
    reads, writes = os.pipe()
    try:
        return reads, fcntl.fcntl(writes, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
    except OSError:
        os.close(reads)
        raise
    finally:
        os.close(writes)


def _spawn(task: Task, *, python: str, report: int, said: int) -> int:
    import subprocess  # noqa: PLC0415  (costs more than most processes need)

    process = subprocess.Popen(  # noqa: S603  (our own interpreter)
        command_for(task, python=python, report=report),
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=said,
        pass_fds=(report,),
        start_new_session=True,
        env=child_environment(os.environ),
    )
    process.returncode = 0  # it is waited for here, and with more care
    return process.pid


def _has_ended(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # the application takes the status of every child itself
        return True


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _reap(pid: int) -> int | None:
    """Return the exit status, negative for a signal; None where it cannot be known."""
    deadline = time.monotonic() + _PATIENCE_WITH_THE_KILLED_S  # it may hang in a driver
    while time.monotonic() < deadline:
        try:
            found, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return None
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.0005)
    return None
