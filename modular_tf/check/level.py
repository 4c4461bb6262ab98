"""How much of a plugin a check asks for; what a level means is public."""

from __future__ import annotations

from enum import IntEnum


class Level(IntEnum):
    """One step of the ladder; each includes those below."""

    LOADS = 1
    """The library can be mapped, and its entry point called."""
    REGISTERS = 2
    """What the entry point leaves is what the header demands."""
    WORKS = 3
    """Each operation does what it is for, and fails with the right code where it must."""
    ROBUST = 4
    """Errors, limits, threads, memory: nothing leaks, nothing is lost."""
    HARD = 5
    """Random sequences against a model, faults, load."""
