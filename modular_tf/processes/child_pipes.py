"""The pipes and the socket through which a watcher reads what a child writes."""

from __future__ import annotations

import json
import os
import select
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_AT_ONCE = 1 << 16
_READS_IN_A_ROW = 16  # more than a pipe or a socket holds; somebody may write on for ever
_LONGEST_ENTRY = 1 << 22
_ANY_CHANGE = os.WSTOPPED | os.WEXITED | os.WNOHANG


class AbandonedError(Exception):
    """Nobody waits for what the child does any more."""


class ChildPipes:
    """One channel from the child for each function that takes what it writes.

    The report comes through a socket: another process of this user can open a pipe of the child in
    /proc and write into it, but no socket.

    `streams` take what the child writes to its standard streams, `report` its report. The
    descriptor `listener` becomes readable when nobody waits any more. With `prompt`, `listen`
    returns when something was written; otherwise when the child has ended or the time is up, which
    takes less of the processor.
    """

    def __init__(
        self,
        streams: Sequence[Callable[[bytes], None]],
        report: Callable[[bytes], None],
        listener: int,
        *,
        prompt: bool = True,
    ) -> None:
        self._ends: list[int] = []
        self._listener = listener
        self._prompt = prompt
        self._child: int | None = None
        self._readers: dict[int, Callable[[bytes], None]] = {}
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        try:
            for take in streams:
                self._open(os.pipe(), take)
            self._open(_one_way_socket(), report)
        except OSError:
            self._close_ends()
            self.close()
            raise

    def _open(self, ends: tuple[int, int], take: Callable[[bytes], None]) -> None:
        reads, writes = ends
        self._ends.append(writes)
        self._readers[reads] = take
        os.set_blocking(reads, False)

    def _close_ends(self) -> None:
        while self._ends:
            os.close(self._ends.pop())

    def fork(self, child: Callable[[Sequence[int], int], NoReturn]) -> int:
        """Start the child, given the descriptors to write to and the number of this process.

        Where no process can be started, all is closed.
        """
        parent = os.getpid()
        try:
            pid = os.fork()
            if pid == 0:
                child(self._ends, parent)
        except OSError:
            self.close()
            raise
        finally:
            self._close_ends()
        self._register(pid)
        return pid

    def _register(self, pid: int) -> None:
        """Choose what ends a wait: the child's end, or all that it writes."""
        # An old kernel, or one that Python was built for; or no descriptors left.
        with suppress(OSError, AttributeError):
            self._child = os.pidfd_open(pid)
            self._poll.register(self._child, select.POLLIN)
        # What it writes does not tell of its end: its descriptors are closed before it has ended.
        if self._child is not None and not self._prompt:
            return
        for fd in self._readers:
            self._poll.register(fd, select.POLLIN)

    def listen(self, seconds: float) -> None:
        """Wait, and hand over what has come; raise AbandonedError where nobody waits any more."""
        ready = [fd for fd, _ in self._poll.poll(seconds * 1000)]
        if self._listener in ready:
            raise AbandonedError
        if self._child in ready:
            self._forget_child()
        self.read_on()

    def read_on(self) -> None:
        """Hand over what has come, without waiting."""
        for fd in list(self._readers):
            self._drain(fd)

    def _drain(self, fd: int) -> None:
        for _ in range(_READS_IN_A_ROW):
            try:
                data = os.read(fd, _AT_ONCE)
            except BlockingIOError:
                return
            self._readers[fd](data)
            if not data:
                self._close(fd)
                return

    def close(self) -> None:
        """Close the ends that are read from."""
        self._forget_child()
        for fd in list(self._readers):
            self._close(fd)

    def _forget_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            self._poll.unregister(child)
            os.close(child)

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

    def __init__(self, take: Callable[[dict[str, Any]], None]) -> None:
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
                self._take(_parsed(line))


def _parsed(line: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(line, parse_constant=_refuse)
    if b"\\u" in line or not line.isascii():  # there may be half of a surrogate pair
        json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogateescape")
    return entry


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
    found = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT)
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
