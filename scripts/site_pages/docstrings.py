"""What the docstrings of classes say of their attributes."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(r"^Attributes:\n((?:    .*\n|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^    (\w+): (.*\n(?:     +.*\n)*)", re.MULTILINE)


def attributes(documented: type) -> dict[str, str]:
    """Return what the docstring of a class says of each attribute, as one line of text."""
    section = _SECTION.search((inspect.getdoc(documented) or "") + "\n")
    entries = _ENTRY.findall(section[1]) if section else []
    return {name: " ".join(text.split()) for name, text in entries}
