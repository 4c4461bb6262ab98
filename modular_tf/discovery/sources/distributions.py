"""Source 7: libraries of installed distributions that export an init symbol.

This finds plugins that were not made for this package, such as those of tensorflow-io.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.sources.installed import (
    ExcessiveMetadataError,
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

    Recall = Callable[
        [str, Callable[[], Iterable[str]], Callable[[str], "bool | None"]], Iterable[str]
    ]

__all__ = [
    "OWN_DISTRIBUTION",
    "exports_init_symbol",
    "libraries_in_record",
    "read_distribution",
    "search_distributions",
    "search_unpacked_wheels",
]

OWN_DISTRIBUTION = "modular-tf"  # its plugins are source 9
# Names by which Python finds extension modules. One could export an init symbol as well, but
# none is known to, and asking them all would triple the time: their authors have entry points.
_MODULE_TAGS = (".cpython-", ".abi3.so", ".pypy")


def search_distributions(installation: Installation, log: SearchLog, recall: Recall) -> None:
    """Search the shared libraries that installed distributions list in their RECORD.

    Args:
        installation: The distributions.
        log: Takes what is found.
        recall: Returns the plugins of a distribution, by what it knows or by reading; takes what
            `read_distribution` takes.
    """
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
    """Search the unpacked wheels that a source has found: each is a distribution in its folder.

    Args:
        log: Names the folders, and takes what is found.
        recall: As of `search_distributions`.
    """
    while log.unpacked_folders:
        folder, source = log.unpacked_folders.pop(0)
        for distribution in installed_distributions((folder,)):
            found = _plugins_of(distribution, source, log, recall)
            log.sightings += found
            log.note_place(folder, source, distribution.label, exists=True, hits=len(found))


def libraries_in_record(record: bytes) -> Iterator[str]:
    """Yield the paths in a RECORD that may be plugins, in its order, unchanged."""
    # Imported where a RECORD is new: most starts know all of them.
    from modular_tf.discovery.record_rows import rows_that_name  # noqa: PLC0415

    for row in rows_that_name(record, b".so"):
        if is_plugin_file_name(row.path) and not any(tag in row.path for tag in _MODULE_TAGS):
            yield row.path


def read_distribution(
    record: str,  # noqa: ARG001  (for those who know something of it)
    libraries: Callable[[], Iterable[str]],
    is_plugin: Callable[[str], bool | None],
) -> list[str]:
    """Return the libraries of a distribution that are plugins, by reading all of them.

    Args:
        record: Its RECORD.
        libraries: Returns the libraries that RECORD lists and that may be plugins.
        is_plugin: Tells whether a library is one; None where it cannot be read.
    """
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
    """Return whether a library is a plugin; None for what cannot be read, which is none now.

    If a library that is no plugin is missing or damaged, that is not reported.
    """
    try:
        return exports_init_symbol(path)
    except ElfError:
        return None


def exports_init_symbol(path: str) -> bool:
    """Return whether a library exports an init symbol.

    Raises:
        ElfError: It cannot be read.
        ShortageError: Nothing can be said of it now.
    """
    # Imported where some distribution brings a library that may be one.
    from modular_tf.discovery.elf import ElfFile  # noqa: PLC0415
    from modular_tf.discovery.init_symbols import kinds_of  # noqa: PLC0415

    with ElfFile(path) as elf:
        return bool(kinds_of(elf))
