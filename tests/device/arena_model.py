"""The arena's rules once more, as plainly as they can be said: lists and linear searches."""

from __future__ import annotations

from dataclasses import dataclass

from tests.device.arenas import MIB

UNIT = 256


def rounded(n_bytes):
    return -(-n_bytes // UNIT) * UNIT


@dataclass
class Piece:
    """A chunk: `used` is what was asked for, 0 while it is free."""

    address: int
    size: int
    used: int = 0


class ArenaModel:
    """Says what an arena over `PaperMemory` must do; regions are lists of pieces.

    `given` is the log of what the source gave, to learn where regions lie; `capacity` is what it
    has. What the model would ask the source for is in `asked`.
    """

    def __init__(self, given, limit, *, growth, collects):
        self.given = iter(given)  # a list that grows
        self.limit = limit
        self.collects = collects
        self.next_size = 2 * MIB if growth else limit // UNIT * UNIT
        self.capacity = 1 << 50
        self.regions = []
        self.asked = []
        self.made = self.peak = self.largest = self.peak_reserved = 0

    def pieces(self):
        return [piece for region in self.regions for piece in region]

    def live(self):
        return [piece for piece in self.pieces() if piece.used]

    def in_use(self):
        return sum(piece.size for piece in self.live())

    def reserved(self):
        return sum(piece.size for piece in self.pieces())

    def largest_free(self):
        return max((piece.size for piece in self.pieces() if not piece.used), default=0)

    def allocate(self, n_bytes):
        """Return the address, or None where memory must be out."""
        if n_bytes == 0:
            return 0
        size = rounded(n_bytes)
        found = self._best_fit(size)
        if found is None and n_bytes <= self.limit:
            if not self._extend(size) and self._collect(size):
                self._extend(size)
            found = self._best_fit(size)
        return None if found is None else self._cut(*found, size, n_bytes)

    def _best_fit(self, size):
        fitting = [
            (piece.size, piece.address, region)
            for region in self.regions
            for piece in region
            if not piece.used and piece.size >= size
        ]
        if not fitting:
            return None
        _, address, region = min(fitting, key=lambda row: row[:2])
        return region, next(i for i, piece in enumerate(region) if piece.address == address)

    def _cut(self, region, index, size, n_bytes):
        piece = region[index]
        if piece.size >= 2 * size or piece.size - size >= 128 * MIB:
            region.insert(index + 1, Piece(piece.address + size, piece.size - size))
            piece.size = size
        piece.used = n_bytes
        self.made += 1
        self.peak = max(self.peak, self.in_use())
        self.largest = max(self.largest, piece.size)
        return piece.address

    def _extend(self, size):
        room = (self.limit - self.reserved()) // UNIT * UNIT
        if size > room:
            return False
        wanted = self.next_size
        while wanted < size:
            wanted *= 2
        for ask in self._sizes(min(wanted, room), size):
            self.asked.append(ask)
            if self.reserved() + ask <= self.capacity:
                address, given = next(self.given)
                assert given == ask
                self.regions.append([Piece(address, ask)])
                self.next_size = wanted if wanted > self.next_size else 2 * wanted
                self.peak_reserved = max(self.peak_reserved, self.reserved())
                return True
        return False

    @staticmethod
    def _sizes(first, least):
        """Yield what to ask for: nine tenths each time, and at last the request itself."""
        size = first
        while size > least:
            yield size
            size = min(rounded(-(-size * 9 // 10)), size - UNIT)
        yield least

    def _collect(self, size):
        unused = [region for region in self.regions if not any(piece.used for piece in region)]
        total = sum(piece.size for region in unused for piece in region)
        room = (self.limit - self.reserved()) // UNIT * UNIT
        if not self.collects or not unused or total + room < size:
            return False
        self.regions = [region for region in self.regions if region not in unused]
        return True

    def free(self, address):
        for region in self.regions:
            for index, piece in enumerate(region):
                if piece.address == address:
                    piece.used = 0
                    self._join(region, index)
                    self._join(region, index - 1)
                    return

    @staticmethod
    def _join(region, index):
        """Make one of a piece and the next one, if both are there and free."""
        if index < 0 or index + 1 >= len(region) or region[index].used or region[index + 1].used:
            return
        region[index].size += region.pop(index + 1).size
