"""The pipes that a child process speaks on, as the process that watches over it hears them."""

from __future__ import annotations

import json
import os
import select
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_AT_ONCE = 1 << 16
_READS_OF_A_FULL_PIPE = 2
_LONGEST_ENTRY = 1 << 20


class AbandonedError(Exception):
    """Nobody waits for what the child does any more."""


class ChildPipes:
    """One pipe for each function that takes what a child writes.

    Args:
        takers: The functions. They are given b"" when nobody can write any more.
        listener: A descriptor that becomes readable when nobody waits any more.

    Raises:
        OSError: There are no descriptors.
    """

    def __init__(self, takers: Sequence[Callable[[bytes], None]], listener: int) -> None:
        self._ends: list[int] = []
        self._listener = listener
        self._readers: dict[int, Callable[[bytes], None]] = {}
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        try:
            for take in takers:
                self._open(take)
        except OSError:
            self._close_ends()
            self.close()
            raise

    def _open(self, take: Callable[[bytes], None]) -> None:
        reads, writes = os.pipe()
        self._ends.append(writes)
        os.set_blocking(reads, False)
        self._readers[reads] = take
        self._poll.register(reads, select.POLLIN)

    def _close_ends(self) -> None:
        while self._ends:
            os.close(self._ends.pop())

    def fork(self, child: Callable[[Sequence[int], int], NoReturn]) -> int:
        """Start the child, and return its number.

        Args:
            child: What it does, given the descriptors that it is to write to, in the order of the
                functions, and the number of this process.

        Raises:
            OSError: No process can be started; the pipes are closed.
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
        return pid

    def listen(self, seconds: float) -> None:
        """Wait for something to come, and hand it over.

        Raises:
            AbandonedError: Nobody waits any more.
        """
        for fd, _ in self._poll.poll(seconds * 1000):
            if fd == self._listener:
                raise AbandonedError
            if not self._read(fd):
                self._poll.unregister(fd)
                del self._readers[fd]
                os.close(fd)

    def _read(self, fd: int) -> bool:
        try:
            data = os.read(fd, _AT_ONCE)
        except BlockingIOError:
            return True
        self._readers[fd](data)
        return bool(data)

    def read_the_rest(self) -> None:
        """Hand over what the dead have left."""
        for fd in self._readers:
            # It fits in so many; somebody who got away may write on for ever.
            any(not self._read(fd) for _ in range(_READS_OF_A_FULL_PIPE))

    def close(self) -> None:
        """Close the ends that are read from."""
        for fd in self._readers:
            os.close(fd)
        self._readers.clear()


class EntryReader:
    """Cuts what comes through a pipe into entries, which are JSON objects, one a line.

    The plugin may have written into the pipe: what is no JSON, or text that nobody can show, is
    left out, and so is what the function refuses.

    Args:
        take: Is given each entry; a ValueError, TypeError or KeyError refuses it.
    """

    def __init__(self, take: Callable[[dict[str, Any]], None]) -> None:
        self._take = take
        self._begun = b""

    def __call__(self, data: bytes) -> None:
        """Take what has come."""
        *lines, rest = (self._begun + data).split(b"\n")
        self._begun = rest[:_LONGEST_ENTRY]
        for line in lines:
            with suppress(ValueError, TypeError, KeyError, RecursionError):
                entry = json.loads(line)
                json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogateescape")
                self._take(entry)


def has_ended(pid: int) -> bool:
    """Tell whether a child has ended; it is not waited for, so the number stays its own."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
