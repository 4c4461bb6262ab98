"""Settings in the files of users that other programs read, and a plugin does not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from configparser import RawConfigParser


def unread_setting(where: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Return a sentence on a setting of the user that the plugin ignores; empty for none.

    Args:
        where: `setting` is its name, in a profile or in a service's part of a section that the
            profile names; `service` is the service; `file` is the file, or the variable
            `file_variable` names it; `profile_variables` name the profile, with spaces between,
            the first that is set; `variable` is what the plugin reads instead; if `ignored_by` is
            set to "true", users do not want the setting.
        environment: The environment variables.
    """
    if environment.get(where["variable"]) or environment.get(where["ignored_by"], "") == "true":
        return ""
    path = os.path.expanduser(environment.get(where["file_variable"]) or where["file"])
    if not os.path.isfile(path):
        return ""
    named = map(environment.get, where["profile_variables"].split())
    profile = next(filter(None, named), "default")
    if not _is_set(path, profile, where["service"], where["setting"]):
        return ""
    return (
        f"{where['setting']} of the profile {profile!r} in {path} is not read by the plugin; set"
        f" {where['variable']} to its value"
    )


def _is_set(path: str, profile: str, service: str, setting: str) -> bool:
    """Return whether a profile has a setting, for everything or for a service."""
    import configparser  # noqa: PLC0415  (most users have no such file)

    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read(path, encoding="utf-8")
    except (OSError, ValueError, configparser.Error):  # whoever reads it tells what is wrong
        return False
    found = _section(parser, f"profile {profile}") or _section(parser, profile)
    services = _section(parser, f"services {found.get('services', '')}")
    of_service = [line.partition("=")[0].strip() for line in services.get(service, "").splitlines()]
    return setting in found or setting in of_service


def _section(parser: RawConfigParser, name: str) -> dict[str, str]:
    return dict(parser.items(name)) if parser.has_section(name) else {}
