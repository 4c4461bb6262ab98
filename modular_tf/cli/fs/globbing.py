"""Patterns on the command line: which places a URI with `*`, `?` or `[` stands for."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from modular_tf.cli.fs.place import Place
from modular_tf.errors import NotFoundError
from modular_tf.filesystem.child_names import IncompleteListingWarning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from modular_tf.cli.failures import Failures
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.service.service import PluginService


def matching_paths(filesystem: Filesystem, pattern: str, failures: Failures) -> list[str]:
    """Return the URIs that match a pattern; keys that match and that no path leads to are failures.

    [main thread, while no other one lists]
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IncompleteListingWarning)
        matches = filesystem.get_matching_paths(pattern)
    for warning in caught:
        if issubclass(warning.category, IncompleteListingWarning):
            failures.add(str(warning.message), pattern)
        else:  # of a client
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return matches


def expand(service: PluginService, uri: str, failures: Failures) -> list[Place]:
    """Return the places that a URI names: itself, or what matches it as a pattern.

    A name that exists as it is written is never a pattern. Within one level of a path, `*` and `?`
    match any characters or one, `[...]` matches a set, and a backslash escapes.

    Raises:
        InvalidArgumentError: A wildcard stands before the path.
        NotFoundError: Nothing matches.
        UnimplementedError: No plugin serves the scheme.
    """
    from modular_tf.filesystem.glob import has_magic, require_plain_host  # noqa: PLC0415  (help needs no plugins)

    place = Place.of(service, uri)
    if not has_magic(uri):
        return [place]
    filesystem = place.filesystem
    require_plain_host(filesystem, uri)
    if filesystem.path_exists(uri):
        return [place]
    matches = matching_paths(filesystem, uri, failures)
    if not matches:
        raise NotFoundError("nothing matches this pattern", path=uri)
    return [Place(filesystem, match) for match in matches]


def expand_all(service: PluginService, uris: Iterable[str], failures: Failures) -> Iterator[Place]:
    """Yield the places of several URIs; one that names nothing is added to `failures`."""
    for uri in uris:
        found: list[Place] = []
        with failures.about(uri):
            found = expand(service, uri, failures)
        yield from found
