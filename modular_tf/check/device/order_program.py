"""Work of many threads on few streams, and what order their events demand.

Each thread takes random steps: it has a callback called, records an event, or lets a stream wait
for an event that some thread has recorded. What must have ended before a callback starts is known
from three sources: what this thread enqueued on the stream before, what such callbacks had to wait
for themselves, and the same of the stream of each event that the stream was made to wait for. What
other threads enqueue on the same stream meanwhile demands nothing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from modular_tf.check.concurrency import run_at_once

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Event, Stream

THREADS = 8
STREAMS = 4
_STEPS = 30


@dataclass
class Trace:
    """What was demanded and what was seen; ticks are numbers that no two share.

    Attributes:
        demanded: Of each callback, those that must have ended before it starts.
        started: The tick of each callback's start.
        ended: The tick of its end.
    """

    demanded: dict[int, frozenset[int]] = field(default_factory=dict)
    started: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)

    def breaches(self) -> list[tuple[int, int]]:
        """Return each callback that started before one that it had to wait for had ended."""
        return [
            (then, first)
            for then, before in self.demanded.items()
            for first in before
            if self.ended[first] > self.started[then]
        ]

    def lost(self) -> list[int]:
        """Return the callbacks that were never called."""
        return [number for number in self.demanded if number not in self.ended]


class OrderProgram:
    """One run of such a program.

    Attributes:
        trace: Complete when all streams are done.
    """

    def __init__(self, ground: DeviceGround, streams: list[Stream]) -> None:
        self.trace = Trace()
        self._ground = ground
        self._streams = streams
        self._recorded: list[tuple[Event, frozenset[int]]] = []
        self._numbers, self._ticks = count(), count()
        self._seeds = [ground.random.getrandbits(32) for _ in range(THREADS)]

    def enqueue(self) -> None:
        """Have all threads take all their steps; the streams need not get anywhere."""
        run_at_once([partial(self._thread, seed) for seed in self._seeds])

    def _thread(self, seed: int) -> None:
        choose = random.Random(seed)  # noqa: S311  (repeatable)
        before: list[set[int]] = [set() for _ in self._streams]
        for _ in range(_STEPS):
            at = choose.randrange(STREAMS)
            step = choose.choice((self._call, self._call, self._record, self._wait))
            step(choose, self._streams[at], before[at])

    def _call(self, _: random.Random, stream: Stream, before: set[int]) -> None:
        number = next(self._numbers)
        self.trace.demanded[number] = frozenset(before)
        called = self._ground.subject.host_callback(stream, lambda: self._called(number))
        called.must_be_ok()
        before.add(number)

    def _called(self, number: int) -> None:
        self.trace.started[number] = next(self._ticks)
        self.trace.ended[number] = next(self._ticks)

    def _record(self, _: random.Random, stream: Stream, before: set[int]) -> None:
        event = self._ground.event()
        self._ground.subject.record_event(stream, event).must_be_ok()
        self._recorded.append((event, frozenset(before)))

    def _wait(self, choose: random.Random, stream: Stream, before: set[int]) -> None:
        if not self._recorded:
            return
        event, known = choose.choice(self._recorded[-STREAMS:])
        self._ground.subject.wait_for_event(stream, event).must_be_ok()
        before |= known
