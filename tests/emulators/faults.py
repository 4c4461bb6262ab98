"""Faults of stores and networks, drawn at random from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.emulators.http_server import Settings

# What each fault does to one request; the names are what `FaultSettings.faults` lists.
FAULTS = (
    "slow",  # the answer comes in pieces, with pauses
    "reset",  # the connection breaks instead of an answer, and the request may have been done
    "error",  # 500 or 503 instead of the answer, and the request may have been done
    "break",  # the connection breaks in the middle of the answer's body
    "truncate",  # the connection ends in the middle of the answer's body
    "cut",  # a part of a listing or another document, whose length is told as if it were whole
)
_LONGEST_PAUSE_S = 0.1


@dataclass(frozen=True)
class FaultSettings(Settings):
    """What can be changed while the proxy runs.

    Attributes:
        seed: What faults are drawn from; the draw begins anew when it changes.
        chance: How likely a request meets a fault, from 0 to 1.
        faults: The faults that are drawn from, with commas between.
        longest_run: A fault is met by up to so many requests in turn for the same path, so that
            some clients try in vain.
        kind: The kind of request that meets faults, as requests are counted; "" for all.
    """

    seed: int = 0
    chance: float = 0.0
    faults: str = ",".join(FAULTS)
    longest_run: int = 3
    kind: str = ""


@dataclass(frozen=True)
class Fault:
    """What happens to one request: its name, whether the request is done, and how."""

    name: str = ""
    is_done: bool = True
    status: int = 500
    part: float = 0.5
    pause_s: float = 0.0


NO_FAULT = Fault()


class FaultDraw:
    """Draws a fault for each request."""

    def __init__(self) -> None:
        self._seed: int | None = None
        self._dice = random.Random()
        self._runs: dict[str, tuple[Fault, int]] = {}

    def next(self, path: str, settings: FaultSettings) -> Fault:
        """Return what the next request for a path meets."""
        if settings.seed != self._seed:
            self._seed = settings.seed
            self._dice = random.Random(settings.seed)
            self._runs.clear()
        if not settings.chance:
            self._runs.clear()
            return NO_FAULT
        fault, left = self._runs.pop(path, (NO_FAULT, 0))
        if not left:
            if self._dice.random() >= settings.chance:
                return NO_FAULT
            fault, left = self._drawn(settings.faults.split(",")), self._run(settings.longest_run)
        if left > 1:
            self._runs[path] = fault, left - 1
        return fault

    def _drawn(self, names: list[str]) -> Fault:
        dice = self._dice
        return Fault(
            dice.choice(names),
            is_done=dice.random() < 1 / 2,
            status=dice.choice([500, 503]),
            part=dice.random(),
            pause_s=dice.uniform(0.0, _LONGEST_PAUSE_S),
        )

    def _run(self, longest: int) -> int:
        """Return the length of a run: mostly one, rarely the longest."""
        return max(1, int(longest ** self._dice.random() ** 2))
