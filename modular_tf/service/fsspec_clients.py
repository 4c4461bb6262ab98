"""The filesystems that fsspec knows: which are installed, found without importing them.

A scheme that nobody else serves goes to them (`fsspec_fallback`).
"""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from functools import cache
from importlib import import_module, resources
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from modular_tf.discovery.privileges import is_privileged
from modular_tf.events import EventLog
from modular_tf.filesystem.registry import MadeOnce
from modular_tf.filesystem.uri import scheme_of
from modular_tf.loading.known_plugins import known_packages, package_for
from modular_tf.service.configured_filesystems import ConfiguredFilesystem, make_configured

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.service.configuration import Config

_log = EventLog("fsspec")


@cache
def known_clients() -> dict[str, Any]:
    """Return the table `fsspec_clients.toml`, which says what its entries mean. [any thread]"""
    text = resources.files("modular_tf.service").joinpath("fsspec_clients.toml").read_text("utf-8")
    return tomllib.loads(text)


class NoClientError(Exception):
    """fsspec has no filesystem for a protocol here.

    Attributes:
        remedy: What to do, as one sentence.
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def is_installed(module: str, *, or_directory: bool = False) -> bool:
    """Return whether a module without dots could be imported, without doing that. [any thread]

    Args:
        module: Its name.
        or_directory: Whether a directory without `__init__.py` counts, as packages of namespaces
            are, and many a directory that is none.
    """
    if module in sys.modules:
        return sys.modules[module] is not None
    try:
        found = find_spec(module)
    except Exception:  # noqa: BLE001  (of a finder that somebody installed)
        return False
    return found is not None and (or_directory or found.origin is not None)


def client_class(protocol: str) -> Any:
    """Import fsspec's filesystem class for a protocol, and never this package's own.

    Raises:
        NoClientError: fsspec or the client's package is not installed or cannot be imported, or
            fsspec does not know the protocol.
    """
    name = require_client(protocol)
    if not isinstance(name, str):
        return name
    module, _, attribute = name.replace(":", ".").rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:
        text = f"{name} cannot be imported: {type(error).__name__}: {error}"
        remedy = _known()[protocol].get("err") or f"Install {module.partition('.')[0]} anew."
        raise NoClientError(text, remedy) from error


def require_client(protocol: str) -> Any:
    """Return the class that serves a protocol, or its name, where its package is installed."""
    name = class_name_of(protocol)
    if isinstance(name, str) and not is_installed(package := name.partition(".")[0]):
        text = f"it needs {package}, which is not installed"
        raise NoClientError(text, f"Run: pip install {package}")
    return name


def class_name_of(protocol: str) -> Any:
    """Return the class that serves a protocol: itself, where it is imported, else its name.

    Raises:
        NoClientError: fsspec is not installed, or does not know the protocol.
    """
    known = _known()
    from fsspec.registry import registry  # type: ignore[import-untyped]  # noqa: PLC0415

    registered = registry.get(protocol)
    if registered is not None and not _is_ours(registered.__module__):
        return registered
    name = known.get(protocol, {}).get("class")
    if name is None or _is_ours(name):
        near = get_close_matches(protocol, known, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        remedy = f"{hint}`fsspec.available_protocols()` lists those that it knows."
        raise NoClientError(f"fsspec knows no protocol {protocol!r}", remedy)
    return name


def commands_for(scheme: str, *, has_plugin: bool) -> tuple[str, ...]:
    """Return the commands, each of which brings what serves a scheme; none for unknown ones.

    The known plugin is not fetched where it is here and does not serve (`has_plugin`).
    """
    package = package_for(scheme)
    plugins = () if package is None or has_plugin else (f"modular-tf fetch {package.name}",)
    client = known_clients()["packages"].get(scheme)
    return plugins if client is None else (*plugins, f"pip install {client}")


def missed_schemes() -> tuple[str, ...]:
    """Return the schemes that both a known plugin and a client of fsspec bring, sorted."""
    known = {scheme for package in known_packages() for scheme in package.schemes}
    return tuple(sorted(known & known_clients()["packages"].keys()))


class FsspecFallback:
    """What fsspec's clients serve of the schemes that nobody else serves. [any thread]"""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._made: dict[str, MadeOnce] = {}
        self._logged: set[str] = set()

    @property
    def why_off(self) -> str:
        """Why it serves nothing; "" where it may."""
        if not self._config.fsspec_fallback:
            return f"`fsspec_fallback` is off in {self._config.origin}"
        if is_privileged():  # a client reads files and variables of the user
            return "this process has rights that its user lacks"
        return (
            "plugins are frozen, and so is `fsspec_fallback`" if self._config.trust.frozen else ""
        )

    def owner(self, scheme: str) -> str | None:
        """Return the name of what would serve a scheme; None for nothing."""
        is_served = not self.why_off and scheme not in self._config.scheme_pins
        return f"fsspec.{scheme}" if is_served and _module_of(scheme) else None

    def owners(self) -> dict[str, str]:
        """Return the names of all that could serve, by scheme."""
        if self.why_off:
            return {}
        try:
            from fsspec.registry import registry  # noqa: PLC0415  (few need it, and late)

            schemes = {*_known(), *registry}
        except (NoClientError, ImportError):
            return {}
        found = {scheme: self.owner(scheme) for scheme in sorted(schemes)}
        return {scheme: owner for scheme, owner in found.items() if owner}

    def sentence(self, scheme: str) -> str:
        """Return who serves a scheme and why, as one sentence without a full stop."""
        return f"scheme {scheme!r} is served by {_release(scheme)}, since no plugin serves it"

    def filesystem(self, scheme: str) -> Filesystem | None:
        """Return the filesystem that serves a scheme, made at the first use; None for none."""
        made = self._made.get(scheme)
        if made is None:
            if (name := self.owner(scheme)) is None:
                return None
            made = self._made.setdefault(scheme, MadeOnce(scheme, lambda: self._make(scheme, name)))
        filesystem = made.get()
        if scheme not in self._logged:
            self._logged.add(scheme)
            _log.info("fsspec.fallback", scheme=scheme, message=self.sentence(scheme))
        return filesystem

    def _make(self, scheme: str, name: str) -> Filesystem:
        client = ConfiguredFilesystem(fsspec=scheme)
        why, origin = self.sentence(scheme), self._config.origin
        return make_configured(scheme, client, name, origin=origin, why=why)

    def after_fork_in_child(self) -> None:
        """Have the filesystems made anew."""
        self._made.clear()
        self._logged.clear()


def _module_of(scheme: str) -> str | None:
    """Return the module of the client that serves a scheme without options, if it is installed."""
    if scheme_of(f"{scheme}://") != scheme or scheme in known_clients()["not_stores"]["protocols"]:
        return None
    try:
        found = class_name_of(scheme)
    except NoClientError:
        return None
    module = (found if isinstance(found, str) else str(found.__module__)).partition(".")[0]
    needed, variables = module, []
    if module == "fsspec":
        own = known_clients()["own"].get(scheme)
        if own is None:
            return None
        needed, variables = own["module"], own["variables"]
    is_set = not variables or any(map(os.environ.get, variables))
    return module if is_set and is_installed(needed) else None


@cache
def _release_of(module: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  (takes long)

    try:
        return f"{module} {version(module)}"
    except PackageNotFoundError:  # the distribution has another name
        return module


def _release(scheme: str) -> str:
    return _release_of(_module_of(scheme) or "fsspec")


def _known() -> dict[str, dict[str, str]]:
    if not is_installed("fsspec"):
        raise NoClientError("fsspec is not installed", "Run: pip install fsspec")
    try:
        from fsspec.registry import known_implementations  # noqa: PLC0415  (few need it, and late)
    except Exception as error:
        text = f"fsspec cannot be imported: {type(error).__name__}: {error}"
        raise NoClientError(text, "Run: pip install --force-reinstall fsspec") from error
    found: dict[str, dict[str, str]] = known_implementations
    return found


def _is_ours(module: str) -> bool:
    return module.startswith("modular_tf.")
