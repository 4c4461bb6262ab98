"""Documents of the checkout as pages of the site, with links that lead there."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
_PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
}
_FILE_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)(?!\S*\.md[)#])[^)]*\)")


def architecture() -> str:
    """Return the page on the architecture."""
    return _page("ARCHITECTURE.md")


def changelog() -> str:
    """Return the page on what changed."""
    return _page("CHANGELOG.md")


def contributing() -> str:
    """Return the page on how to change the package."""
    return _page("CONTRIBUTING.md")


def _page(name: str) -> str:
    """Return a document; links to files that are no pages become their names."""
    text = _FILE_LINK.sub(r"\1", (CHECKOUT / name).read_text(encoding="utf-8"))
    return _LINK.sub(lambda found: f"]({_target(found[1])}", text)


def _target(link: str) -> str:
    return _PAGES.get(link, link.removeprefix("docs/"))
