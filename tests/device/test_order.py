"""Threads on streams that they share: what depends on other work waits for it."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

CHAINS, STREAMS, STEPS, SIZE = 4, 3, 40, 64

WAYS = {
    "wait_event": lambda before, after: after.wait_event(before.record_event()),
    "wait_for": lambda before, after: after.wait_for(before),
    "wait": lambda before, after: before.record_event().wait(),
    "block": lambda before, after: before.record_event().block(),
    "block_until_done": lambda before, after: before.block_until_done(),
}
"""How work on a stream is made to come after what another one has."""


class Chain:
    """Bytes that a thread passes on, from row to row, each time on another stream."""

    def __init__(self, device, streams, seed):
        self._dice = random.Random(seed)
        self._device, self._streams = device, streams
        self._memory = device.allocate((STEPS + 1) * SIZE)
        self.data, self.seen = self._dice.randbytes(SIZE), []

    def run(self, ways):
        before = self._dice.choice(self._streams)
        before.mem_zero(self._memory)
        before.memcpy_htod(self._memory, self.data)
        for step in range(STEPS):
            after = self._dice.choice(self._streams)
            WAYS[self._dice.choice(ways)](before, after)
            row = step * SIZE
            after.add_callback(lambda step=step: self._called(step))
            after.memcpy_dtod(
                self._memory, self._memory, SIZE, target_offset=row + SIZE, source_offset=row
            )
            before = after
        before.block_until_done()
        last = bytearray(SIZE)
        self._device.memcpy_dtoh(last, self._memory, SIZE, STEPS * SIZE)
        return last

    def _called(self, step):
        time.sleep(0.0005 * (step % 3))
        self.seen.append(step)


@pytest.mark.parametrize("ways", [[way] for way in WAYS] + [[*WAYS]], ids="-".join)
def test_the_order_is_what_the_dependencies_demand(host_device, ways):
    streams = [host_device.create_stream() for _ in range(STREAMS)]
    chains = [Chain(host_device, streams, seed) for seed in range(CHAINS)]
    with ThreadPoolExecutor(CHAINS) as threads:
        passed_on = list(threads.map(lambda chain: chain.run(ways), chains))

    assert passed_on == [chain.data for chain in chains]
    assert [chain.seen for chain in chains] == [[*range(STEPS)]] * CHAINS
