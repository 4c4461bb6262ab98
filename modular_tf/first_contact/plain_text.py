"""Words of a plugin, as they may be shown on any terminal."""

from __future__ import annotations

_MOST_CHARACTERS = 200


def plain(text: str, most: int = _MOST_CHARACTERS) -> str:
    """Return the beginning of a text with a question mark for whatever is no printable character.

    Args:
        text: What somebody wrote who may mean harm.
        most: How many characters are kept.
    """
    return "".join(c if c.isprintable() else "?" for c in text[:most])
