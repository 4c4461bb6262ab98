"""The search path of a library without what depends on the current directory."""

from __future__ import annotations

from modular_tf.discovery.linking.library_search import is_relative


def without_relative(search_path: bytes) -> bytes:
    """Make each directory of a search path absolute, so that it leads nowhere else.

    Whatever was found in the current directory is mapped first, by its file, and is not looked for
    again. The string keeps its length, since it is changed in place: an empty directory becomes one
    with the next or the last, and any other begins at the root, where nobody but root puts files.
    """
    found = list(search_path.decode("latin-1"))  # a character for each byte
    start = 0
    while start <= len(found):
        end = _end_of(found, start)
        if start == end:
            found[end if end < len(found) else end - 1] = "/"  # in the place of a colon
            end = _end_of(found, start)
        elif is_relative("".join(found[start:end])):
            found[start] = "/"
        start = end + 1
    return "".join(found).encode("latin-1")


def _end_of(search_path: list[str], start: int) -> int:
    """Return where the directory ends that begins there."""
    try:
        return search_path.index(":", start)
    except ValueError:
        return len(search_path)
