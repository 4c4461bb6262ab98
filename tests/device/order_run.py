"""Running a program of `order_model` on a device, with a thread per thread."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from tests.device.order_model import SEEN, STREAMS, THREADS, Kind, Trace

_NAP_S = 0.0003


class Run:
    """One run of a program: its streams, its memory, and what is seen."""

    def __init__(self, device, program):
        size = len(program)
        self._program = program
        self._streams = [device.create_stream() for _ in range(STREAMS)]
        self._memory = device.allocate(size * size)
        device.memcpy_htod(self._memory, bytes(size * size))
        self._device = device
        self._sources = {s.number: bytearray(size) for s in program if s.kind is Kind.WRITE}
        for number, source in self._sources.items():
            source[number] = 1
        self._seen = {
            s.number: bytearray(b"\xff") * size**2 for s in program if s.kind is Kind.READ
        }
        self._events = {}
        self._recorded = {s.number: threading.Event() for s in program if s.kind is Kind.RECORD}
        self._ticks = count()
        self._trace = Trace({}, {}, [], {}, {})

    def __call__(self):
        """Take all steps, wait for the device, and return what was seen."""
        start = threading.Barrier(THREADS)
        with ThreadPoolExecutor(THREADS) as pool:
            threads = [pool.submit(self._thread, number, start) for number in range(THREADS)]
        for thread in threads:
            thread.result()
        self._device.synchronize()
        out = bytearray(self._memory.size)
        self._device.memcpy_dtoh(out, self._memory)
        for stream in self._streams:
            stream.block_until_done()
            stream.close()
        self._memory.close()
        self._trace.rows = self._rows(out)
        self._trace.snapshots = {number: self._rows(seen) for number, seen in self._seen.items()}
        return self._trace

    def _rows(self, content):
        size = len(self._program)
        return [bytes(content[at : at + size]) for at in range(0, size * size, size)]

    def _thread(self, number, start):
        start.wait()
        try:
            for step in self._program:
                if step.thread == number:
                    self._take(step)
        finally:
            for step in self._program:  # those who wait for a thread that failed fail too
                if step.thread == number and step.kind is Kind.RECORD:
                    self._recorded[step.number].set()

    def _event(self, step):
        assert step.of is not None
        self._recorded[step.of].wait()
        return self._events[step.of]

    def _take(self, step):
        if step.kind in SEEN:
            self._enqueue(step, self._streams[step.stream], len(self._program))
        else:
            self._order(step, self._streams[step.stream])

    def _enqueue(self, step, stream, size):
        memory, row = self._memory, step.number * size
        match step.kind:
            case Kind.CALLBACK:
                stream.add_callback(lambda: self._called(step.number))
            case Kind.WRITE:
                stream.memcpy_htod(memory, self._sources[step.number], None, row)
            case Kind.FILL:
                stream.memset(memory, 1, 1, row + step.number)
            case Kind.COPY:
                source = (step.of or 0) * size
                stream.memcpy_dtod(memory, memory, size, target_offset=row, source_offset=source)
            case Kind.READ:
                stream.memcpy_dtoh(self._seen[step.number], memory)

    def _order(self, step, stream):
        match step.kind:
            case Kind.RECORD:
                self._events[step.number] = stream.record_event()
                self._recorded[step.number].set()
            case Kind.WAIT_EVENT:
                stream.wait_event(self._event(step))
            case Kind.DEPEND:
                stream.wait_for(self._streams[step.other])
            case Kind.HOST_WAIT:
                self._event(step).wait()
            case Kind.HOST_BLOCK:
                self._event(step).block()
            case Kind.HOST_STREAM:
                stream.block_until_done()

    def _called(self, number):
        trace = self._trace
        trace.started[number] = next(self._ticks)
        trace.reads[number] = {read for read, seen in self._seen.items() if seen[-1] != 0xFF}
        time.sleep(_NAP_S * (number % 3))
        for source in self._sources.values():
            source[number] = 1
        trace.ended[number] = next(self._ticks)
