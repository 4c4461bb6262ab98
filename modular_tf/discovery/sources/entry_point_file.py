"""Reading `entry_points.txt` of an installed distribution.

importlib-metadata loads the objects of hooks, but does not read the file, for three reasons. Our
values name files (`package:relative/path.so`), which version 8.7 refuses, with everything else in
the same file. One broken line of another group makes all versions refuse the file. And to import it
takes 33 ms of CPU time beside 161 ms for all of `modular-tf list` without a plugin (the best of 21
runs each).
"""

from __future__ import annotations

from modular_tf.discovery.sources.installed import ExcessiveMetadataError

__all__ = ["entries_of_group"]

_MOST_ENTRIES = 1000
_MOST_CHARACTERS = 4096


def entries_of_group(content: bytes, group: str) -> list[tuple[str, str]]:
    """Return names and values of one group's entry points, in the order of the file.

    Args:
        content: The file's bytes; other groups in it may hold anything.
        group: The name in brackets.

    Raises:
        ValueError: It is not UTF-8, or a line of the group is not `name = value`.
        ExcessiveMetadataError: The group has too many entries, or a line of it is too long.
    """
    found: list[tuple[str, str]] = []
    section = None
    for number, line in enumerate(content.decode("utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith(("#", ";")):
            continue
        if text.startswith("[") and text.endswith("]"):
            section = text[1:-1].strip()
        elif section == group:
            if len(text) > _MOST_CHARACTERS:
                raise ExcessiveMetadataError(f"line {number} has {len(text)} characters")
            if len(found) == _MOST_ENTRIES:
                raise ExcessiveMetadataError(f"group {group} has more than {_MOST_ENTRIES} entries")
            found.append(_pair(text, number))
    return found


def _pair(text: str, number: int) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"line {number}: expected 'name = value', found {text!r}")
    return name.strip(), value.strip()
