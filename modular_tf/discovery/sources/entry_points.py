"""Source 5: entry points that name a file or a folder inside an installed package.

The value is `package` or `package:relative/path`; `package` may have dots. It is resolved
without importing anything of the package: its top level is located, the rest is a path.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.file_identity import real_path
from modular_tf.discovery.sources.entry_point_file import entries_of_group
from modular_tf.discovery.sources.installed import ExcessiveMetadataError
from modular_tf.rules import Violation
from modular_tf.rules import loading as rules
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.discovery.sources.installed import Installation, InstalledDistribution
    from modular_tf.discovery.sources.search_log import SearchLog
    from modular_tf.rules import Rule

__all__ = ["GROUP", "search_entry_points"]

GROUP = "modular_tf.plugins"
# Not compiled here: hardly any distribution has such an entry point.
_VALUE = r"(?P<package>\w+(?:\.\w+)*)\s*(?::\s*(?P<path>[^\[]*?)\s*)?(?:\[.*\])?\s*"


class _UnusableEntryPointError(Exception):
    """An entry point breaks a rule."""

    def __init__(self, broken: Rule, message: str) -> None:
        super().__init__(message)
        self.broken = broken
        self.message = message


def search_entry_points(installation: Installation, log: SearchLog) -> None:
    """Search what each entry point of the group names; a bad one becomes a problem."""
    for distribution in installation.distributions:
        try:
            entries = _entries(installation.entry_points(distribution))
        except ExcessiveMetadataError as error:
            _report(distribution, "entry_points.txt", rules.SEARCH_BOUNDED, str(error), log)
            continue
        except Exception as error:  # noqa: BLE001  (metadata of other packages: anything may come)
            raise_shortage(error)
            _report(distribution, "entry_points.txt", rules.RECORD_READABLE, str(error), log)
            continue
        for name, value in entries:
            _look_at_entry(distribution, name, value, log)


def _entries(content: bytes) -> list[tuple[str, str]]:
    """Return names and values of the group's entry points, in the order of the file."""
    return entries_of_group(content, GROUP) if GROUP.encode() in content else []


def _look_at_entry(
    distribution: InstalledDistribution, name: str, value: str, log: SearchLog
) -> None:
    origin = f"{distribution.label}: {name}"
    what = f"entry point {name!r} = {value!r}"
    try:
        path, root = _resolve(distribution, value)
    except _UnusableEntryPointError as error:
        _report(distribution, what, error.broken, error.message, log)
        log.note_place(value, Source.ENTRY_POINT, origin, exists=False, hits=0)
        return

    def stays_inside(file: str) -> bool:
        target = real_path(file)
        if any(target.startswith(f"{place}/") for place in _real_places(distribution, root)):
            return True
        message = f"a link leads out of the package, from {file} to {target}"
        _report(distribution, what, rules.ENTRY_POINT_STAYS_INSIDE, message, log)
        return False

    log.look_at(path, Source.ENTRY_POINT, origin, distribution=distribution.name, keep=stays_inside)


def _report(
    distribution: InstalledDistribution, what: str, broken: Rule, message: str, log: SearchLog
) -> None:
    text = f"{what} of distribution {distribution.label}: {message}"
    log.problems.append(
        Violation(broken, text, path=distribution.metadata_directory, origin=distribution.label)
    )


def _real_places(distribution: InstalledDistribution, root: str) -> tuple[str, str]:
    """Return the real places of a package, links resolved.

    Some installers put links in the place of all files of a distribution, also of its metadata.
    """
    metadata = os.path.realpath(os.path.join(distribution.metadata_directory, "METADATA"))
    location = os.path.dirname(os.path.dirname(metadata))
    return os.path.realpath(root), os.path.join(location, os.path.basename(root))


def _resolve(distribution: InstalledDistribution, value: str) -> tuple[str, str]:
    """Return the path that an entry point names, and the directory of its top-level package."""
    match = re.fullmatch(_VALUE, value.strip())
    if match is None:
        raise _UnusableEntryPointError(
            rules.ENTRY_POINT_RESOLVES, "it is not of the form 'package:relative/path'"
        )
    top, *parts = match["package"].split(".")
    relative = _inside(match["path"] or "")
    tried = []
    for root in _roots(distribution, top):
        path = os.path.normpath(os.path.join(root, *parts, relative))
        if os.path.lexists(path):
            return path, root
        tried.append(path)
    places = " or ".join(tried) if tried else f"package {top!r}, which is not installed"
    raise _UnusableEntryPointError(rules.ENTRY_POINT_RESOLVES, f"there is no {places}")


def _inside(relative: str) -> str:
    path = os.path.normpath(relative) if relative else ""
    if os.path.isabs(path) or path == ".." or path.startswith("../") or "\0" in path:
        raise _UnusableEntryPointError(
            rules.ENTRY_POINT_STAYS_INSIDE, f"{relative!r} leads out of the package"
        )
    return path


def _roots(distribution: InstalledDistribution, top: str) -> Iterator[str]:
    """Yield the directories that package `top` may consist of, the distribution's own first."""
    own = os.path.join(distribution.location, top)
    if os.path.isdir(own):
        yield own
    yield from (root for root in _located(top) if root != own)


def _located(top: str) -> list[str]:
    """Yield the places of a top-level package, from the import system; nothing is imported."""
    from importlib.util import find_spec  # noqa: PLC0415

    try:
        spec = find_spec(top)
    except Exception as error:  # noqa: BLE001  (finders of editable installs may raise anything)
        raise_shortage(error)
        return []
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return list(spec.submodule_search_locations)
    return [os.path.dirname(spec.origin)] if spec.has_location and spec.origin else []
