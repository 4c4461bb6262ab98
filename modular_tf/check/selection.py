"""Which checks are tried: by level, by name, and by what the store can be asked."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from modular_tf.check.check import Check
    from modular_tf.check.settings import CheckSettings


OF_ANY_KIND = "library"
"""The kind of the checks of files and of loading, which concern plugins of every kind."""

DEVICE_OPERATIONS: Mapping[str, str] = {
    "SE-135": "allocate",
    "SE-205": "copy",
    "SE-204": "copy_within",
    "SE-223": "fill",
    "SE-226": "fill",
    "SE-253": "event",
    "SE-273": "timer",
    "SE-279": "callback",
}
"""The checks that try whether a device works at all, with the operation that each is about."""


def selected(settings: CheckSettings, kinds: Iterable[str]) -> list[Check]:
    """Return the checks to try, in the order of the catalogue.

    A check that `only` names by its id is tried whatever its level and the profile. Of a group, or
    what a glob matches, checks above the level and those that the profile excuses are left out;
    where nothing else is in it, all of it is tried.

    Args:
        settings: What the user wants.
        kinds: The kinds of plugin; checks of loading concern all of them.

    Raises:
        ConfigError: A name of `only` or `skip` matches no check at all.
    """
    for name in (*settings.only, *settings.skip):
        if not any(_matches(name, check) for check in all_checks().values()):
            raise ConfigError(f"no check and no group of checks is named {name!r}")
    wanted = {*kinds, OF_ANY_KIND}
    named = _named(settings)
    return [
        check
        for check in all_checks().values()
        if check.kind in wanted
        and (check.id in named if settings.only else _is_usual(check, settings))
        and not any(_matches(name, check) for name in settings.skip)
    ]


def _named(settings: CheckSettings) -> frozenset[str]:
    """Return the ids of the checks that `only` names."""
    found: set[str] = set()
    for name in settings.only:
        matching = [check for check in all_checks().values() if _matches(name, check)]
        usual = [check for check in matching if _is_usual(check, settings)]
        found |= {check.id for check in usual or matching}
    return frozenset(found)


def _is_usual(check: Check, settings: CheckSettings) -> bool:
    return check.level <= settings.level and settings.profile.excuse(check.traits) != "skip"


def _matches(name: str, check: Check) -> bool:
    return fnmatchcase(check.id, name.upper()) or fnmatchcase(check.group, name.lower())
