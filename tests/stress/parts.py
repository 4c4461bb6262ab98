"""The stress campaigns, each a module of this package that runs in a process of its own.

A campaign is `python -m tests.stress.NAME ROUNDS SEED`. It prints one line per problem that it
found, a summary last, and exits with 0 where there was none and 1 where there was one.
"""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """One campaign.

    Attributes:
        name: The module below `tests.stress`.
        what: What is stressed, in a few words.
        rounds: How many rounds a whole campaign has.
        sample: How many rounds the tests run of it.
    """

    name: str
    what: str
    rounds: int
    sample: int


_ALL = (
    Part(
        "interrupts",
        "interrupts at any moment of all that a service does",
        rounds=2000,
        sample=25,
    ),
    Part(
        "refreshes",
        "refreshes of plugins whose files others change",
        rounds=500,
        sample=8,
    ),
)
PARTS: dict[str, Part] = {part.name: part for part in _ALL}
