"""The stress campaigns, each a module of this package that runs in a process of its own.

A campaign is `python -m tests.stress.NAME ROUNDS SEED`. It prints one line per problem that it
found, a summary last, and exits with 0 where there was none and 1 where there was one.
"""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """One campaign."""

    name: str  # the module below `tests.stress`
    what: str
    rounds: int  # of a whole campaign
    sample: int  # rounds in each run of the tests


_ALL = (
    Part("filesystem_closes", "closes of filesystems and files against every call", 30, 1),
    Part("forks", "forks of a process whose threads use all of the package", 200, 4),
    Part("interrupts", "interrupts at any moment of all that a service does", 2000, 12),
    Part("refreshes", "refreshes of plugins whose files others change", 500, 4),
    Part("growth", "hours of mixed work while plugins come and go, in minutes", 1200, 2),
    Part("device_closes", "closes of devices and what is theirs against every call", 6480, 81),
)
PARTS: dict[str, Part] = {part.name: part for part in _ALL}
