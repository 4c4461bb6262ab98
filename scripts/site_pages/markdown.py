"""Tables of Markdown."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_\[\]])")


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; a bar within a cell stays a bar."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def plain(text: str) -> str:
    """Return Markdown that shows a text as it is, whatever characters are in it."""
    return _SPECIAL.sub(r"\\\1", html.escape(text, quote=False))


def code(text: object) -> str:
    """Return a text as code."""
    return f"`{text}`"


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
