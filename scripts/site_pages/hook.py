"""What MkDocs calls while it builds the site: adds the pages that are made of the code."""

from __future__ import annotations

from functools import partial
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
    rules,
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
    **rules.PAGES,
}
"""The function that writes each generated page."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages on rules and checks in the navigation."""
    section = next(entry for entry in config.nav if isinstance(entry, dict) and "Rules" in entry)
    section["Rules"] += rules.PAGES
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of the code."""
    for name, page in PAGES.items():
        files.append(File.generated(config, name, content=page()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Make links that hold in a checkout hold in the site, and complete the page on rules."""
    if page.file.src_uri == "rules/README.md":
        markdown += rules.index()
    return documents.with_links_of_the_site(markdown, page.file.src_uri)
