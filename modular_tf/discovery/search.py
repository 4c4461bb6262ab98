"""Discovery: asking all sources, in order of precedence, and making candidates of what they saw."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import Candidate, Source, Twin
from modular_tf.discovery.naming import plugin_names
from modular_tf.discovery.sources.distributions import search_distributions
from modular_tf.discovery.sources.entry_points import search_entry_points
from modular_tf.discovery.sources.installed import installed_distributions
from modular_tf.discovery.sources.named_paths import (
    search_arguments,
    search_config,
    search_environment,
    search_tf_environment,
)
from modular_tf.discovery.sources.own_directories import search_bundled, search_user_directories
from modular_tf.discovery.sources.search_log import SearchedPlace, SearchLog, Sighting
from modular_tf.discovery.sources.tensorflow_plugins import search_tensorflow_plugins
from modular_tf.rules import Violation
from modular_tf.rules.shortage import SHORTAGE, ShortageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from modular_tf.discovery.sources.search_paths import SearchPaths

__all__ = ["Discovery", "discover"]


@dataclass(frozen=True, slots=True)
class Discovery:
    """What one discovery found.

    Attributes:
        candidates: The files that may be plugins, in order of precedence, each once.
        problems: What went wrong while searching; the candidates' own problems come later,
            with their probes.
        searched: Every place that was looked at, found or not, in order of precedence.
    """

    candidates: tuple[Candidate, ...]
    problems: tuple[Violation, ...]
    searched: tuple[SearchedPlace, ...]


def discover(paths: SearchPaths) -> Discovery:
    """Find candidates in all places of `paths`; no code of a plugin is run. [any thread].

    A place or a file that is broken becomes a problem and never stops the search.
    """
    log = SearchLog()
    installed = cache(lambda: tuple(installed_distributions(paths.python_path)))
    searches: dict[Source, Callable[[], None]] = {
        Source.ARGUMENT: lambda: search_arguments(paths, log),
        Source.ENVIRONMENT: lambda: search_environment(paths, log),
        Source.TF_ENVIRONMENT: lambda: search_tf_environment(paths, log),
        Source.CONFIG: lambda: search_config(paths, log),
        Source.ENTRY_POINT: lambda: search_entry_points(installed(), log),
        Source.TENSORFLOW_PLUGINS: lambda: search_tensorflow_plugins(paths, log),
        Source.DISTRIBUTION: lambda: search_distributions(installed(), paths.python_path, log),
        Source.USER_DIRECTORY: lambda: search_user_directories(paths, log),
        Source.BUNDLED: lambda: search_bundled(paths, log),
    }
    for source, search in searches.items():
        if source in paths.sources:
            try:
                search()
            except ShortageError as error:  # the next search begins anew
                message = f"plugins of source {source.value!r} cannot be searched now"
                problem = Violation(SHORTAGE, f"{message}: {error.message}", path=error.filename)
                log.problems.append(problem)
    return Discovery(_candidates(log.sightings), tuple(log.problems), tuple(log.places))


def _candidates(sightings: Iterable[Sighting]) -> tuple[Candidate, ...]:
    """Join the sightings of each file: the first is the candidate, the later are its twins."""
    groups: dict[tuple[int, int], list[Sighting]] = {}
    links: set[str] = set()
    for seen in sightings:
        identity = _identity(seen.path, links)
        if identity is not None:
            groups.setdefault(identity, []).append(seen)
    names = plugin_names([group[0] for group in groups.values()])
    real_folder = cache(os.path.realpath)  # the folders of many files are looked at once
    return tuple(
        _candidate(identity, group, name, links, real_folder)
        for (identity, group), name in zip(groups.items(), names, strict=True)
    )


def _candidate(
    identity: tuple[int, int],
    group: list[Sighting],
    name: str,
    links: set[str],
    real_folder: Callable[[str], str],
) -> Candidate:
    first, *rest = group
    folder, file = os.path.split(first.path)
    is_plain = first.path not in links and file not in {"", ".", ".."}
    return Candidate(
        path=first.path,
        real_path=os.path.join(real_folder(folder), file)
        if is_plain
        else os.path.realpath(first.path),
        source=first.source,
        origin=first.origin,
        distribution=next((seen.distribution for seen in group if seen.distribution), None),
        identity=identity,
        name=name,
        twins=tuple(Twin(seen.path, seen.source, seen.origin) for seen in rest),
    )


def _identity(path: str, links: set[str]) -> tuple[int, int] | None:
    """Return device and inode, of the link itself where it leads nowhere; None if it is gone.

    Args:
        path: The file.
        links: Gets the path if it is a link.
    """
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    if stat.S_ISLNK(found.st_mode):
        links.add(path)
        with suppress(OSError):
            found = os.stat(path)
    return found.st_dev, found.st_ino
