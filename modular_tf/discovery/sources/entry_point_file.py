"""Reading `entry_points.txt` of an installed distribution.

Our values name files (`package:relative/path.so`), which the entry point classes of some versions
of importlib-metadata refuse to hold, together with everything else in the same file.
"""

from __future__ import annotations

__all__ = ["entries_of_group"]


def entries_of_group(content: bytes, group: str) -> list[tuple[str, str]]:
    """Return names and values of one group's entry points, in the order of the file.

    Args:
        content: The file's bytes; other groups in it may hold anything.
        group: The name in brackets.

    Raises:
        ValueError: It is not UTF-8, or a line of the group is not `name = value`.
    """
    found = []
    section = None
    for number, line in enumerate(content.decode("utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith(("#", ";")):
            continue
        if text.startswith("[") and text.endswith("]"):
            section = text[1:-1].strip()
        elif section == group:
            found.append(_pair(text, number))
    return found


def _pair(text: str, number: int) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"line {number}: expected 'name = value', found {text!r}")
    return name.strip(), value.strip()
