"""What MkDocs calls while it builds the site: adds the pages that are made of the code."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

from site_pages import (
    commands,
    configuration,
    documents,
    environment,
    events,
    exit_statuses,
    headers,
    source_statements,
)

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

PAGES = {
    **{name: partial(documents.text, document) for name, document in documents.DOCUMENTS.items()},
    "reference/check-settings.md": configuration.check_settings,
    "reference/commands.md": commands.page,
    "reference/configuration.md": configuration.configuration,
    "reference/environment-variables.md": environment.page,
    "reference/events.md": events.page,
    "reference/exit-statuses.md": exit_statuses.page,
    "reference/headers.md": headers.page,
    "reference/source-statements.md": source_statements.page,
}
"""The function that writes each generated page."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages on rules, which have generators of their own, in the navigation."""
    root = Path(config.docs_dir)
    written = sorted(path for folder in ("rules", "checks") for path in root.glob(f"{folder}/*.md"))
    section = next(entry for entry in config.nav if isinstance(entry, dict) and "Rules" in entry)
    names = [path.relative_to(root).as_posix() for path in written]
    section["Rules"] += [name for name in names if name not in section["Rules"]]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of the code."""
    for name, page in PAGES.items():
        files.append(File.generated(config, name, content=page()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Make links that hold in a checkout hold in the site."""
    return documents.with_links_of_the_site(markdown, page.file.src_uri)
