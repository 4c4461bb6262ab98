"""Tables of TOML: those of the package, which lie beside its modules, and those of users."""

from __future__ import annotations

import os
import sys
from typing import Any


def read_table(path: str) -> dict[str, Any]:
    """Return a table of the package, by its path below this folder."""
    with open(os.path.join(os.path.dirname(__file__), path), encoding="utf-8") as file:
        return parse_table(file.read())


def parse_table(text: str) -> dict[str, Any]:
    """Return the table of a text.

    Raises:
        ValueError: It is not TOML.
        RecursionError: It is nested too deeply.
    """
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415  (most processes read none)
    else:
        import tomli as tomllib  # noqa: PLC0415
    return tomllib.loads(text)
