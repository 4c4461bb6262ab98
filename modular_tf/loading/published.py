"""What is known of published plugins: tables beside this module, which name the vendors.

The rows on defects in `known_defects.toml` are for people and for the tests that they name;
`known_packages.toml` has the installable packages that bring well-known schemes, and
`storage_options.toml` what plugins have instead of options that users of fsspec know.
"""

from __future__ import annotations

import fnmatch
import os
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class KnownStore(NamedTuple):
    """A part of a plugin that has known defects."""

    library: str  # a glob that matches the file name of the plugin's library
    schemes: Sequence[str]
    implementation: str  # module.class in `modular_tf.filesystem.workarounds`
    guarded_functions: Sequence[str] = ()  # of the C++ library, to which the plugin is not bound


@cache
def known_stores() -> tuple[KnownStore, ...]:
    """Return all stores of the table."""
    rows = read_table("loading/known_defects.toml")["store"]
    names = KnownStore._fields  # a row has the defects as well
    return tuple(KnownStore(**{key: row[key] for key in names if key in row}) for row in rows)


def stores_of(library: str) -> list[KnownStore]:
    """Return the stores of a library, which is known by its file name."""
    name = os.path.basename(library)
    return [store for store in known_stores() if fnmatch.fnmatchcase(name, store.library)]


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
    return tuple(
        KnownPackage(
            name=row["name"],
            schemes=tuple(row.get("schemes", ())),
            aliases=row.get("aliases", {}),
            brings=row.get("brings") or f"the schemes {', '.join(row['schemes'])}",
            python=row["python"],
            version=row.get("version"),
        )
        for row in read_table("loading/known_packages.toml")["package"]
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


class StorageOptions(NamedTuple):
    """One row of `storage_options.toml`, whose head explains the fields."""

    library: str
    schemes: tuple[str, ...]
    variables: Mapping[str, str] = _NOTHING
    unset_with: Mapping[str, Sequence[str]] = _NOTHING
    switches: Mapping[str, Mapping[str, str]] = _NOTHING
    files: Mapping[str, str] = _NOTHING
    without_effect: Mapping[str, Sequence[Any]] = _NOTHING
    advice: Mapping[str, str] = _NOTHING
    ignored: Sequence[str] = ()
    said_by_endpoint: Mapping[str, str] = _NOTHING

    @property
    def names(self) -> frozenset[str]:
        """The options of which something is known; `a.b` is the entry b of the option a."""
        said = (*self.variables, *self.switches, *self.without_effect, *self.advice)
        return frozenset((*said, *self.ignored, *self.said_by_endpoint))


@cache
def storage_options() -> tuple[StorageOptions, ...]:
    """Return all rows of the table."""
    return tuple(
        StorageOptions(**{**row, "schemes": tuple(row["schemes"])})
        for row in read_table("loading/storage_options.toml")["plugin"]
    )


def storage_options_of(library: str, scheme: str) -> StorageOptions:
    """Return what is known for a scheme of a plugin's library; an empty row for nothing."""
    name = os.path.basename(library)
    for row in storage_options():
        if scheme in row.schemes and fnmatch.fnmatchcase(name, row.library):
            return row
    return StorageOptions(name, (scheme,))
