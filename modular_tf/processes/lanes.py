"""The application's ends of the channels to watchers."""

from __future__ import annotations

import json
import math
import selectors
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Mapping

_AT_ONCE = 1 << 16
_LONGEST_ENTRY = 8 << 20  # more than what is in bounds takes in JSON

Work = TypeVar("Work")


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
        except ConnectionError:
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
        self._selector = selectors.DefaultSelector()

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
        self._selector.register(lane.connection, selectors.EVENT_READ, lane)
        return lane

    def ready(self, seconds: float | None = None) -> Iterator[Lane[Work]]:
        """Wait, and yield each lane on which something has come and that is still open."""
        for key, _ in self._selector.select(seconds):
            if key.data in self._lanes:
                yield key.data

    def remove(self, lane: Lane[Work]) -> None:
        """Close a lane; its watcher ends."""
        self._lanes.remove(lane)
        self._selector.unregister(lane.connection)
        lane.connection.close()

    def close(self) -> None:
        """Close all lanes. Safe to call twice."""
        for lane in self._lanes:
            lane.connection.close()
        self._lanes.clear()
        self._selector.close()
