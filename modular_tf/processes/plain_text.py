"""Text of a plugin, made safe to keep and to show on any terminal."""

from __future__ import annotations

MOST_OF_A_CALL = 200
MOST_OF_A_MESSAGE = 2000
MOST_OF_LAST_WORDS = 4096


def plain(text: str, most: int = MOST_OF_A_CALL) -> str:
    """Return the beginning of a text in one line, with `?` for what is no character."""
    if text.isprintable():
        return text[:most]
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text[:most])


def plain_lines(text: str, most: int = MOST_OF_LAST_WORDS) -> str:
    """Return the end of a text, as `plain` does, with its lines."""
    return "\n".join(plain(line, most) for line in text[-most:].split("\n"))
