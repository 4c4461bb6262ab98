"""Short names of plugins for users."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from modular_tf.discovery.sources.search_log import Sighting

__all__ = ["file_stem", "plugin_names"]

_BY_DISTRIBUTION = frozenset((Source.ENTRY_POINT, Source.DISTRIBUTION))


def plugin_names(sightings: Sequence[Sighting]) -> list[str]:
    """Return a name for each sighting, in the same order, no two alike.

    A plugin that is the only one of its distribution has the distribution's name; all others have
    that of their file. Of equal names the first is kept, the next get "#2", "#3" and so on.
    """
    shared = Counter(
        seen.distribution
        for seen in sightings
        if seen.distribution is not None and seen.source in _BY_DISTRIBUTION
    )
    return list(_distinct(_plain_name(seen, shared) for seen in sightings))


def file_stem(path: str) -> str:
    """Return the name of a library's file without "lib" and from ".so" on."""
    base = path.rpartition("/")[2]  # as `os.path.basename`, in a fraction of the time
    at = base.rfind(".so")
    stem = base[:at] if at > 0 else base
    return stem.removeprefix("lib") or base


def _plain_name(seen: Sighting, shared: Counter[str]) -> str:
    name = seen.distribution
    if name is not None and shared[name] == 1 and seen.source in _BY_DISTRIBUTION:
        return name
    return file_stem(seen.path)


def _distinct(names: Iterable[str]) -> Iterable[str]:
    used: set[str] = set()
    for name in names:
        unique, number = name, 1
        while unique in used:
            number += 1
            unique = f"{name}#{number}"
        used.add(unique)
        yield unique
