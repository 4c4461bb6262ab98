"""Short names of plugins for users."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from modular_tf.discovery.sources.installed import unpacked_folder

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from modular_tf.discovery.sources.search_log import Sighting

__all__ = ["file_stem", "plugin_names", "unused_name"]


def plugin_names(sightings: Sequence[Sighting]) -> list[str]:
    """Return a name for each sighting, in the same order, no two alike.

    A plugin that is the only one of its distribution has the distribution's name; all others have
    that of their file. Of equal names the first is kept, the next get "#2", "#3" and so on.
    """
    shared = Counter(map(_installation_of, sightings))
    names: dict[str, None] = {}
    for seen in sightings:
        names[unused_name(_plain_name(seen, shared), names)] = None
    return [*names]


def unused_name(name: str, *taken: Container[str]) -> str:
    """Return a name that is in none of several collections: this one, or one with a number."""
    number, unused = 1, name
    while any(unused in names for names in taken):
        number += 1
        unused = f"{name}#{number}"
    return unused


def file_stem(path: str) -> str:
    """Return the name of a library's file without "lib" and from ".so" on."""
    base = path.rpartition("/")[2]  # as `os.path.basename`, in a fraction of the time
    at = base.rfind(".so")
    stem = base[:at] if at > 0 else base
    return stem.removeprefix("lib") or base


def _installation_of(seen: Sighting) -> tuple[str | None, str | None]:
    """Return the distribution of a file, and the folder of its unpacked wheel."""
    return seen.distribution, seen.distribution and unpacked_folder(seen.path)


def _plain_name(seen: Sighting, shared: Counter[tuple[str | None, str | None]]) -> str:
    if seen.distribution is not None and shared[_installation_of(seen)] == 1:
        return seen.distribution
    return file_stem(seen.path)
