"""A child in which a plugin runs, as its watcher sees it; and the jobs of a watcher."""

from __future__ import annotations

import json
import os
import select
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.native.crash_report import QUESTION
from modular_tf.processes.descendants import adopt_orphans, children, end_all, signal_child
from modular_tf.processes.ending import MOST_OF_LAST_WORDS, readable_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from modular_tf.processes.ending import ChildEnding

    Send = Callable[[dict[str, Any]], None]
    """Sends an entry to the application."""

CHECK_EVERY_S = 0.01
_TIME_TO_ANSWER_S = 2.0  # with its stack, when it was asked or has crashed
_AT_ONCE = 1 << 16
_READS_IN_A_ROW = 16  # more than a pipe or a socket holds; a plugin may write on for ever
_LONGEST_ENTRY = 1 << 22
_ANY_CHANGE = os.WSTOPPED | os.WEXITED | os.WNOHANG


class AbandonedError(Exception):
    """Nobody waits for what the child does any more."""


class WatchedChild:
    """A child, its time, its report, and all that it started.

    The process is to be the reaper of its descendants (`adopt_orphans`). The report comes through a
    socket: another process of this user can open a pipe of the child in /proc and write into it,
    but no socket. Raises `OSError` if no process can be started.

    Args:
        live: What the child does, given the descriptors of standard output, of standard error and
            of its report, and the number of this process.
        listener: A descriptor that becomes readable when nobody waits any more; None where this
            process ends then.
        ending: Is filled; complete when `end` has returned.
        seconds: The time that it has.
        take: Is given each entry of the report that `ending` does not take; refuses what is no
            entry by a ValueError, TypeError or KeyError.
        take_output: Is given what it writes to standard output.
        most_said: How many bytes of what it writes are stored, the last.
        prompt: `listen` returns when something was written; else when the child has ended or the
            time is up, which takes less of the processor.
    """

    def __init__(
        self,
        live: Callable[[Sequence[int], int], NoReturn],
        listener: int | None,
        ending: ChildEnding,
        *,
        seconds: float,
        take: Callable[[dict[str, Any]], object] = lambda _: None,
        take_output: Callable[[bytes], object] = lambda _: None,
        most_said: int = MOST_OF_LAST_WORDS,
        prompt: bool = True,
    ) -> None:
        self.ending = ending
        self.was_asked = False  # for its stack, and is to be ended
        self.is_late = False  # it was asked since its time was up
        self._take = take
        self._take_output = take_output
        self._last_output = b""
        self._most_said = most_said
        self._hurries = False
        self.give_time(seconds)
        self._listener = listener
        self._handle: int | None = None  # of the child, readable when it has ended
        self._readers: dict[int, Callable[[bytes], None]] = {}
        self._poll = select.poll()
        if listener is not None:
            self._poll.register(listener, select.POLLIN)
        ends: list[int] = []
        try:
            self._open(os.pipe(), self._take_from_output, ends)
            self._open(os.pipe(), self._take_words, ends)
            self._open(_one_way_socket(), EntryReader(self._take_entry), ends)
            parent = os.getpid()
            self.pid = os.fork()
            if self.pid == 0:
                live(ends, parent)
        except OSError:
            self._close_all()
            raise
        finally:
            for end in ends:
                os.close(end)
        # An old kernel, or one that Python was built for; or no descriptors left.
        with suppress(OSError, AttributeError):
            self._handle = os.pidfd_open(self.pid)
            self._poll.register(self._handle, select.POLLIN)
        # What it writes does not show its end: its descriptors are closed before it has ended.
        if self._handle is None or prompt:
            for fd in self._readers:
                self._poll.register(fd, select.POLLIN)

    def _open(self, pair: tuple[int, int], take: Callable[[bytes], None], ends: list[int]) -> None:
        reads, writes = pair
        ends.append(writes)
        self._readers[reads] = take
        os.set_blocking(reads, False)

    def give_time(self, seconds: float) -> None:
        """Give it some seconds from now on, unless it is ending."""
        if not self._hurries:
            self._deadline = time.monotonic() + seconds

    def listen(self, seconds: float = CHECK_EVERY_S) -> None:
        """Wait for a moment, and take what has come.

        Raises `AbandonedError` where nobody waits any more.
        """
        ready = [fd for fd, _ in self._poll.poll(seconds * 1000)]
        if self._listener in ready:
            raise AbandonedError
        if self._handle in ready:
            self._close_handle()
        self.read_on()

    def read_on(self) -> None:
        """Take what has come, without waiting."""
        for fd, take in list(self._readers.items()):
            for _ in range(_READS_IN_A_ROW):
                try:
                    data = os.read(fd, _AT_ONCE)
                except BlockingIOError:
                    break
                take(data)
                if not data:
                    self._close(fd)
                    break

    def has_ended(self) -> bool:
        """Return whether it has ended; its number stays its own until `end`."""
        return has_ended(self.pid)

    def is_over(self) -> bool:
        """Return whether to wait no longer: it has ended, was stopped, or has had its time.

        Where its time is up, it is asked first for its stack, and gets a moment to answer.
        """
        if self.has_ended():
            return True
        if not self.was_asked and (stop := stop_of(self.pid)) is not None:
            self.ending.stopped_by, self.ending.has_tracer = stop
            return True
        if time.monotonic() < self._deadline:
            return self.was_asked and self.ending.has_all_frames
        if self.was_asked or self.ending.has_crash_report:
            return True
        self.is_late = True
        self.ask()
        return False

    def ask(self) -> None:
        """Ask it for its stack; it is over when it has answered, or soon."""
        self.was_asked = True
        self._hurry()
        signal_child(self.pid, QUESTION)  # nobody has waited for it, so the number is still its own

    def _hurry(self) -> None:
        """Limit the time for its last output, once: a plugin might write for ever."""
        if not self._hurries:
            self._deadline = min(time.monotonic(), self._deadline) + _TIME_TO_ANSWER_S
            self._hurries = True

    def end(self, files: Iterable[str]) -> int:
        """End it and all that it has started; return the most memory that it touched."""
        ended = end_all(self.pid)
        self.read_on()
        self._close_all()
        self.ending.status = ended.status
        self.ending.last_output = self._last_output.decode("utf-8", "replace")
        self.ending.backtrace = readable_frames(self.ending.frames, files)
        return ended.peak

    def _take_from_output(self, data: bytes) -> None:
        self._take_output(data)
        self._take_words(data)

    def _take_words(self, data: bytes) -> None:
        self._last_output = (self._last_output + data)[-self._most_said :]

    def _take_entry(self, entry: dict[str, Any]) -> None:
        if not self.ending.take(entry):
            self._take(entry)
        elif self.ending.has_crash_report:
            self._hurry()

    def _close_all(self) -> None:
        self._close_handle()
        for fd in list(self._readers):
            self._close(fd)

    def _close_handle(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            self._poll.unregister(handle)
            os.close(handle)

    def _close(self, fd: int) -> None:
        del self._readers[fd]
        with suppress(KeyError):  # where nothing but the child's end is waited for
            self._poll.unregister(fd)
        os.close(fd)


def _one_way_socket() -> tuple[int, int]:
    """Return the end to read from, and the one to write to."""
    reads, writes = socket.socketpair()
    reads.shutdown(socket.SHUT_WR)
    return reads.detach(), writes.detach()


class EntryReader:
    """Cuts what comes through a pipe into entries, which are JSON objects, one a line.

    A plugin may have written them: what is no JSON, or text that cannot be shown, is left out, and
    so is what the function refuses by a ValueError, TypeError or KeyError.
    """

    def __init__(self, take: Callable[[dict[str, Any]], object]) -> None:
        self._take = take
        self._begun = b""

    def __call__(self, data: bytes) -> None:
        """Take what has come."""
        if len(self._begun) == _LONGEST_ENTRY and b"\n" not in data:
            return
        *lines, rest = (self._begun + data).split(b"\n")
        self._begun = rest[:_LONGEST_ENTRY]
        for line in lines:
            with suppress(ValueError, TypeError, KeyError, RecursionError):
                entry: dict[str, Any] = json.loads(line, parse_constant=_refuse)
                if b"\\u" in line or not line.isascii():  # there may be half of a surrogate pair
                    json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogateescape")
                self._take(entry)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"JSON has no {constant}")


def has_ended(pid: int) -> bool:
    """Return whether a child has ended; it is not waited for, so the number stays its own."""
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    # The kernel reports the stops of a child that has asked to be traced here too.
    return found is not None and found.si_code != os.CLD_TRAPPED


def stop_of(pid: int) -> tuple[int, bool] | None:
    """Return the signal that a child is stopped by, and whether it is so because it is traced.

    None is returned where it is not stopped, or has ended.
    """
    # Asked for stopped ones alone, the kernel denies that a child which has just ended is there.
    found = os.waitid(os.P_PID, pid, _ANY_CHANGE | os.WNOWAIT)
    if found is not None and found.si_code in {os.CLD_STOPPED, os.CLD_TRAPPED}:
        return found.si_status, found.si_code == os.CLD_TRAPPED
    # A single thread that is traced has a number of its own. One that has ended is waited for here,
    # as without that the child does not end; so is what else of its group lost its parent.
    with suppress(ChildProcessError):
        while (found := os.waitid(os.P_PGID, pid, _ANY_CHANGE | os.WNOWAIT)) is not None:
            if found.si_pid == pid:
                break
            if found.si_code == os.CLD_TRAPPED:
                return found.si_status, True
            os.waitid(os.P_PID, found.si_pid, _ANY_CHANGE)
    return None


def watch_over(descriptor: int, work: Callable[[dict[str, Any], Send, int], None]) -> None:
    """Do the jobs that arrive on a socket until its other end is closed.

    Each line that arrives is a job, each line that is sent an entry, both JSON objects (`Lane`).
    This process is the reaper of all that plugins start. `work` is given the job, a function that
    sends an entry, and a descriptor that becomes readable when nobody waits any more.
    """
    adopt_orphans()
    with socket.socket(fileno=descriptor) as connection, connection.makefile("rb") as lines:

        def send(entry: dict[str, Any]) -> None:
            connection.sendall(json.dumps(entry).encode() + b"\n")

        with suppress(AbandonedError, OSError):  # nobody waits any more
            for line in lines:
                work(json.loads(line), send, connection.fileno())
                if children(os.getpid()):
                    return  # one cannot be ended: the next job gets a watcher without it
