"""What the author of a plugin has decided about its checks: `modular-tf-check.toml`.

```toml
level = 4                      # what is asked for; the command line may say otherwise
profile = "object-store"       # one of the package's, or one of this file
root = "mine://bucket/scratch" # below it everything may be made and removed
through_host = true            # the checks run once more through this package
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
from typing import TYPE_CHECKING, Any, Literal

from modular_tf.check.catalogue import all_checks
from modular_tf.check.level import Level
from modular_tf.check.options import OPTIONS, Options
from modular_tf.check.outcome import BAD, Verdict
from modular_tf.errors import ConfigError
from modular_tf.rules.keys import Key, checked_table, choice, flag, list_of
from modular_tf.tables import parse_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from modular_tf.check.outcome import Outcome

FILE_NAME = "modular-tf-check.toml"
DEFAULT_LEVEL = Level.ROBUST
DEFAULT_PROFILE = "hierarchical"

_TEXT = Key("a string", lambda value: isinstance(value, str))
_NAMES = list_of("a list of strings", _TEXT.is_right)
_TABLE = Key("a table", lambda value: isinstance(value, dict))
_LEVELS = range(min(Level), max(Level) + 1)

KEYS: Mapping[str, Key] = {
    "level": Key(
        f"a whole number from {_LEVELS[0]} to {_LEVELS[-1]}",
        lambda value: type(value) is int and value in _LEVELS,
    ),
    "profile": _TEXT,
    "root": _TEXT,
    "through_host": flag(),
    "only": _NAMES,
    "skip": _NAMES,
    "options": _TABLE,
    "known": list_of("a list of tables", _TABLE.is_right),
    "profiles": _TABLE,
}
"""What each key of the file may hold."""

_KNOWN = {"check": _TEXT, "reason": _TEXT, "subject": _TEXT}
_PROFILE = {"about": _TEXT, "like": _TEXT, "traits": _TABLE, "options": _TABLE}

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
_EXCUSES: Mapping[str, Key] = dict.fromkeys(TRAITS, choice(("note", "skip")))
_FOLDER = os.path.join(os.path.dirname(__file__), "profiles")
_SUFFIX = ".toml"


@dataclass(frozen=True, slots=True)
class Profile:
    """The kind of store that a plugin serves, and so what checks must not demand of it.

    Attributes:
        name: As `--profile` knows it.
        about: What it is, in one line.
        traits: For each trait that it lacks: `note`, deviations are worth knowing and no fault; or
            `skip`, checks that need it are not tried.
        options: For the checks, of `Options`.
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
    """Return one of the package's profiles; raises `ConfigError` where there is none."""
    if name not in profile_names():
        raise ConfigError(f"no profile {name!r}; there are: {', '.join(profile_names())}")
    path = os.path.join(_FOLDER, name + _SUFFIX)
    return _profile(name, _table_of_file(path), path)


def _profile(name: str, table: Any, path: str) -> Profile:
    """Return the profile that a file describes, on top of the one that it is `like`."""
    where = f"{path}: profile {name!r}"
    checked = _checked(_PROFILE, table, where)
    base = bundled_profile(checked["like"]) if "like" in checked else Profile("")
    return Profile(
        name,
        checked.get("about", base.about),
        {**base.traits, **_checked(_EXCUSES, checked.get("traits", {}), f"{where}: traits")},
        {**base.options, **_checked(OPTIONS, checked.get("options", {}), f"{where}: options")},
    )


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
        through_host: Whether checks of the plugin's own slots run once more through this package.
        only: Ids and groups, or globs over them; empty for all.
        skip: Likewise, which are left out.
        options: For the checks; they replace the profile's.
        known: Deviations that are known.
        path: The file it was read from, None for none.
        again: The options of `modular-tf check` that decide the same in another run.
    """

    level: Level = DEFAULT_LEVEL
    profile: Profile = field(default_factory=lambda: bundled_profile(DEFAULT_PROFILE))
    root: str | None = None
    through_host: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    known: tuple[KnownDeviation, ...] = ()
    path: str | None = None
    again: tuple[str, ...] = ()

    @property
    def for_checks(self) -> Options:
        """The options of checks, with those of the profile."""
        return Options(**{**self.profile.options, **self.options})

    def excused(self, outcome: Outcome) -> Outcome:
        """Return an outcome as the author sees it.

        A profile excuses a wrong answer, never a crash; a known deviation may be one.
        """
        if outcome.verdict not in {*BAD, Verdict.WARNED}:
            return outcome
        for known in self.known:
            if known.covers(outcome):
                return replace(outcome, verdict=Verdict.KNOWN, reason=known.reason)
        excuse = self.profile.excuse(all_checks()[outcome.check_id].traits)
        if excuse is not None and outcome.verdict in {Verdict.FAILED, Verdict.WARNED}:
            return replace(outcome, verdict=Verdict.NOTED)
        return outcome

    def outdated(self, outcomes: Iterable[Outcome]) -> list[KnownDeviation]:
        """Return the known deviations that were tried and not found: they can be removed."""
        verdicts = [
            (known, {o.verdict for o in outcomes if known.covers(o)}) for known in self.known
        ]
        return [known for known, found in verdicts if found == {Verdict.PASSED}]


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


def decided(
    directory: str,
    *,
    path: str | None = None,
    profile: str | None = None,
    level: int | None = None,
    root: str | None = None,
    through_host: bool | None = None,
    options: Mapping[str, Any] | None = None,
) -> CheckSettings:
    """Return the settings that count: those of a file, with what is given instead.

    The file is the one that is named, or the nearest one from a directory upwards. Raises
    `ConfigError` if the file, or one of the values, is invalid.
    """
    path = path or find_settings(directory)
    file = {} if path is None else _table_of_file(path)
    where = path or ""
    table = _checked(KEYS, file, where)
    asked = {"profile": profile, "level": level, "root": root, "through_host": through_host}
    table |= _checked(KEYS, {k: v for k, v in asked.items() if v is not None}, "asked for")
    own_options = _checked(OPTIONS, table.get("options", {}), f"{where}: options")
    further_options = _checked(OPTIONS, options or {}, "options asked for")
    name, profiles = table.get("profile", DEFAULT_PROFILE), table.get("profiles", {})

    again = [] if path is None else ["--settings", os.path.abspath(path)]
    if profile is not None and (path is not None or profile != DEFAULT_PROFILE):
        again += ["--profile", profile]
    if root is not None:
        again += ["--root", root]
    if through_host:
        again.append("--through-host")
    for key, value in further_options.items():
        if key != "prepared":
            again += ["--option", f"{key}={json.dumps(value)}"]

    settings = CheckSettings(
        level=Level(table.get("level", DEFAULT_LEVEL)),
        profile=_profile(name, profiles[name], where)
        if name in profiles
        else bundled_profile(name),
        root=table.get("root"),
        through_host=table.get("through_host", False),
        only=table.get("only", ()),
        skip=table.get("skip", ()),
        options={**own_options, **further_options},
        known=tuple(_known(entry, f"{where}: known") for entry in table.get("known", ())),
        path=path,
        again=tuple(again),
    )
    return on_prepared_files(settings) if settings.options.get("prepared") else settings


def on_prepared_files(settings: CheckSettings) -> CheckSettings:
    """Return the settings of a run whose root holds what `--write-files` writes.

    Checks that want a file are then tried even where the store cannot be written to.
    """
    traits = {name: how for name, how in settings.profile.traits.items() if name != "writes"}
    # Those go past the plugin, or are about a file that is new.
    traits.update({"local-disk": "skip", "permissions": "skip", "timestamps": "skip"})
    again = settings.again
    return replace(
        settings,
        profile=replace(settings.profile, traits=traits),
        options={**settings.options, "prepared": True},
        again=again if "--prepared" in again else (*again, "--prepared"),
    )


def option_of(text: str) -> tuple[str, Any]:
    """Return name and value of NAME=VALUE, whose value is TOML; raises `ValueError` otherwise."""
    name, separator, value = text.partition("=")
    if not separator:
        raise ValueError(f"{text!r} is not NAME=VALUE")
    try:
        (read,) = parse_table(f"value = {value}").values()
    except (ValueError, RecursionError) as error:
        message = f"{text!r}: the value is no TOML, in which a string has quotes: {error}"
        raise ValueError(message) from error
    return name.strip(), read


def _known(entry: Any, where: str) -> KnownDeviation:
    known = _checked(_KNOWN, entry, where)
    check_id, reason = known.get("check"), known.get("reason", "")
    if check_id not in all_checks():
        raise ConfigError(f"{where}: check: expected the id of one, found {check_id!r}")
    if not reason.strip():
        raise ConfigError(f"{where}: {check_id}: a known deviation needs a reason")
    return KnownDeviation(check_id, reason, known.get("subject"))


def _checked(keys: Mapping[str, Key], table: Any, where: str) -> dict[str, Any]:
    """Return a table with tuples for lists; raises `ConfigError` for a wrong key or value."""
    try:
        return checked_table(keys, table, "")
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


def _table_of_file(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            return parse_table(stream.read())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read as TOML: {error}", path=path) from error
