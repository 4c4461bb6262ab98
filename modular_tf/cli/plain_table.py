"""A table for a terminal, without any package."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def show(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write rows aligned under their headers to standard output."""
    sys.stdout.write("".join(f"{line}\n" for line in aligned(headers, rows)))


def aligned(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; the last column is not padded."""
    table = [[header.upper() for header in headers], *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
