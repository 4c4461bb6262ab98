"""What plugins have in place of options that users of fsspec know, by `storage_options.toml`."""

from __future__ import annotations

import fnmatch
import os
import sys
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class StorageOptions(NamedTuple):
    """One row of `storage_options.toml`.

    Attributes:
        library: A glob that matches the file name of the plugin's library.
        schemes: The schemes that it is about.
        variables: The environment variable that the plugin reads, by option.
        unset_with: Variables that an instance does not have, by the variable that its options say.
        switches: Variables of an instance, by the option that is true; "" for one to unset.
        files: What a variable that names a file is to be, by the variable.
        without_effect: Values that mean what the plugin does anyway, by option.
        advice: What to do in place of an option.
        ignored: Options that change how another client works and not what comes of it.
        said_by_endpoint: Switches for TLS that mean nothing where this variable names a URL.
    """

    library: str
    schemes: tuple[str, ...]
    variables: Mapping[str, str]
    unset_with: Mapping[str, Sequence[str]]
    switches: Mapping[str, Mapping[str, str]]
    files: Mapping[str, str]
    without_effect: Mapping[str, Sequence[Any]]
    advice: Mapping[str, str]
    ignored: Sequence[str] = ()
    said_by_endpoint: Mapping[str, str] = MappingProxyType({})

    @property
    def names(self) -> frozenset[str]:
        """The options of which something is known; `a.b` is the entry b of the option a."""
        said = (*self.variables, *self.switches, *self.without_effect, *self.advice)
        return frozenset((*said, *self.ignored, *self.said_by_endpoint))


@cache
def storage_options() -> tuple[StorageOptions, ...]:
    """Return all rows of the table."""
    text = resources.files("modular_tf.loading").joinpath("storage_options.toml").read_text("utf-8")
    return tuple(
        StorageOptions(
            row["library"],
            tuple(row["schemes"]),
            row.get("variables", {}),
            row.get("unset_with", {}),
            row.get("switches", {}),
            row.get("files", {}),
            row.get("without_effect", {}),
            row.get("advice", {}),
            row.get("ignored", ()),
            row.get("said_by_endpoint", {}),
        )
        for row in tomllib.loads(text)["plugin"]
    )


def storage_options_of(library: str, scheme: str) -> StorageOptions:
    """Return what is known for a scheme of a plugin's library; an empty row for nothing."""
    name = os.path.basename(library)
    for row in storage_options():
        if scheme in row.schemes and fnmatch.fnmatchcase(name, row.library):
            return row
    return StorageOptions(name, (scheme,), {}, {}, {}, {}, {}, {})
