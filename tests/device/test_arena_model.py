"""The arena against a model that is lists and linear searches: the same addresses, always."""

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
from tests.device.arena_model import ArenaModel
from tests.device.arenas import GIB, MIB, PaperMemory

SMALL = st.integers(0, 3000)
# Around the sizes at which bins, regions and the rule for splitting change.
AROUND_POWERS = st.builds(
    lambda power, off: max((1 << power) + off, 0), st.integers(8, 28), st.integers(-257, 257)
)
LARGE = st.integers(1, 400).map(lambda count: count * MIB)
SIZES = SMALL | AROUND_POWERS | LARGE
LIMITS = st.sampled_from([1000, 5 * MIB, 12 * MIB + 77, 100_000_000, 806354944, 3 * GIB])


class ArenaMachine(RuleBasedStateMachine):
    @initialize(limit=LIMITS, growth=st.booleans(), collects=st.booleans())
    def make(self, limit, growth, collects):
        self.memory = PaperMemory()
        self.arena = self.memory.arena(limit, growth=growth, garbage_collection=collects)
        self.model = ArenaModel(self.memory.given, limit, growth=growth, collects=collects)
        self.freed = set()

    @rule(n_bytes=SIZES)
    def allocate(self, n_bytes):
        try:
            address = self.arena.allocate(n_bytes)
        except OutOfMemoryError:
            address = None
        assert address == self.model.allocate(n_bytes)
        self.freed.discard(address)

    @precondition(lambda self: self.model.live())
    @rule(data=st.data())
    def free(self, data):
        address = data.draw(st.sampled_from([piece.address for piece in self.model.live()]))
        self.arena.free(address)
        self.model.free(address)
        self.freed.add(address)

    @rule(data=st.data())
    def free_most(self, data):
        keep = data.draw(st.integers(0, 2))
        for piece in self.model.live()[keep:]:
            self.arena.free(piece.address)
            self.model.free(piece.address)

    @rule(capacity=st.sampled_from([0, MIB, 7 * MIB, 100 * MIB, 653147648, 1 << 50]))
    def let_others_take_or_leave_memory(self, capacity):
        self.memory.capacity = self.model.capacity = capacity

    @precondition(lambda self: self.freed)
    @rule(data=st.data())
    def free_again(self, data):
        """It was freed, so it is no live allocation, unless it was given out again."""
        address = data.draw(st.sampled_from(sorted(self.freed)))
        with pytest.raises((FailedPreconditionError, InvalidArgumentError)):
            self.arena.free(address)

    @precondition(lambda self: self.model.live())
    @rule(data=st.data(), offset=st.integers(1, 1 << 28))
    def free_elsewhere(self, data, offset):
        live = {piece.address for piece in self.model.live()}
        address = data.draw(st.sampled_from(sorted(live))) + offset
        if address not in live:
            with pytest.raises((FailedPreconditionError, InvalidArgumentError)):
                self.arena.free(address)

    @invariant()
    def statistics_are_the_model_s(self):
        stats, model = self.arena.stats(), self.model
        assert stats.num_allocs == model.made
        assert stats.num_live_allocs == len(model.live())
        assert stats.bytes_in_use == model.in_use()
        assert stats.peak_bytes_in_use == model.peak
        assert stats.largest_alloc_size == model.largest
        assert stats.bytes_limit == model.limit
        assert stats.bytes_reserved == model.reserved() == sum(self.memory.regions.values())
        assert stats.bytes_reserved <= model.limit
        assert stats.peak_bytes_reserved == model.peak_reserved
        assert stats.largest_free_block_bytes == model.largest_free()

    @invariant()
    def the_source_was_asked_as_the_model_would(self):
        assert self.memory.asked == self.model.asked
        assert all(size == given for _, size, given in self.memory.returned)

    @invariant()
    def allocations_are_whole_aligned_and_apart(self):
        live = sorted(self.model.live(), key=lambda piece: piece.address)
        for piece in live:
            assert piece.address % 256 == 0
            assert self.arena.allocated_bytes(piece.address) == piece.size >= piece.used
            assert any(
                start <= piece.address and piece.address + piece.size <= start + size
                for start, size in self.memory.regions.items()
            )
        for one, other in pairwise(live):
            assert one.address + one.size <= other.address

    def teardown(self):
        if hasattr(self, "arena"):
            self.arena.close()
            with pytest.raises(ClosedError):
                self.arena.allocate(1)  # also where a chunk is free
            for piece in self.model.live():
                self.arena.free(piece.address)
            assert self.memory.regions == {}


TestArenaModel = ArenaMachine.TestCase
TestArenaModel.settings = settings(max_examples=40)
