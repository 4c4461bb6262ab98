"""The products that bring well-known libraries, by `library_families.toml`."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["product_of"]


@cache
def _products() -> dict[str, str]:
    """Return the product of each pattern."""
    table = resources.files(__package__ or "").joinpath("library_families.toml")
    families = tomllib.loads(table.read_text("utf-8"))["family"]
    return {pattern: family["words"] for family in families for pattern in family["names"]}


def product_of(soname: str) -> str | None:
    """Return the product that brings a library, such as "AMD's ROCm"; None if it is unknown."""
    stem = soname.partition(".so")[0]
    for pattern, product in _products().items():
        if fnmatchcase(stem, pattern):
            return product
    return None
