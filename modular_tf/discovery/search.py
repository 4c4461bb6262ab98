"""Searches all sources in order of precedence and returns candidates."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.candidate import Candidate, Source, Twin
from modular_tf.discovery.file_identity import real_path
from modular_tf.discovery.sources.distributions import (
    read_distribution,
    search_distributions,
    search_entry_points,
    search_unpacked_wheels,
)
from modular_tf.discovery.sources.installed import (
    ExcessiveMetadataError,
    Installation,
    installed_distributions,
    unpacked_folder,
    unpacked_wheel,
)
from modular_tf.discovery.sources.search_log import SearchedPlace, SearchLog, Sighting
from modular_tf.discovery.sources.search_paths import (
    SearchPaths,
    ignored_variables,
    installation_prefixes,
    package_directories,
    python_path,
)
from modular_tf.rules import Violation
from modular_tf.rules.shortage import raise_shortage
from modular_tf.rules.trust import ABSOLUTE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from modular_tf.discovery.sources.distributions import Recall
    from modular_tf.discovery.sources.installed import InstalledDistribution
    from modular_tf.discovery.sources.search_log import Sighting
    from modular_tf.discovery.trust.record import RecordRow


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


PLUGIN_PATH_VARIABLE = "MODULAR_TF_PLUGIN_PATH"
TF_LIBRARY_PATH_VARIABLE = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH"
TENSORFLOW_DIRECTORY = "tensorflow-plugins"
"""The directory in site-packages where TensorFlow looks for device plugins."""

_AS_PRIVILEGED = "the process has rights that its user lacks (setuid or setgid)"
_USUAL_DIRECTORY = "~/.local/share/modular_tf/plugins"
_CHECKOUT_DIRECTORY = "plugin_dirs"
_BUILD_FILE = "pyproject.toml"
_names_this_project = re.compile(rb'^name = "modular_tf"\s*$', re.MULTILINE).search
_MOST_OF_A_BUILD_FILE = 1 << 20


class FoundCandidates(NamedTuple):
    """The result of one discovery."""

    candidates: tuple[Candidate, ...]  # that may be plugins, in order of precedence, each once
    # of the search; candidates' own problems come with their probes
    problems: tuple[Violation, ...]
    # every place that was searched, found or not, in order of precedence
    searched: tuple[SearchedPlace, ...]


def discover(
    paths: SearchPaths,
    installation: Installation | None = None,
    recall: Recall = read_distribution,
) -> FoundCandidates:
    """Find candidates in all places of `paths`; no code of a plugin is run. [any thread]

    A place or a file that is broken becomes a problem and never stops the search.

    `installation` is what was read of the installed distributions for this search already. `recall`
    returns the plugins among the libraries of a distribution, by what it knows, or by the two
    functions that it is given. Raises `ShortageError`.
    """
    log = SearchLog()
    if installation is None or installation.python_path != paths.python_path:
        installation = Installation(paths.python_path)
    installed = installation
    searches: dict[Source, Callable[[], None]] = {
        Source.ARGUMENT: lambda: _search_arguments(paths, log),
        Source.ENVIRONMENT: lambda: _search_environment(paths, log),
        Source.TF_ENVIRONMENT: lambda: _search_tf_environment(paths, log),
        Source.CONFIG: lambda: _search_config(paths, log),
        Source.ENTRY_POINT: lambda: search_entry_points(installed, log),
        Source.TENSORFLOW_PLUGINS: lambda: _search_tensorflow_plugins(paths, log),
        Source.DISTRIBUTION: lambda: search_distributions(installed, log, recall),
        Source.USER_DIRECTORY: lambda: _search_user_directories(paths, log),
        Source.BUNDLED: lambda: _search_bundled(paths, log),
    }
    for source, search in searches.items():
        if source in paths.sources:
            search()
            search_unpacked_wheels(log, recall)
    candidates = _candidates(log.sightings, _same_by_record(log.sightings, installed))
    return FoundCandidates(candidates, tuple(log.problems), tuple(log.places))


# -- places of files ------------------------------------------------------------------------------


def _search_arguments(paths: SearchPaths, log: SearchLog) -> None:
    for path in paths.arguments:
        log.look_at(path, Source.ARGUMENT, "argument", required=True)


def _search_environment(paths: SearchPaths, log: SearchLog) -> None:
    value = paths.environment.get(PLUGIN_PATH_VARIABLE, "")
    for path in filter(None, value.split(os.pathsep)):
        _look_unless_privileged(path, Source.ENVIRONMENT, PLUGIN_PATH_VARIABLE, paths, log)


def _search_tf_environment(paths: SearchPaths, log: SearchLog) -> None:
    """Search one file or directory, as TensorFlow does."""
    path, origin = paths.environment.get(TF_LIBRARY_PATH_VARIABLE), TF_LIBRARY_PATH_VARIABLE
    if path:
        _look_unless_privileged(path, Source.TF_ENVIRONMENT, origin, paths, log)


def _search_config(paths: SearchPaths, log: SearchLog) -> None:
    for path in paths.config_directories:
        _look_unless_privileged(path, Source.CONFIG, paths.config_origin, paths, log)


def _look_unless_privileged(
    path: str, source: Source, origin: str, paths: SearchPaths, log: SearchLog
) -> None:
    if paths.privileged:
        log.note_place(path, source, origin, exists=False, hits=0, ignored=_AS_PRIVILEGED)
    else:
        log.look_at(path, source, origin, required=True)


def _search_tensorflow_plugins(paths: SearchPaths, log: SearchLog) -> None:
    """Search by TensorFlow's rules, but in a defined order; a broken file does not end it."""
    for site in paths.site_directories:
        path = os.path.join(site, TENSORFLOW_DIRECTORY)
        log.look_at(path, Source.TENSORFLOW_PLUGINS, path)


def _search_user_directories(paths: SearchPaths, log: SearchLog) -> None:
    """Search the user's drop-in directory and, in a source checkout, `plugin_dirs`."""
    source, path = Source.USER_DIRECTORY, paths.user_directory or _USUAL_DIRECTORY
    why_not = _AS_PRIVILEGED if paths.privileged else paths.why_no_user_directory
    if paths.user_directory is not None and not paths.privileged:
        log.look_at(path, source, path)
    elif paths.user_directory is not None or paths.why_no_user_directory is not None:
        log.note_place(path, source, path, exists=False, hits=0, ignored=why_not)
    if not paths.privileged:
        for variable in ignored_variables(paths.environment):
            problem = Violation(ABSOLUTE_VARIABLE, str(variable), origin=variable.name)
            log.problems.append(problem)
    for root in _checkouts(paths):
        for directory in _with_subdirectories(os.path.join(root, _CHECKOUT_DIRECTORY)):
            log.look_at(directory, source, directory)


def _checkouts(paths: SearchPaths) -> Iterator[str]:
    """Yield source checkouts that this package is run from.

    They are recognised by the project's name in the build file: the package may also lie in the
    checkout of another project, or beside a build file that somebody has left in site-packages.
    """
    for package in paths.package_directories:
        root = os.path.dirname(package)
        try:
            with open(os.path.join(root, _BUILD_FILE), "rb") as file:
                text = file.read(_MOST_OF_A_BUILD_FILE)
        except OSError as error:
            raise_shortage(error)
            continue
        if _names_this_project(text):
            yield root


def _with_subdirectories(path: str) -> Iterator[str]:
    """Yield a directory and those in it: a checkout keeps one folder for each plugin."""
    if not os.path.isdir(path):
        return
    yield path
    for name in sorted(os.listdir(path)):
        below = os.path.join(path, name)
        if os.path.isdir(below):
            yield below


def _search_bundled(paths: SearchPaths, log: SearchLog) -> None:
    for package in paths.package_directories:
        log.look_at(os.path.join(package, "plugins"), Source.BUNDLED, "modular_tf")


# -- candidates -----------------------------------------------------------------------------------


def discover_named(path: str) -> FoundCandidates:
    """Find candidates at a path that the caller names; no other place is searched."""
    return discover(SearchPaths(arguments=(path,), sources=frozenset((Source.ARGUMENT,))))


def installed_among(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates that lie where installers put files: a distribution may bring them."""
    places = _installed_places()
    return [
        found
        for found in candidates
        if found.path.startswith(places) or found.real_path.startswith(places)
    ]


def _installed_places() -> tuple[str, ...]:
    """Return the directories that installers put files into, each with a slash at the end."""
    locations = [path for path in python_path() if any(installed_distributions((path,)))]
    places = [*locations, *package_directories(), *installation_prefixes()]
    return tuple({os.path.join(path, "") for path in (*places, *map(real_path, places))})


def _same_by_record(sightings: Sequence[Sighting], installation: Installation) -> dict[str, str]:
    """Return the libraries with the bytes of an earlier sighting, each with the path of that one.

    A wheel may be unpacked into several directories, and be installed as well. The RECORDs show
    that its libraries are the same. A RECORD may claim the hash of any library, so a wheel that
    another user has unpacked counts only for files of the same owner.
    """
    paths = [seen.path for seen in sightings if seen.distribution is not None]
    wheels = set(filter(None, map(unpacked_wheel, paths)))
    if not wheels:
        return {}
    names = {wheel.name for wheel in wheels}
    known = [*wheels, *(found for found in installation.distributions if found.name in names)]
    firsts: dict[tuple[str, RecordRow], tuple[str, int]] = {}  # with the owner
    same = {}
    for seen in sightings:
        for found in known:
            if found.name == seen.distribution and seen.path.startswith(f"{found.location}/"):
                row = _row_of(os.path.relpath(seen.path, found.location), found)
                if row is not None and row.hash.startswith(b"sha") and os.path.exists(seen.path):
                    this = seen.path, _owner_of(found.location)
                    first = firsts.setdefault((found.name, row), this)
                    if first[1] not in {0, os.geteuid(), this[1]}:
                        first = firsts[found.name, row] = this
                    same[seen.path] = first[0]
    return same


def _owner_of(folder: str) -> int:
    """Return the number of the user who made a folder, or the link to it; -1 where it is gone."""
    try:
        return os.lstat(folder).st_uid
    except OSError:
        return -1


def _row_of(path: str, distribution: InstalledDistribution) -> RecordRow | None:
    from modular_tf.discovery.trust.record import rows_that_name  # noqa: PLC0415  (hardly ever)

    try:
        rows = rows_that_name(distribution.read("RECORD"), os.fsencode(path))
        return next((row for row in rows if row.path == path), None)
    except (OSError, ExcessiveMetadataError) as error:
        raise_shortage(error)
        return None


def _candidates(sightings: Iterable[Sighting], same: Mapping[str, str]) -> tuple[Candidate, ...]:
    """Return one candidate for each file, from its first sighting; the later ones are its twins.

    `same` has files that are another one by their bytes, with the path of that one.
    """
    groups: dict[tuple[int, int], list[Sighting]] = {}
    links: set[str] = set()
    for seen in sightings:
        identity = _identity(same.get(seen.path, seen.path), links)
        if identity is not None:
            groups.setdefault(identity, []).append(seen)
    names = plugin_names([group[0] for group in groups.values()])
    real_folder = cache(real_path)  # many files lie in one folder
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
    path, source, origin, distribution = group[0]
    folder, file = os.path.split(path)
    if path in links or file in {"", ".", ".."}:
        real = real_path(path)
    else:
        real = os.path.join(real_folder(folder), file)
    twins: tuple[Twin, ...] = ()
    if len(group) > 1:
        distribution = next((seen.distribution for seen in group if seen.distribution), None)
        twins = tuple([Twin(seen.path, seen.source, seen.origin) for seen in group[1:]])
    return Candidate(path, real, source, origin, distribution, identity, name, twins)


def _identity(path: str, links: set[str]) -> tuple[int, int] | None:
    """Return device and inode of a file, or of a link that leads nowhere; None if it is gone.

    `links` gets the path if it is a link.
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
