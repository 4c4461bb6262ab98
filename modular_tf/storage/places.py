"""The directories of the user in which this package keeps what it found out."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_OWN_NAME = "modular_tf"


def cache_directory(environment: Mapping[str, str], *, privileged: bool) -> str | None:
    """Return where to keep what can be found out again; None for nowhere. [any thread].

    It need not exist. Worked out by hand on Linux, by the XDG Base Directory Specification:
    platformdirs costs more to import than the files cost to read.

    Args:
        environment: The variables of the process.
        privileged: Whether the process has rights that its user lacks. What the user controls
            must not decide what runs in it, so there is no place for it.
    """
    return _directory(environment, "XDG_CACHE_HOME", ".cache", privileged=privileged)


def state_directory(environment: Mapping[str, str], *, privileged: bool) -> str | None:
    """Return where to keep what should last, but is of this machine; as `cache_directory`."""
    return _directory(environment, "XDG_STATE_HOME", ".local/state", privileged=privileged)


def _directory(
    environment: Mapping[str, str], variable: str, below_home: str, *, privileged: bool
) -> str | None:
    if privileged:
        return None
    if sys.platform != "linux":
        import platformdirs  # noqa: PLC0415  (not needed on Linux)

        is_cache = variable == "XDG_CACHE_HOME"
        find = platformdirs.user_cache_dir if is_cache else platformdirs.user_state_dir
        return find(_OWN_NAME, appauthor=False)
    base = environment.get(variable, "")
    if os.path.isabs(base):  # the specification wants any other value ignored
        return os.path.join(base, _OWN_NAME)
    home = _home(environment)
    return None if home is None else os.path.join(home, below_home, _OWN_NAME)


def _home(environment: Mapping[str, str]) -> str | None:
    """Return the user's home if it is there: one that is not must not be made by us."""
    home = environment.get("HOME")
    if home is None:
        home = os.path.expanduser("~")  # asks the system's list of users
    return home if os.path.isabs(home) and os.path.isdir(home) else None
