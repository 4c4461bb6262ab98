"""Documents of the checkout as pages of the site, with links that lead there."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

CHECKOUT = Path(__file__).resolve().parents[2]
DOCUMENTS = {
    "architecture.md": "ARCHITECTURE.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "readme.md": "README.md",
}
"""The pages that are documents of the checkout outside `docs`."""
_PAGES = {
    **{
        f"modular_tf/check/{kind}": f"checks/{kind}.md"
        for kind in ("device", "filesystem", "kernel")
    },
    **{
        f"modular_tf/rules/{name}.py": f"rules/{name}.md"
        for name in ("device", "filesystem", "kernel", "loading")
    },
    "modular_tf/check/settings.py": "reference/check-settings.md",
    "modular_tf/cli/process.py": "reference/exit-statuses.md",
    "modular_tf/include/modular_tf": "reference/headers.md",
    "modular_tf/service/configuration.py": "reference/configuration.md",
    "scripts/site_pages/environment.py": "reference/environment-variables.md",
    **{document: page for page, document in DOCUMENTS.items()},
}
"""What a link in a checkout leads to, and the page that the same link leads to in the site."""
_LINK = re.compile(r"\[((?:`[^`]*`|[^\]`])*)\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)")


def text(document: str) -> str:
    """Return the text of a document of the checkout."""
    return (CHECKOUT / document).read_text(encoding="utf-8")


def with_links_of_the_site(markdown: str, page: str) -> str:
    """Return the text of a page, with each link that leads out of `docs` leading to a page instead.

    In a document outside `docs`, a link to a file that has no page becomes its text.
    """
    of_document = page in DOCUMENTS
    folder = "" if of_document else join("docs", dirname(page))

    def replaced(found: re.Match[str]) -> str:
        target = normpath(join(folder, found[2]))
        of_docs = target.removeprefix("docs/") if target.startswith("docs/") else None
        to = _PAGES.get(target, of_docs)
        if to is None:
            return found[1] if of_document else found[0]
        return f"[{found[1]}]({relpath(to, dirname(page) or '.')}{found[3] or ''})"

    return _LINK.sub(replaced, markdown)
