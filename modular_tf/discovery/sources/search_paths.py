"""The paths to search: everything that discovery reads from the process, as one value."""

from __future__ import annotations

import os
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.user_directories import NO_HOME, data_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["SearchPaths", "installation_prefixes", "package_directories", "python_path"]


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
