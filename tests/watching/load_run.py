"""Plugin files come, are replaced and go at random while threads read from what they serve.

Checked all the time: a reader gets the whole answer of one library that lay there, or is told that
nobody serves the scheme, and that only if the file was away.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from modular_tf.errors import UnimplementedError
from modular_tf.service.service import PluginService
from tests.watching.numbered import DIGITS, SIZE, number_in, numbered_library, scheme_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PATIENCE_S = 60.0


@dataclass
class Slot:
    """One file that comes and goes."""

    number: int | None = None  # of the library that lies there
    numbers: set[int] = field(default_factory=set)  # of all that ever lay there
    is_seen: bool = False  # it was read since it last came, and not removed since
    removals: int = 0
    # What was done and not seen yet: when, and the number it led to.
    changes: list[tuple[float, int | None]] = field(default_factory=list)


class LoadRun:
    """One run."""

    def __init__(self, folder: Path, seed: int, *, slots: int = 8, readers: int = 3) -> None:
        self._folder = folder
        self._dice = random.Random(seed)
        self._slots = [Slot() for _ in range(slots)]
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self.errors: list[str] = []
        self.delays_s: list[float] = []
        self.done: Counter[str] = Counter()
        self.reads = 0
        self.absences = 0
        self.service = PluginService(plugin_dirs=[folder], bundled=False)
        self._watch = self.service.watch()
        jobs = [self._observe, self._hold, *[self._read_on] * readers]
        self._threads = [
            threading.Thread(target=self._guarded, args=(job, seed + number))
            for number, job in enumerate(jobs)
        ]

    def run(self, changes: int, seconds: float) -> None:
        """Do so many changes in about that time, wait until all are seen, and end."""
        for thread in self._threads:
            thread.start()
        start = time.monotonic()
        for number in range(changes):
            self._change(number + 1)
            self._ends.wait(max(0.0, start + (number + 1) * seconds / changes - time.monotonic()))
        self._wait_until_seen()
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def close(self) -> None:
        """Close the service."""
        self.service.close()

    # -- changes ----------------------------------------------------------------------------------

    def _change(self, number: int) -> None:
        at = self._dice.randrange(len(self._slots))
        slot, path = self._slots[at], self._folder / f"libslot{at:02}.so"
        if slot.number is not None and self._dice.random() < 0.3:
            with self._lock:
                slot.is_seen, slot.number = False, None
                slot.removals += 1
            path.unlink()
            what = "removed"
        else:
            write = self._dice.choice([_renamed, _linked, _written, _written_slowly])
            what = f"{'dropped' if slot.number is None else 'replaced'}, {write.__name__[1:]}"
            with self._lock:
                slot.numbers.add(number)
            write(path, numbered_library(at, number), self._dice)
            with self._lock:
                slot.number = number
        with self._lock:
            slot.changes.append((time.monotonic(), slot.number))
        self.done[what] += 1

    def _wait_until_seen(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while any(slot.changes for slot in self._slots) and time.monotonic() < deadline:
            self._ends.wait(0.05)
        for at, slot in enumerate(self._slots):
            if slot.changes:
                self.errors.append(f"slot {at}: never seen: {slot.changes}")

    # -- readers ----------------------------------------------------------------------------------

    def _guarded(self, job: Callable[[random.Random], None], seed: int) -> None:
        dice = random.Random(seed)
        while not self._ends.is_set():
            try:
                job(dice)
            except Exception as error:  # noqa: BLE001  (whatever comes is the result)
                self.errors.append(f"{job.__name__}: {error!r}")

    def _observe(self, _dice: random.Random) -> None:
        """See which changes have taken effect."""
        for at, slot in enumerate(self._slots):
            if not slot.changes:
                continue
            number, now = self._number_of(at), time.monotonic()
            with self._lock:
                slot.is_seen = slot.is_seen or (number is not None and number == slot.number)
                led_to = [to for _, to in slot.changes]
                if number in led_to:
                    seen = len(led_to) - led_to[::-1].index(number)
                    self.delays_s += [now - when for when, _ in slot.changes[:seen]]
                    del slot.changes[:seen]
        self._ends.wait(0.01)

    def _number_of(self, at: int) -> int | None:
        """Return the number that a slot serves now; None if it serves nothing."""
        uri = f"{scheme_of(at)}://host/file"
        try:
            with self.service.filesystem_for(uri).new_random_access_file(uri) as reader:
                third = SIZE // 3
                parts = [reader.read(offset, third) for offset in (0, third, 2 * third)]
                content = b"".join([*parts, reader.read(3 * third, SIZE)])
        except UnimplementedError:
            return None
        return number_in(content)

    def _read_on(self, dice: random.Random) -> None:
        """Read a file, and check that it is one that lay there."""
        at = dice.randrange(len(self._slots))
        slot = self._slots[at]
        with self._lock:
            was_seen, removals = slot.is_seen, slot.removals
        number = self._number_of(at)
        with self._lock:
            self.reads += 1
            if number is None:
                self.absences += 1
                if was_seen and slot.removals == removals:
                    self.errors.append(f"slot {at}: nobody serves it though it is there")
            elif number not in slot.numbers:
                self.errors.append(f"slot {at}: read {number}, which never lay there")
        self._ends.wait(0.002)

    def _hold(self, dice: random.Random) -> None:
        """Keep a file open for a while: it stays what it was."""
        at = dice.randrange(len(self._slots))
        uri = f"{scheme_of(at)}://host/file"
        try:
            reader = self.service.filesystem_for(uri).new_random_access_file(uri)
        except UnimplementedError:
            self._ends.wait(0.05)
            return
        with reader:
            first = reader.read(0, DIGITS)
            self._ends.wait(dice.random())
            if reader.read(SIZE - DIGITS, DIGITS) != first:
                self.errors.append(f"slot {at}: an open file changed")

    def figures(self) -> dict[str, object]:
        """Return what was measured, for people."""
        delays = sorted(self.delays_s)
        return {
            "changes": dict(sorted(self.done.items())),
            "seen": len(delays),
            "delay, median": f"{median(delays):.3f} s",
            "delay, 95 of 100": f"{delays[int(len(delays) * 0.95)]:.3f} s",
            "delay, longest": f"{delays[-1]:.3f} s",
            "files read": self.reads,
            "nobody serves the scheme": self.absences,
            "old generations still held": self.service.draining,
        }


def _renamed(path: Path, content: bytes, _dice: random.Random) -> None:
    coming = path.with_name(f".{path.name}.coming")
    coming.write_bytes(content)
    coming.replace(path)


def _linked(path: Path, content: bytes, _dice: random.Random) -> None:
    outside = path.parent.with_name(f"{path.name}.outside")
    outside.write_bytes(content)
    coming = path.with_name(f".{path.name}.coming")
    os.link(outside, coming)
    coming.replace(path)
    outside.unlink()


def _written(path: Path, content: bytes, _dice: random.Random) -> None:
    with path.open("r+b" if path.exists() else "wb") as stream:
        stream.write(content)


def _written_slowly(path: Path, content: bytes, dice: random.Random) -> None:
    with path.open("r+b" if path.exists() else "wb", buffering=0) as stream:
        step = len(content) // 5 + 1
        for at in range(0, len(content), step):
            stream.write(content[at : at + step])
            time.sleep(dice.random() * 0.05)
