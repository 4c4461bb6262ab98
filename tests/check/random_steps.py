"""Random work on a few streams of a device, and on its model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.device.model import Place

if TYPE_CHECKING:
    import random

    from modular_tf.check.device.model_run import ModelRun

_SIZE = 24
_MEMORIES, _STREAMS, _EVENTS = 4, 3, 3


class RandomSteps:
    """Steps by a random number generator, for runs without a search for the shortest failure.

    Args:
        run: What they are done on.
        choose: Makes all decisions.
    """

    def __init__(self, run: ModelRun, choose: random.Random) -> None:
        self._run = run
        self._choose = choose
        memories = [run.allocate(_SIZE) for _ in range(_MEMORIES)]
        self._memories = [memory for memory in memories if memory is not None]
        self._streams = [run.create_stream() for _ in range(_STREAMS)]
        self._events = [run.create_event() for _ in range(_EVENTS)]
        for memory in self._memories:
            run.write(None, Place(memory, 0, _SIZE), choose.randbytes(_SIZE))

    def take(self, count: int) -> list[str]:
        """Take so many steps, and return what the model rules out."""
        work = [self._write, self._fill, self._copy, self._read, self._read]
        order = [self._depend, self._record, self._wait_for_event, self._poll]
        ends = [self._block, self._replace]
        for _ in range(count):
            self._choose.choice(self._choose.choices((work, order, ends), (12, 6, 1))[0])()
        for memory in self._memories:
            self._run.read(None, Place(memory, 0, _SIZE))
        self._run.close()
        return self._run.findings

    def _stream(self) -> int:
        return self._choose.choice(self._streams)

    def _stream_or_host(self) -> int | None:
        return self._choose.choice([*self._streams, *self._streams, None])

    def _place(self, memory: int | None = None) -> Place:
        at = self._choose.randrange(_SIZE)
        size = self._choose.randint(1, _SIZE - at)
        return Place(self._choose.choice(self._memories) if memory is None else memory, at, size)

    def _write(self) -> None:
        place = self._place()
        self._run.write(self._stream_or_host(), place, self._choose.randbytes(place.size))

    def _fill(self) -> None:
        self._run.fill(self._stream(), self._place(), self._choose.randrange(256))

    def _copy(self) -> None:
        first, second = self._choose.sample(self._memories, 2)
        source = self._place(first)
        at = self._choose.randint(0, _SIZE - source.size)
        self._run.copy(self._stream_or_host(), Place(second, at, source.size), source)

    def _read(self) -> None:
        self._run.read(self._stream_or_host(), self._place())

    def _depend(self) -> None:
        self._run.depend(*self._choose.sample(self._streams, 2))

    def _record(self) -> None:
        self._run.record(self._stream(), self._choose.choice(self._events))

    def _wait_for_event(self) -> None:
        self._run.wait_for_event(self._stream(), self._choose.choice(self._events))

    def _poll(self) -> None:
        self._run.poll(self._choose.choice(self._events))

    def _block(self) -> None:
        event = self._choose.choice(self._events)
        waits = [
            lambda: self._run.block_for_event(event),
            lambda: self._run.block_for_stream(self._stream()),
            self._run.synchronize,
        ]
        self._choose.choice(waits)()

    def _replace(self) -> None:
        """Destroy a stream that may have work left, and take a new one."""
        at = self._choose.randrange(len(self._streams))
        self._run.destroy_stream(self._streams[at])
        self._streams[at] = self._run.create_stream()
