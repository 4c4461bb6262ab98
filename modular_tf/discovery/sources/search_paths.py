"""What discovery reads from the process: the paths to search, and the user's directories.

The latter are those of the XDG Base Directory Specification: absolute, or none. The files there
decide which code runs, and a relative path would be another directory wherever a program is
started, such as another user's checkout. So a variable with such a path is ignored, and without a
home directory there are no such directories. Paths that the user names for this package alone
(arguments, `MODULAR_TF_CONFIG`, `MODULAR_TF_PLUGIN_PATH`) may begin where the program does.
"""

from __future__ import annotations

import os
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.privileges import is_privileged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


class SearchPaths(NamedTuple):
    """The paths that discovery searches; `of_process` returns those of the running process."""

    arguments: tuple[str, ...] = ()  # files and directories that the caller names
    environment: Mapping[str, str] = MappingProxyType({})  # only the two path variables count
    config_directories: tuple[str, ...] = ()  # directories (or files) of the configuration
    config_origin: str = "configuration"  # its name in reports, usually its path
    python_path: tuple[str, ...] = ()  # whose installed distributions count, as in `sys.path`
    site_directories: tuple[str, ...] = ()  # that may hold `tensorflow-plugins`
    user_directory: str | None = None  # for plugins that the user drops in
    why_no_user_directory: str | None = None  # None where nobody has asked for one
    package_directories: tuple[str, ...] = ()  # that this package consists of
    sources: frozenset[Source] = frozenset(Source)  # the others are not searched
    # The process has rights that its user lacks. What the user controls is not searched then:
    # environment, configuration, drop-in directory.
    privileged: bool = False

    @classmethod
    def of_process(
        cls,
        *,
        arguments: Iterable[str] = (),
        config_directories: Iterable[str] = (),
        config_origin: str = "configuration",
        environment: Mapping[str, str] | None = None,
        bundled: bool = True,
    ) -> SearchPaths:
        """Return the paths of the running process. [any thread]"""
        variables = dict(os.environ if environment is None else environment)
        own = data_directory(variables)
        return cls(
            arguments=tuple(os.fspath(argument) for argument in arguments),
            environment=variables,
            config_directories=tuple(os.fspath(entry) for entry in config_directories),
            config_origin=config_origin,
            python_path=python_path(),
            site_directories=_site_directories(),
            user_directory=None if own is None else os.path.join(own, "plugins"),
            why_no_user_directory=NO_HOME if own is None else None,
            package_directories=package_directories(),
            sources=frozenset(Source) - (set() if bundled else {Source.BUNDLED}),
            privileged=is_privileged(),
        )


def package_directories() -> tuple[str, ...]:
    """Return the directories of this package: two where it is installed as editable."""
    import modular_tf  # noqa: PLC0415  (its path is wanted as it is now)

    return tuple(modular_tf.__path__)


def python_path() -> tuple[str, ...]:
    """Return the directories whose installed distributions count, as in `sys.path`."""
    return tuple(dict.fromkeys(os.path.abspath(entry) for entry in sys.path))


def installation_prefixes() -> tuple[str, ...]:
    """Return the directories below which installers put what is not for the Python path."""
    import site  # noqa: PLC0415  (not loaded at all under `python -S`)

    user = [site.getuserbase()] if site.ENABLE_USER_SITE else []
    prefixes = (sys.prefix, sys.exec_prefix, sys.base_prefix, *user)
    return tuple(dict.fromkeys(map(os.path.abspath, prefixes)))


def _site_directories() -> tuple[str, ...]:
    """Return every site-packages directory, by TensorFlow's rule but in a defined order."""
    import site  # noqa: PLC0415  (not loaded at all under `python -S`)

    found = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    found += [entry for entry in sys.path if "site-packages" in entry]
    found += site.getsitepackages()
    found += [_library_directory("purelib"), _library_directory("platlib")]
    return tuple(dict.fromkeys(os.path.abspath(entry) for entry in found))


def _library_directory(name: str) -> str:
    """Return a directory of `sysconfig`'s, without reading how Python was built if possible."""
    import sysconfig  # noqa: PLC0415

    template = sysconfig.get_path(name, expand=False)
    try:
        return template.format(
            base=sys.prefix,
            platbase=sys.exec_prefix,
            installed_base=sys.base_prefix,
            installed_platbase=sys.base_exec_prefix,
            py_version_short=f"{sys.version_info.major}.{sys.version_info.minor}",
            platlibdir=sys.platlibdir,
        )
    except KeyError:  # a distributor's own scheme
        return sysconfig.get_path(name)
