"""Sources of regions for the arena's tests: made-up addresses, so that sizes cost nothing."""

from __future__ import annotations

from modular_tf.native.ffi import ffi
from tests.device.arenas import Arena, RegionSource

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


class PaperMemory:
    """Regions that exist on paper only: an arena never touches the memory that it manages.

    Attributes:
        capacity: Regions together are never larger.
        skew: Added to each address, which is a multiple of 4 KiB otherwise.
        asked: The sizes of all requests, in order.
        given: Address and size of all regions that were given, in order.
        regions: Address to size of what was given and did not come back.
        returned: Address and size that came back, and the size that had been given there.
        meanwhile: Is called in each request before memory is given, and each time some comes back.
    """

    def __init__(self, capacity=1 << 50, *, skew=0):
        self.capacity = capacity
        self.skew = skew
        self.asked = []
        self.given = []
        self.regions = {}
        self.returned = []
        self.meanwhile = lambda: None
        self._next = 1 << 40
        self._allocate = ffi.callback("void *(void *, uint64_t)", self._give)
        self._free = ffi.callback("void (void *, void *, uint64_t)", self._take_back)

    def _give(self, _context, n_bytes):
        self.asked.append(n_bytes)
        self.meanwhile()
        if sum(self.regions.values()) + n_bytes > self.capacity:
            return ffi.NULL
        address = self._next + self.skew
        self._next += (n_bytes // 4096 + 2) * 4096  # regions never touch
        self.regions[address] = n_bytes
        self.given.append((address, n_bytes))
        return ffi.cast("void *", address)

    def _take_back(self, _context, address, n_bytes):
        self.meanwhile()
        number = int(ffi.cast("uintptr_t", address))
        self.returned.append((number, n_bytes, self.regions.pop(number, None)))

    @property
    def source(self):
        return RegionSource(self._allocate, self._free, ffi.NULL, owner=self)

    def arena(self, bytes_limit=1 << 40, **options):
        return Arena(self.source, bytes_limit, **options)
