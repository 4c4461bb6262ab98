"""The default of `get_matching_paths`: glob over `get_children`.

Unlike TensorFlow's: results are sorted, errors rise instead of meaning "nothing matched" (only a
missing directory does), and wildcards before the path are refused instead of crashing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from modular_tf.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from modular_tf.filesystem.location import Location, checked_listing, unnamed_keys, warn_left_out
from modular_tf.filesystem.uri import create_uri, join_path, parse_uri

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.filesystem.filesystem import Filesystem

_MAGIC = re.compile(r"[*?\[\\]")


def has_magic(pattern: str) -> bool:
    """Return whether a pattern holds a glob character."""
    return _MAGIC.search(pattern) is not None


def require_plain_host(fs: Filesystem, pattern: str) -> None:
    """Raise `InvalidArgumentError` if a pattern has a glob character in its scheme or host."""
    if has_magic(parse_uri(pattern).host):
        raise InvalidArgumentError.of(
            "get_matching_paths", pattern, "wildcards may stand in the path only", plugin=fs.plugin
        )


def matching_paths(fs: Filesystem, pattern: str) -> list[str]:
    """Return the URIs that match, sorted.

    Errors are that of `require_plain_host`, and `NotFoundError` for a bucket that does not exist.
    """
    require_plain_host(fs, pattern)
    scheme, host, path = parse_uri(pattern)
    if not pattern:
        return []
    if not has_magic(path):
        return list(_literal(fs, pattern, last=True))
    levels = path.rstrip("/").split("/")
    literal = next(i for i, level in enumerate(levels) if has_magic(level))
    base = "/".join(levels[:literal]) or ("/" if path.startswith("/") else "")
    start = create_uri(scheme, host, base) or "."
    found = [start]
    for depth in range(literal, len(levels)):
        last = depth == len(levels) - 1
        found = [uri for parent in found for uri in _expand(fs, parent, levels[depth], last=last)]
    return sorted(found)


def _expand(fs: Filesystem, parent: str, level: str, *, last: bool) -> Iterator[str]:
    if not has_magic(level):
        yield from _literal(fs, join_path(parent, level), last=last)
        return
    matches = compile_level(level).fullmatch
    try:
        found = checked_listing(fs, parent, is_thorough=False, with_statistics=not last)
    except NotFoundError as error:
        if fs.is_missing_bucket(error):
            raise
        return
    except FailedPreconditionError:
        return
    warn_left_out(parent, map(unnamed_keys, filter(matches, found.unnamed)))
    for name in found.names:
        if matches(name):
            child = Location(fs, join_path(parent, name))
            known = found.statistics.get(name)
            if last or (known.is_directory if known else child.is_directory()):
                yield child.uri


def _literal(fs: Filesystem, child: str, *, last: bool) -> Iterator[str]:
    try:
        if fs.path_exists(child) and (last or fs.is_directory(child)):
            yield child
    except (NotFoundError, FailedPreconditionError):
        return


# One token of a level. A set may begin with `]`, and is over at the next one without a backslash.
_TOKEN = re.compile(
    r"""
    (?P<many>\*) | (?P<one>\?)
    | \[ (?: (?P<negation>[!^]) | (?![!^]) )
      (?P<members> (?:\] | \\. | [^]\\]) (?:\\. | [^]\\])* ) \]
    | (?P<unterminated> \[.*) | \\?(?P<plain>.)
    """,
    re.DOTALL | re.VERBOSE,
)
_RANGE = re.compile(r"\\?(.)(?:-\\?(.))?", re.DOTALL)


def compile_level(level: str) -> re.Pattern[str]:
    """Translate one level of a pattern: `*`, `?`, `[set]`, `[^set]`, `[!set]`, backslash escapes.

    An unterminated `[` matches nothing, as with fnmatch(3), and neither does a range whose end
    comes before its start.
    """

    def translated(token: re.Match[str]) -> str:
        if token["many"] or token["one"]:
            return "[^/]*" if token["many"] else "[^/]"
        if token["plain"]:
            return re.escape(token["plain"])
        members = "".join(
            f"{re.escape(low)}-{re.escape(high or low)}"
            for low, high in _RANGE.findall(token["members"] or "")
            if low <= (high or low)
        )
        if token["negation"]:
            return f"[^/{members}]"
        return f"[{members}]" if members else "(?!)"

    return re.compile(_TOKEN.sub(translated, level), re.DOTALL)
