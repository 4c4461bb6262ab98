"""The page on exit statuses."""

from __future__ import annotations

from modular_tf.cli.process import Exit
from site_pages.docstrings import attributes
from site_pages.markdown import code, table


def page() -> str:
    """Return the page on every exit status."""
    meanings = attributes(Exit)
    rows = [(code(int(status)), status.name, meanings[status.name]) for status in Exit]
    return f"# Exit statuses\n\nOf every command of `modular-tf`.\n\n{table(_HEADERS, rows)}"


_HEADERS = ("status", "name", "meaning")
