"""Messages about unknown keys in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


def unknown_keys(found: Iterable[str], known: Collection[str]) -> str | None:
    """Return what is wrong with the keys of a table, and which were perhaps meant; None if nothing.

    Args:
        found: The keys of the table.
        known: Those that mean something.
    """
    unknown = sorted(set(found).difference(known))
    if not unknown:
        return None
    from difflib import get_close_matches  # noqa: PLC0415  (for mistakes only)

    close = [match for key in unknown for match in get_close_matches(key, known, n=1)]
    hint = f"did you mean {' and '.join(close)}? " if close else ""
    return f"unknown keys {unknown}; {hint}known: {sorted(known)}"
