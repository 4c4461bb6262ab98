"""What the author of a plugin has decided about its checks: `modular-tf-check.toml`.

```toml
level = 4                      # what is asked for; the command line may say otherwise
profile = "object-store"       # one of the package's, or one of this file
root = "mine://bucket/scratch" # below it everything may be made and removed
skip = ["transactions"]        # ids, groups, or globs over them
only = []

[options]                      # for the checks: each is described below
repeat = 50
schemes = ["mine"]

[[known]]                      # a deviation that is known, and why it stays
check = "FS-255"               # A copy_file that fails leaves the target as it was.
subject = "mine://"            # optional: one scheme or device
reason = "the store writes a copy into the target itself"

[profiles.mine]                # a profile of one's own
like = "object-store"
[profiles.mine.traits]
append = "skip"
```
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from modular_tf.check.catalogue import all_rules
from modular_tf.check.level import Level
from modular_tf.check.options import require_options
from modular_tf.check.profile import DEFAULT_PROFILE, Profile, bundled_profile, profile_from
from modular_tf.check.settings_file import read_table, require_keys
from modular_tf.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.check.outcome import Outcome

FILE_NAME = "modular-tf-check.toml"
DEFAULT_LEVEL = Level.ROBUST

KEYS: Mapping[str, type[object]] = {
    "level": int,
    "profile": str,
    "root": str,
    "only": list,
    "skip": list,
    "options": dict,
    "known": list,
    "profiles": dict,
}


@dataclass(frozen=True, slots=True)
class KnownDeviation:
    """A deviation that the author knows of.

    Attributes:
        check_id: Id of the check.
        reason: Why it stays, for the report.
        subject: The scheme (`s3://`) or device (`GPU:0`) that it is about, None for all.
    """

    check_id: str
    reason: str
    subject: str | None = None

    def covers(self, outcome: Outcome) -> bool:
        """Return whether it covers this outcome."""
        return outcome.check_id == self.check_id and self.subject in {None, outcome.subject}


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """What to check, and what is known already.

    Attributes:
        level: The highest level whose checks are tried.
        profile: The kind of store.
        root: A URI below which everything may be made and removed; None for the kit's choice.
        only: Ids and groups, or globs over them; empty for all.
        skip: Likewise, which are left out.
        options: For the checks; they go before the profile's.
        said: What is said beside the file: `profile`, `root`, or the name of an option.
        known: Deviations that are known.
        path: The file it was read from, None for none.
    """

    level: Level = DEFAULT_LEVEL
    profile: Profile = field(default_factory=lambda: bundled_profile(DEFAULT_PROFILE))
    root: str | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    said: frozenset[str] = frozenset()
    known: tuple[KnownDeviation, ...] = ()
    path: str | None = None


def find_settings(start: str) -> str | None:
    """Return the settings file of a directory or the nearest one above it, None for none."""
    directory = os.path.abspath(start)
    while True:
        path = os.path.join(directory, FILE_NAME)
        if os.path.isfile(path):
            return path
        above = os.path.dirname(directory)
        if above == directory:
            return None
        directory = above


def load_settings(path: str, *, profile: str | None = None) -> CheckSettings:
    """Read a settings file.

    Args:
        path: The file.
        profile: The name of a profile to use instead of the file's own choice.

    Raises:
        ConfigError: It cannot be read, or a key is unknown or has the wrong shape.
    """
    table = read_table(path)
    require_keys(table, KEYS, path)
    require_options(table.get("options", {}), f"{path}: options")
    return CheckSettings(
        level=level_from(table.get("level", int(DEFAULT_LEVEL)), path),
        profile=_profile(profile or table.get("profile", DEFAULT_PROFILE), table, path),
        root=table.get("root"),
        only=_strings(table, "only", path),
        skip=_strings(table, "skip", path),
        options=table.get("options", {}),
        known=tuple(_known(entry, path) for entry in table.get("known", [])),
        path=path,
    )


def decided(
    directory: str,
    *,
    path: str | None = None,
    profile: str | None = None,
    level: int | None = None,
    root: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> CheckSettings:
    """Return the settings that count: the nearest file's, and what is said instead of them.

    Args:
        directory: Where to begin to look for a settings file.
        path: The settings file, where one is named.
        profile: The kind of store.
        level: Up to which level.
        root: A URI below which everything may be made and removed.
        options: For the checks; they go before those of the file.

    Raises:
        ConfigError: The file, or one of the values, is invalid.
    """
    file = path or find_settings(directory)
    if file is not None:
        settings = load_settings(file, profile=profile)
    else:
        settings = CheckSettings(profile=bundled_profile(profile or DEFAULT_PROFILE))
    if level is not None:
        settings = replace(settings, level=level_from(level, "the level asked for"))
    if root is not None:
        settings = replace(settings, root=root)
    if options:
        require_options(options, "the options asked for")
        settings = replace(settings, options={**settings.options, **options})
    given = {"profile": profile, "root": root}
    said = {name for name, value in given.items() if value is not None} | {*(options or {})}
    settings = replace(settings, said=frozenset(said))
    return on_prepared_files(settings) if settings.options.get("prepared") else settings


def on_prepared_files(settings: CheckSettings) -> CheckSettings:
    """Return the settings of a run whose root holds what `--write-files` writes.

    Checks that want a file are then tried even where the store cannot be written to.
    """
    traits = {name: how for name, how in settings.profile.traits.items() if name != "writes"}
    # Those go past the plugin, or are about a file that is new.
    traits.update({"local-disk": "skip", "permissions": "skip", "timestamps": "skip"})
    return replace(
        settings,
        profile=replace(settings.profile, traits=traits),
        options={**settings.options, "prepared": True},
    )


def repeated_by(settings: CheckSettings, seed: int) -> tuple[str, ...]:
    """Return the options of `modular-tf check` that try a check once more in the same way.

    Args:
        settings: Those of the run.
        seed: Of all that was random in it.
    """
    words = ["--seed", str(seed)]
    if settings.path is not None:
        words += ["--settings", os.path.abspath(settings.path)]
    if _is_said(settings, "profile") and (
        settings.path or settings.profile.name != DEFAULT_PROFILE
    ):
        words += ["--profile", settings.profile.name]
    if _is_said(settings, "root") and settings.root is not None:
        words += ["--root", settings.root]
    if settings.options.get("prepared"):
        words.append("--prepared")
    for name, value in settings.options.items():
        if name != "prepared" and _is_said(settings, name):
            words += ["--option", f"{name}={json.dumps(value)}"]
    return tuple(words)


def _is_said(settings: CheckSettings, name: str) -> bool:
    """Return whether a file does not say it: what the file says, naming the file repeats."""
    return settings.path is None or name in settings.said


def level_from(number: int, where: str) -> Level:
    """Return the level of a number.

    Raises:
        ConfigError: There is none.
    """
    if number not in {int(level) for level in Level}:
        raise ConfigError(f"{where}: level: expected 1 to {max(Level):d}, found {number!r}")
    return Level(number)


def _profile(name: str, table: Mapping[str, Any], path: str) -> Profile:
    own = table.get("profiles", {})
    if name not in own:
        return bundled_profile(name)
    if not isinstance(own[name], dict):
        raise ConfigError(f"{path}: profiles.{name}: expected a table, found {own[name]!r:.100}")
    return profile_from(name, own[name], path)


def _strings(table: Mapping[str, Any], key: str, path: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not all(isinstance(entry, str) for entry in value):
        raise ConfigError(f"{path}: {key}: expected a list of strings, found {value!r:.100}")
    return tuple(value)


def _known(entry: Any, path: str) -> KnownDeviation:
    where = f"{path}: known"
    if not isinstance(entry, dict):
        raise ConfigError(f"{where}: expected tables, found {entry!r:.100}")
    require_keys(entry, {"check": str, "reason": str, "subject": str}, where)
    if entry.get("check") not in all_rules():
        raise ConfigError(f"{where}: check: expected the id of one, found {entry.get('check')!r}")
    if not entry.get("reason", "").strip():
        raise ConfigError(f"{where}: {entry['check']}: a known deviation needs a reason")
    return KnownDeviation(entry["check"], entry["reason"], entry.get("subject"))
