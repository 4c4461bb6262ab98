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
        "device_closes",
        "closes of devices and what is theirs against every call, each pair in turn",
        rounds=6480,
        sample=324,
    ),
)
PARTS: dict[str, Part] = {part.name: part for part in _ALL}
