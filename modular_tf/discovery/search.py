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
    from collections.abc import Container, Iterable, Mapping, Sequence

    from modular_tf.discovery.sources.distributions import Recall
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
        name = seen.distribution
        if name is None or shared[_installation_of(seen)] != 1:
            name = file_stem(seen.path)
        names[unused_name(name, names)] = None
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


PLUGIN_PATH_VARIABLE = "MODULAR_TF_PLUGIN_PATH"
TF_LIBRARY_PATH_VARIABLE = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH"
TENSORFLOW_DIRECTORY = "tensorflow-plugins"
"""The directory in site-packages where TensorFlow looks for device plugins."""

_BY_USER = (Source.ENVIRONMENT, Source.TF_ENVIRONMENT, Source.CONFIG)
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
    variables = paths.environment
    in_variable = variables.get(PLUGIN_PATH_VARIABLE, "").split(os.pathsep)
    of_tensorflow = [os.path.join(site, TENSORFLOW_DIRECTORY) for site in paths.site_directories]
    # paths by their sources, each with what names it
    named: dict[Source, list[tuple[str, str]]] = {
        Source.ARGUMENT: [(path, "argument") for path in paths.arguments],
        Source.ENVIRONMENT: [(path, PLUGIN_PATH_VARIABLE) for path in in_variable],
        # one file or directory, as for TensorFlow
        Source.TF_ENVIRONMENT: [
            (variables.get(TF_LIBRARY_PATH_VARIABLE, ""), TF_LIBRARY_PATH_VARIABLE)
        ],
        Source.CONFIG: [(path, paths.config_origin) for path in paths.config_directories],
        # by TensorFlow's rules, but in a defined order, and a broken file does not end it
        Source.TENSORFLOW_PLUGINS: [(path, path) for path in of_tensorflow],
        Source.BUNDLED: [
            (os.path.join(package, "plugins"), "modular_tf")
            for package in paths.package_directories
        ],
    }
    for source in Source:
        if source not in paths.sources:
            continue
        for path, origin in named.get(source, ()):
            if path and paths.privileged and source in _BY_USER:
                log.note_place(path, source, origin, exists=False, hits=0, ignored=_AS_PRIVILEGED)
            elif path:
                required = source is Source.ARGUMENT or source in _BY_USER
                log.visit(path, source, origin, required=required)
        if source is Source.ENTRY_POINT:
            search_entry_points(installation, log)
        elif source is Source.DISTRIBUTION:
            search_distributions(installation, log, recall)
        elif source is Source.USER_DIRECTORY:
            _search_user_directories(paths, log)
        search_unpacked_wheels(log, recall)
    candidates = _candidates(log.sightings, _same_by_record(log.sightings, installation))
    return FoundCandidates(candidates, tuple(log.problems), tuple(log.places))


def _search_user_directories(paths: SearchPaths, log: SearchLog) -> None:
    """Search the user's drop-in directory and, in a source checkout, `plugin_dirs`.

    A checkout that this package is run from is recognised by the project's name in the build file:
    the package may also lie in the checkout of another project, or beside a build file that
    somebody has left in site-packages.
    """
    source, path = Source.USER_DIRECTORY, paths.user_directory or _USUAL_DIRECTORY
    why_not = _AS_PRIVILEGED if paths.privileged else paths.why_no_user_directory
    if paths.user_directory is not None and not paths.privileged:
        log.visit(path, source, path)
    elif paths.user_directory is not None or paths.why_no_user_directory is not None:
        log.note_place(path, source, path, exists=False, hits=0, ignored=why_not)
    for variable in () if paths.privileged else ignored_variables(paths.environment):
        problem = Violation(ABSOLUTE_VARIABLE, str(variable), origin=variable.name)
        log.problems.append(problem)
    for package in paths.package_directories:
        root = os.path.dirname(package)
        try:
            with open(os.path.join(root, _BUILD_FILE), "rb") as file:
                text = file.read(_MOST_OF_A_BUILD_FILE)
        except OSError as error:
            raise_shortage(error)
            continue
        folder = os.path.join(root, _CHECKOUT_DIRECTORY)
        if _names_this_project(text) and os.path.isdir(folder):  # with a folder for each plugin
            below = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
            for directory in (folder, *filter(os.path.isdir, below)):
                log.visit(directory, source, directory)


# -- candidates -----------------------------------------------------------------------------------


def discover_named(path: str) -> FoundCandidates:
    """Find candidates at a path that the caller names; no other place is searched."""
    return discover(SearchPaths(arguments=(path,), sources=frozenset((Source.ARGUMENT,))))


def installed_among(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates that lie where installers put files: a distribution may bring them."""
    locations = [path for path in python_path() if any(installed_distributions((path,)))]
    paths = [*locations, *package_directories(), *installation_prefixes()]
    places = tuple({os.path.join(path, "") for path in (*paths, *map(real_path, paths))})
    return [
        found
        for found in candidates
        if found.path.startswith(places) or found.real_path.startswith(places)
    ]


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
    from modular_tf.discovery.trust.record import rows_that_name  # noqa: PLC0415  (hardly ever)

    names = {wheel.name for wheel in wheels}
    known = [*wheels, *(found for found in installation.distributions if found.name in names)]
    firsts: dict[tuple[str, RecordRow], tuple[str, int]] = {}  # with the owner
    same = {}
    for seen in sightings:
        for found in known:
            if found.name != seen.distribution or not seen.path.startswith(f"{found.location}/"):
                continue
            path = os.path.relpath(seen.path, found.location)
            try:
                rows = rows_that_name(found.read("RECORD"), os.fsencode(path))
                row = next((row for row in rows if row.path == path), None)
                owner = os.lstat(found.location).st_uid  # who made the folder, or the link to it
            except (OSError, ExcessiveMetadataError) as error:
                raise_shortage(error)
                continue
            if row is not None and row.hash.startswith(b"sha") and os.path.exists(seen.path):
                this = seen.path, owner
                first = firsts.setdefault((found.name, row), this)
                if first[1] not in {0, os.geteuid(), owner}:
                    first = firsts[found.name, row] = this
                same[seen.path] = first[0]
    return same


def _candidates(sightings: Iterable[Sighting], same: Mapping[str, str]) -> tuple[Candidate, ...]:
    """Return one candidate for each file, from its first sighting; the later ones are its twins."""
    groups: dict[tuple[int, int], list[Sighting]] = {}
    links: set[str] = set()
    for seen in sightings:
        path = same.get(seen.path, seen.path)
        try:
            status = os.lstat(path)
        except (OSError, ValueError):
            continue  # it is gone
        if stat.S_ISLNK(status.st_mode):
            links.add(path)
            with suppress(OSError):  # a link that leads nowhere is a file of its own
                status = os.stat(path)
        groups.setdefault((status.st_dev, status.st_ino), []).append(seen)
    names = plugin_names([group[0] for group in groups.values()])
    real_folder = cache(real_path)  # many files lie in one folder
    found = []
    for (identity, group), name in zip(groups.items(), names, strict=True):
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
        found.append(Candidate(path, real, source, origin, distribution, identity, name, twins))
    return tuple(found)
