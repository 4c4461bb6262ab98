"""The pipes that a child process speaks on, as the process that watches over it hears them."""

from __future__ import annotations

import json
import os
import select
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_AT_ONCE = 1 << 16
_READS_OF_A_FULL_PIPE = 2
_LONGEST_ENTRY = 1 << 20


class AbandonedError(Exception):
    """Nobody waits for what the child does any more."""


class ChildPipes:
    """One pipe for each function that takes what a child writes.

    Attributes:
        ends: The descriptors that the child is to write to, in the order of the functions.

    Args:
        takers: The functions. They are given b"" when nobody can write any more.
        listener: A descriptor that becomes readable when nobody waits any more.

    Raises:
        OSError: There are no descriptors.
    """

    def __init__(self, takers: Sequence[Callable[[bytes], None]], listener: int) -> None:
        self.ends: list[int] = []
        self._listener = listener
        self._readers: dict[int, Callable[[bytes], None]] = {}
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        try:
            for take in takers:
                self._open(take)
        except OSError:
            self.close_ends()
            self.close()
            raise

    def _open(self, take: Callable[[bytes], None]) -> None:
        reads, writes = os.pipe()
        self.ends.append(writes)
        os.set_blocking(reads, False)
        self._readers[reads] = take
        self._poll.register(reads, select.POLLIN)

    def close_ends(self) -> None:
        """Leave writing to the child, which has been forked."""
        while self.ends:
            os.close(self.ends.pop())

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
