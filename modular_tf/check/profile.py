"""The kind of store that a plugin serves, and so what checks must not demand of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from modular_tf.check.options import require_options
from modular_tf.check.settings_file import read_table, require_keys
from modular_tf.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

TRAITS = (
    "append",
    "directories",
    "empty-files",
    "file-as-directory",
    "local-disk",
    "parents",
    "permissions",
    "rename",
    "timestamps",
    "writes",
)
"""What a check may take for granted of a store (`Check.traits`):

`append` a file can be appended to · `directories` making one makes something real, also an empty
one · `empty-files` a file without bytes exists · `file-as-directory` a name below a file is a
failed precondition · `local-disk` it is the disk of this machine · `parents` a file needs its
directory first · `permissions` rights can be taken away · `rename` a file can be moved ·
`timestamps` the time of the last change is kept · `writes` files can be made at all.
"""

Excuse = Literal["note", "skip"]
EXCUSES: tuple[Excuse, ...] = ("note", "skip")
DEFAULT_PROFILE = "hierarchical"

_FOLDER = os.path.join(os.path.dirname(__file__), "profiles")
_SUFFIX = ".toml"


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of store.

    Attributes:
        name: As `--profile` knows it.
        about: What it is, in one line.
        traits: For each trait that it lacks: `note`, deviations are worth knowing and no fault; or
            `skip`, checks that need it are not tried.
        options: For the checks; see `modular_tf.check.options`.
    """

    name: str
    about: str = ""
    traits: Mapping[str, Excuse] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def excuse(self, traits: frozenset[str]) -> Excuse | None:
        """Return the furthest excuse for a check with these traits, None for none."""
        found = {self.traits[trait] for trait in traits if trait in self.traits}
        return "skip" if "skip" in found else "note" if found else None


def profile_names() -> list[str]:
    """Return the names of the profiles that come with the package, the default first."""
    names = [name.removesuffix(_SUFFIX) for name in os.listdir(_FOLDER) if name.endswith(_SUFFIX)]
    return sorted(names, key=lambda name: (name != DEFAULT_PROFILE, name))


def bundled_profile(name: str) -> Profile:
    """Return one of the package's profiles.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in profile_names():
        raise ConfigError(f"no profile {name!r}; there are: {', '.join(profile_names())}")
    path = os.path.join(_FOLDER, name + _SUFFIX)
    return profile_from(name, read_table(path), path)


def profile_from(name: str, table: Mapping[str, Any], path: str) -> Profile:
    """Make a profile of the table that a file has for it.

    Args:
        name: What to call it.
        table: Keys `about`, `like` (a profile to begin with), `traits`, `options`.
        path: The file, for messages.

    Raises:
        ConfigError: A key is unknown or has the wrong shape.
    """
    where = f"{path}: profile {name!r}"
    require_keys(table, {"about": str, "like": str, "traits": dict, "options": dict}, where)
    require_options(table.get("options", {}), f"{where}: options")
    base = bundled_profile(table["like"]) if "like" in table else Profile("")
    traits = table.get("traits", {})
    for trait, excuse in traits.items():
        if trait not in TRAITS:
            raise ConfigError(f"{where}: no trait {trait!r}; there are: {', '.join(TRAITS)}")
        if excuse not in EXCUSES:
            raise ConfigError(f"{where}: {trait}: expected one of {EXCUSES}, found {excuse!r}")
    return Profile(
        name,
        table.get("about", base.about),
        {**base.traits, **cast("dict[str, Excuse]", traits)},
        {**base.options, **table.get("options", {})},
    )
