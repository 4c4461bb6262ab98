"""The user's directories, as the XDG Base Directory Specification has them: absolute, or none.

The files there decide which code runs. A relative path would be another directory wherever a
program is started, such as another user's checkout. So a variable with such a path is ignored, and
without a home directory there are no such directories. Paths that the user names for this package
alone (arguments, `MODULAR_TF_CONFIG`, `MODULAR_TF_PLUGIN_PATH`) may begin where the program does.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "NO_HOME",
    "IgnoredVariable",
    "cache_directory",
    "config_directory",
    "data_directory",
    "expand_home",
    "home_directory",
    "ignored_variables",
    "state_directory",
]

NO_HOME = "there is no home directory: HOME names none, nor does the system's list of users"
_HOME = "HOME"
_BELOW_HOME = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_CACHE_HOME": ".cache",
    "XDG_STATE_HOME": ".local/state",
}
_OWN_NAME = "modular_tf"


def config_directory(environment: Mapping[str, str]) -> str | None:
    """Return the directory of the user's settings of this package; None for none. [any thread]"""
    return _own_directory("XDG_CONFIG_HOME", environment)


def data_directory(environment: Mapping[str, str]) -> str | None:
    """Return the directory of the user's plugins, as `config_directory`."""
    return _own_directory("XDG_DATA_HOME", environment)


def cache_directory(environment: Mapping[str, str], *, privileged: bool) -> str | None:
    """Return the directory of caches; None for none. [any thread]

    It need not exist, but a home does: one that is not there must not be made. There is none for a
    `privileged` process, which has rights that its user lacks: what the user controls must not
    decide what runs in it.
    """
    return None if privileged else _own_directory("XDG_CACHE_HOME", environment, writes=True)


def state_directory(environment: Mapping[str, str], *, privileged: bool) -> str | None:
    """Return the directory of lasting state of this machine; as `cache_directory`."""
    return None if privileged else _own_directory("XDG_STATE_HOME", environment, writes=True)


def _own_directory(
    variable: str, environment: Mapping[str, str], *, writes: bool = False
) -> str | None:
    base = environment.get(variable, "")
    if os.path.isabs(base):
        return os.path.join(base, _OWN_NAME)
    home = home_directory(environment)
    if home is None or (writes and not os.path.isdir(home)):
        return None
    return os.path.join(home, _BELOW_HOME[variable], _OWN_NAME)


def home_directory(environment: Mapping[str, str]) -> str | None:
    """Return the user's home: `HOME`, where that is unset what the system says; None for none."""
    home = environment.get(_HOME)
    if home is None:
        home = _home_of(None)
    return home if home and os.path.isabs(home) else None


def _home_of(name: str | None) -> str | None:
    """Return the home of a user, by default of this process, by the system's list of users."""
    import pwd  # noqa: PLC0415  (needed only if HOME is unset)

    try:
        return (pwd.getpwuid(os.getuid()) if name is None else pwd.getpwnam(name)).pw_dir
    except (KeyError, ValueError):  # a NUL, or no such user
        return None


def expand_home(path: str, environment: Mapping[str, str] | None = None) -> str | None:
    """Return a path with the home directory instead of `~`; None where there is none.

    `~name` is the home of that user; where there is no such user, it is a name like others.
    """
    if not path.startswith("~"):
        return path
    name, _, rest = path[1:].partition("/")
    if name:
        home = _home_of(name)
        return path if home is None else os.path.join(home, rest)
    home = home_directory(os.environ if environment is None else environment)
    return None if home is None else os.path.join(home, rest)


class IgnoredVariable(NamedTuple):
    """A variable that names a directory and is ignored."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name} is ignored: expected an absolute path, found {self.value!r}"


def ignored_variables(environment: Mapping[str, str]) -> list[IgnoredVariable]:
    """Return the variables with a path that is not absolute; empty ones are as if unset."""
    given = {name: environment.get(name, "") for name in (_HOME, *_BELOW_HOME)}
    return [
        IgnoredVariable(name, value)
        for name, value in given.items()
        if value and not os.path.isabs(value)
    ]
