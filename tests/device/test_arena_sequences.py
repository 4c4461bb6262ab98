"""Any calls of an arena in a row: memory is whole, aligned and apart, and the sums come out even.

Which address is given and what is asked of the source, as in TensorFlow, is in test_arena.py.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from modular_tf.errors import (
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfMemoryError,
)
from tests.device.arenas import GIB, MIB, PaperMemory

# Small sizes, and those around which bins, regions and the rule for splitting change.
SIZES = st.integers(1, 3000) | st.builds(
    lambda power, off: (1 << power) + off, st.integers(9, 28), st.integers(-257, 257)
)
SKEWS = st.sampled_from([0, 1, 255])
LIMITS = st.sampled_from([1000, 5 * MIB, 12 * MIB + 77, 100_000_000, 3 * GIB])


class ArenaMachine(RuleBasedStateMachine):
    @initialize(
        limit=LIMITS,
        growth=st.booleans(),
        collects=st.booleans(),
        skew=SKEWS,
    )
    def make(self, limit, growth, collects, skew):
        self.memory = PaperMemory(skew=skew)
        self.arena = self.memory.arena(limit, growth=growth, garbage_collection=collects)
        self.limit = limit
        self.live = {}  # address to the size that was asked for
        self.made = self.peak = 0

    @rule(n_bytes=SIZES)
    def allocate(self, n_bytes):
        try:
            address = self.arena.allocate(n_bytes)
        except OutOfMemoryError:
            assert self.arena.stats().largest_free_block_bytes < n_bytes
        else:
            assert address not in self.live
            self.live[address] = n_bytes
            self.made += 1
            self.peak = max(self.peak, self.in_use())

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def free(self, data):
        address = data.draw(st.sampled_from(sorted(self.live)))
        self.arena.free(address)
        del self.live[address]
        with pytest.raises((FailedPreconditionError, InvalidArgumentError)):
            self.arena.free(address)

    @precondition(lambda self: self.live)
    @rule(data=st.data(), offset=st.integers(1, 1 << 28))
    def free_elsewhere(self, data, offset):
        address = data.draw(st.sampled_from(sorted(self.live))) + offset
        if address not in self.live:
            with pytest.raises((FailedPreconditionError, InvalidArgumentError)):
                self.arena.free(address)

    @rule(capacity=st.sampled_from([0, MIB, 7 * MIB, 100 * MIB, 1 << 50]))
    def let_others_take_or_leave_memory(self, capacity):
        self.memory.capacity = capacity

    def in_use(self):
        return sum(map(self.arena.allocated_bytes, self.live))

    @invariant()
    def the_sums_come_out_even(self):
        stats = self.arena.stats()
        assert (stats.num_allocs, stats.num_live_allocs) == (self.made, len(self.live))
        assert (stats.bytes_in_use, stats.peak_bytes_in_use) == (self.in_use(), self.peak)
        assert stats.bytes_reserved == sum(self.memory.regions.values()) <= self.limit
        assert stats.largest_free_block_bytes <= stats.bytes_reserved - stats.bytes_in_use
        assert all(size == given for _, size, given in self.memory.returned)

    @invariant()
    def allocations_are_whole_aligned_and_apart(self):
        ends = {address: address + self.arena.allocated_bytes(address) for address in self.live}
        for address, end in ends.items():
            assert address % 256 == 0
            assert end - address >= self.live[address]
            assert any(
                start <= address and end <= start + size
                for start, size in self.memory.regions.items()
            )
        assert all(ends[one] <= other for one, other in pairwise(sorted(ends)))

    def teardown(self):
        if hasattr(self, "arena"):
            self.arena.close()
            with pytest.raises(ClosedError):
                self.arena.allocate(1)  # also where a chunk is free
            for address in self.live:
                self.arena.free(address)
            assert self.memory.regions == {}


TestArenaSequences = ArenaMachine.TestCase
TestArenaSequences.settings = settings(max_examples=40)
