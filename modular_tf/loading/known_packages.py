"""The installable packages that bring well-known schemes, by `known_packages.toml`."""

from __future__ import annotations

import sys
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class KnownPackage(NamedTuple):
    """One installable package with plugins."""

    name: str  # as package indexes know it
    schemes: tuple[str, ...]  # what its plugins serve
    aliases: Mapping[str, str]  # what other programs call some of these, with the proper names
    brings: str  # the schemes or kernels, for messages
    python: str  # the newest Python that it is known to have wheels for
    version: str | None  # the one to fetch where the user names none; None for the newest

    @property
    def install(self) -> str:
        """The command that brings its plugins, on any Python."""
        return f"modular-tf fetch {self.name}"


@cache
def known_packages() -> tuple[KnownPackage, ...]:
    """Return all rows of the table."""
    text = resources.files("modular_tf.loading").joinpath("known_packages.toml").read_text("utf-8")
    return tuple(
        KnownPackage(
            name=row["name"],
            schemes=tuple(row.get("schemes", ())),
            aliases=row.get("aliases", {}),
            brings=row.get("brings") or f"the schemes {', '.join(row['schemes'])}",
            python=row["python"],
            version=row.get("version"),
        )
        for row in tomllib.loads(text)["package"]
    )


def package_for(scheme: str) -> KnownPackage | None:
    """Return the package that brings a scheme, None where none is known."""
    return next((package for package in known_packages() if scheme in package.schemes), None)


def canonical_scheme(scheme: str) -> str:
    """Return the name that plugins use for a scheme, given any case or a common alias."""
    name = scheme.lower()
    for package in known_packages():
        if name in package.schemes:
            return name
        if name in package.aliases:
            return package.aliases[name]
    return scheme
