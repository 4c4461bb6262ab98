"""A folder of plugins that are told apart by numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.watching.numbered import numbered_library

if TYPE_CHECKING:
    from pathlib import Path

SLOTS = 3


class LibraryFolder:
    """A library in each of a few slots, which serves the slot's scheme with its number."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.numbers: dict[int, int] = {}
        self._last = 0
        path.mkdir()
        self.put_all()

    def put_all(self) -> None:
        """Place a new library in each slot."""
        for slot in range(SLOTS):
            self.put(slot)

    def put(self, slot: int) -> None:
        """Place a new library in a slot, in one step."""
        self._last += 1
        coming = self.path / f".slot{slot:02}.coming"
        coming.write_bytes(numbered_library(slot, self._last))
        coming.replace(self.file_of(slot))
        self.numbers[slot] = self._last

    def remove(self, slot: int) -> None:
        """Remove the library of a slot."""
        self.file_of(slot).unlink(missing_ok=True)
        self.numbers.pop(slot, None)

    def file_of(self, slot: int) -> Path:
        """Return where the library of a slot lies."""
        return self.path / f"libslot{slot:02}.so"
