"""Sources 5 and 7: plugins in installed distributions; nothing of a package is imported.

An entry point names a file or a folder inside a package: `package` or `package:relative/path`,
where `package` may have dots. Its top level is located, the rest is a path. Libraries that a RECORD
lists and that export an init symbol are plugins that were not made for this package, such as those
of tensorflow-io.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.file_identity import real_path
from modular_tf.discovery.sources.installed import (
    ExcessiveMetadataError,
    entries_of_group,
    installed_distributions,
)
from modular_tf.discovery.sources.search_log import (
    MOST_LIBRARIES,
    Sighting,
    is_plugin_file_name,
)
from modular_tf.errors import ElfError
from modular_tf.rules import Violation
from modular_tf.rules import loading as rules
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from modular_tf.discovery.sources.installed import Installation, InstalledDistribution
    from modular_tf.discovery.sources.search_log import SearchLog
    from modular_tf.rules import Rule

    Recall = Callable[
        [str, Callable[[], Iterable[str]], Callable[[str], "bool | None"]], Iterable[str]
    ]

OWN_DISTRIBUTION = "modular-tf"  # its plugins are source 9
# Names by which Python finds extension modules. One could export an init symbol as well, but
# none is known to, and asking them all would triple the time: their authors have entry points.
_MODULE_TAGS = (".cpython-", ".abi3.so", ".pypy")
_GROUP = "modular_tf.plugins"
# Not compiled here: hardly any distribution has such an entry point.
_VALUE = r"(?P<package>\w+(?:\.\w+)*)\s*(?::\s*(?P<path>[^\[]*?)\s*)?(?:\[.*\])?\s*"
_FOREIGN = (rules.WORD_SIZE, rules.BYTE_ORDER, rules.MACHINE)


def search_distributions(installation: Installation, log: SearchLog, recall: Recall) -> None:
    """Search the shared libraries that installed distributions list in their RECORD."""
    hits: Counter[str] = Counter()
    for distribution in installation.distributions:
        if distribution.name != OWN_DISTRIBUTION:
            found = _plugins_of(distribution, Source.DISTRIBUTION, log, recall)
            hits[distribution.location] += len(found)
            log.sightings += found
    for location in installation.python_path:
        log.note_place(
            location,
            Source.DISTRIBUTION,
            "installed distributions",
            exists=os.path.isdir(location),
            hits=hits[location],
        )


def search_unpacked_wheels(log: SearchLog, recall: Recall) -> None:
    """Search the unpacked wheels that a source has found: each is a distribution in its folder."""
    while log.unpacked_folders:
        folder, source = log.unpacked_folders.pop(0)
        for distribution in installed_distributions((folder,)):
            found = _plugins_of(distribution, source, log, recall)
            log.sightings += found
            log.note_place(folder, source, distribution.label, exists=True, hits=len(found))


def libraries_in_record(record: bytes) -> Iterator[str]:
    """Yield the paths in a RECORD that may be plugins, in its order, unchanged."""
    # Imported where a RECORD is new: most starts know all of them.
    from modular_tf.discovery.trust.record import rows_that_name  # noqa: PLC0415

    for row in rows_that_name(record, b".so"):
        if is_plugin_file_name(row.path) and not any(tag in row.path for tag in _MODULE_TAGS):
            yield row.path


def read_distribution(
    record: str,  # noqa: ARG001  (other functions of this type use it)
    libraries: Callable[[], Iterable[str]],
    is_plugin: Callable[[str], bool | None],
) -> list[str]:
    """Return the libraries of a distribution that are plugins, by reading all of them."""
    return [path for path in libraries() if is_plugin(path)]


def _plugins_of(
    distribution: InstalledDistribution, source: Source, log: SearchLog, recall: Recall
) -> list[Sighting]:
    def libraries() -> list[str]:
        listed = list(islice(libraries_in_record(distribution.read("RECORD")), MOST_LIBRARIES + 1))
        if len(listed) > MOST_LIBRARIES:
            raise ExcessiveMetadataError(f"lists more than {MOST_LIBRARIES} libraries")
        return [os.path.join(distribution.location, path) for path in listed]

    try:
        paths = recall(distribution.path_of("RECORD"), libraries, _is_plugin)
    except (OSError, ExcessiveMetadataError) as error:
        raise_shortage(error)
        broken, what = rules.SEARCH_BOUNDED, str(error)
        if isinstance(error, OSError):
            broken, what = rules.RECORD_READABLE, f"cannot be read: {error.strerror}"
        message = f"RECORD of distribution {distribution.label} {what}"
        path = distribution.metadata_directory
        log.problems.append(Violation(broken, message, path=path, origin=distribution.label))
        return []
    return [
        Sighting(os.path.normpath(path), source, distribution.label, distribution.name)
        for path in paths
    ]


def _is_plugin(path: str) -> bool | None:
    """Return whether a library is a plugin; None if it cannot be read, and so is none now.

    If a library that is no plugin is missing or damaged, or of another word size, that is not
    reported.
    """
    try:
        return exports_init_symbol(path)
    except ElfError as error:
        return False if error.rule in _FOREIGN else None


def exports_init_symbol(path: str) -> bool:
    """Return whether a library exports an init symbol."""
    # Imported where some distribution brings a library that may be one.
    from modular_tf.discovery.elf import ElfFile  # noqa: PLC0415
    from modular_tf.discovery.probe import init_symbols_of  # noqa: PLC0415

    with ElfFile(path) as elf:
        return bool(init_symbols_of(elf))


# -- entry points ---------------------------------------------------------------------------------


class _UnusableEntryPointError(Exception):
    """An entry point breaks a rule; its arguments are the rule and the message."""


def search_entry_points(installation: Installation, log: SearchLog) -> None:
    """Search what each entry point of the group names; a bad one becomes a problem."""
    for distribution in installation.distributions:
        try:
            content = installation.entry_points(distribution)
            entries = entries_of_group(content, _GROUP) if _GROUP.encode() in content else []
        except Exception as error:  # noqa: BLE001  (metadata of other packages: anything may come)
            raise_shortage(error)
            is_long = isinstance(error, ExcessiveMetadataError)
            broken = rules.SEARCH_BOUNDED if is_long else rules.RECORD_READABLE
            _report(distribution, "entry_points.txt", broken, str(error), log)
            continue
        for name, value in entries:
            _visit_entry(distribution, name, value, log)


def _visit_entry(
    distribution: InstalledDistribution, name: str, value: str, log: SearchLog
) -> None:
    origin = f"{distribution.label}: {name}"
    what = f"entry point {name!r} = {value!r}"
    try:
        path, root = _resolve(distribution, value)
    except _UnusableEntryPointError as error:
        _report(distribution, what, error.args[0], error.args[1], log)
        log.note_place(value, Source.ENTRY_POINT, origin, exists=False, hits=0)
        return

    def stays_inside(file: str) -> bool:
        # Some installers replace all files of a distribution, also of its metadata, by links.
        metadata = os.path.realpath(os.path.join(distribution.metadata_directory, "METADATA"))
        location = os.path.dirname(os.path.dirname(metadata))
        places = os.path.realpath(root), os.path.join(location, os.path.basename(root))
        target = real_path(file)
        if any(target.startswith(f"{place}/") for place in places):
            return True
        message = f"a link leads out of the package, from {file} to {target}"
        _report(distribution, what, rules.ENTRY_POINT_STAYS_INSIDE, message, log)
        return False

    log.visit(path, Source.ENTRY_POINT, origin, distribution=distribution.name, keep=stays_inside)


def _report(
    distribution: InstalledDistribution, what: str, broken: Rule, message: str, log: SearchLog
) -> None:
    text = f"{what} of distribution {distribution.label}: {message}"
    log.problems.append(
        Violation(broken, text, path=distribution.metadata_directory, origin=distribution.label)
    )


def _resolve(distribution: InstalledDistribution, value: str) -> tuple[str, str]:
    """Return the path that an entry point names, and the directory of its top-level package."""
    match = re.fullmatch(_VALUE, value.strip())
    if match is None:
        message = "it is not of the form 'package:relative/path'"
        raise _UnusableEntryPointError(rules.ENTRY_POINT_RESOLVES, message)
    top, *parts = match["package"].split(".")
    named = match["path"] or ""
    relative = os.path.normpath(named) if named else ""
    leaves = os.path.isabs(relative) or relative == ".." or relative.startswith("../")
    if leaves or "\0" in relative:
        message = f"{named!r} leads out of the package"
        raise _UnusableEntryPointError(rules.ENTRY_POINT_STAYS_INSIDE, message)
    tried = []
    for root in _roots(distribution, top):
        path = os.path.normpath(os.path.join(root, *parts, relative))
        if os.path.lexists(path):
            return path, root
        tried.append(path)
    places = " or ".join(tried) if tried else f"package {top!r}, which is not installed"
    raise _UnusableEntryPointError(rules.ENTRY_POINT_RESOLVES, f"there is no {places}")


def _roots(distribution: InstalledDistribution, top: str) -> Iterator[str]:
    """Yield the directories that package `top` may consist of, the distribution's own first."""
    own = os.path.join(distribution.location, top)
    if os.path.isdir(own):
        yield own
    from importlib.util import find_spec  # noqa: PLC0415

    try:
        spec = find_spec(top)
    except Exception as error:  # noqa: BLE001  (finders of editable installs may raise anything)
        raise_shortage(error)
        return
    if spec is not None and spec.submodule_search_locations is not None:
        yield from (root for root in spec.submodule_search_locations if root != own)
    elif spec is not None and spec.has_location and spec.origin:
        yield os.path.dirname(spec.origin)
