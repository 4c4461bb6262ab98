"""Arguments that several file verbs have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser


def add_uris(parser: ArgumentParser, what: str = "what to work on") -> None:
    """Let the verb take one or more URIs or local paths."""
    parser.add_argument("uris", metavar="URI", nargs="+", help=f"{what}: a URI or a local path")


def add_sources_and_target(parser: ArgumentParser) -> None:
    """Let the verb take sources and, last, a target."""
    add_uris(parser, "source")
    parser.add_argument("target", metavar="TARGET", help="a URI or path; a directory for several")
