"""Filesystems of Python clients: those that `[filesystems]` names, and those that fsspec has.

They are made at the first use of a scheme. A scheme that nobody else serves goes to the client that
fsspec has for it (`fsspec_fallback`).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.sources.installed import (
    Installation,
    entries_of_group,
    installed_distributions,
)
from modular_tf.discovery.sources.search_paths import python_path
from modular_tf.errors import FailedPreconditionError, ModularTFError
from modular_tf.events import EventLog
from modular_tf.filesystem.registry import MadeOnce
from modular_tf.filesystem.uri import scheme_of
from modular_tf.loading.published import known_packages, package_for
from modular_tf.redaction import HIDDEN, hide, names_secret, redacted, without_secrets
from modular_tf.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.service.configuration import Config

_log = EventLog("fsspec")
FSSPEC = "fsspec"
EXPECTED = (
    'a table of schemes, each "fsspec", {fsspec = "PROTOCOL", and options} or'
    ' {object = "package.module:name"}'
)
_ONE = EXPECTED.partition("each ")[2]
_OBJECT = r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*"
_ENVIRONMENT = "env"
_ENTRY_POINTS = "fsspec.specs"


@dataclass(frozen=True, slots=True)
class ConfiguredFilesystem:
    """What the configuration names for one scheme. It pickles, with the values of its options.

    Attributes:
        fsspec: The protocol of fsspec whose filesystem serves; "" where an object does.
        object: The object that serves, or what makes it when called, as `package.module:name`; ""
            where fsspec's filesystem does.
        options: The options of fsspec's filesystem. `{"env": NAME}` stands for the value that a
            variable of the environment has at the first use.
    """

    fsspec: str = ""
    object: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """Its name for users, as a plugin has one."""
        return f"fsspec.{self.fsspec}" if self.fsspec else self.object

    def shown(self) -> dict[str, Any]:
        """Return the table of the configuration, without any secret."""
        named = {FSSPEC: self.fsspec} if self.fsspec else {"object": self.object}
        return {**named, **_shown(self.options)}


def parse_filesystems(value: object) -> dict[str, ConfiguredFilesystem]:
    """Return what `[filesystems]` names for each scheme.

    Raises ValueError, which names the key, what was expected and what was found, and shows no
    option.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"filesystems: expected {EXPECTED}, found {_found(value)}")  # noqa: TRY004
    return {scheme: _parsed(scheme, given) for scheme, given in value.items()}


def _found(value: object) -> str:
    """Return a value for messages; what may have options is named only."""
    if isinstance(value, Mapping):
        return "a table"
    return "a list" if isinstance(value, Collection) and not isinstance(value, str) else repr(value)


def _parsed(scheme: object, given: object) -> ConfiguredFilesystem:
    key = f"filesystems.{scheme}"
    if not isinstance(scheme, str) or not scheme or scheme_of(f"{scheme}://") != scheme:
        expected = "a scheme: a letter, then 1 to 999 letters, digits or dots"
        raise ValueError(f"{key}: expected {expected}, found {scheme!r}")
    if isinstance(given, ConfiguredFilesystem):
        return given
    if given == FSSPEC:
        return ConfiguredFilesystem(fsspec=scheme)
    if not isinstance(given, Mapping):
        raise ValueError(f"{key}: expected {_ONE}, found {_found(given)}")  # noqa: TRY004
    options = dict(given)
    protocol, path = options.pop(FSSPEC, None), options.pop("object", None)
    if (protocol is None) == (path is None):
        raise ValueError(f"{key}: expected {_ONE}, found a table with {sorted(map(str, given))}")
    if path is None:
        if not isinstance(protocol, str) or not protocol:
            found = _found(protocol)
            raise ValueError(f"{key}.fsspec: expected a protocol of fsspec, found {found}")
        _check_variables(key, options)
        return ConfiguredFilesystem(fsspec=protocol, options=options)
    if options:
        extra = sorted(map(str, options))
        raise ValueError(f"{key}: expected no option beside `object`, found {extra}")
    if not isinstance(path, str) or not re.fullmatch(_OBJECT, path):
        raise ValueError(f"{key}.object: expected 'package.module:name', found {_found(path)}")
    return ConfiguredFilesystem(object=path)


def make_configured(
    scheme: str, configured: ConfiguredFilesystem, name: str, *, origin: str, why: str = ""
) -> Filesystem:
    """Make the filesystem of a scheme; what it imports is imported now.

    Raises:
        FailedPreconditionError: A package, a module or a variable is missing, or what was named is
            no filesystem.
        ModularTFError: The class that fits what the client, or the function that makes it, raised.
    """
    maker = _Maker(scheme, name, f"[filesystems] of {origin}", why)
    if configured.object:
        return maker.filesystem_of(lambda: _object(maker, configured.object))
    options = _with_environment(maker, configured.options)
    secrets = frozenset(_secrets(configured.options, options))
    hide(secrets, secrets)
    return maker.filesystem_of(lambda: _client(maker, configured.fsspec, options))


def foreseen_problem(configured: ConfiguredFilesystem) -> tuple[str, str]:
    """Return why a filesystem cannot be made and what to do; ("", "") where nothing is foreseen.

    What serves it is not imported.
    """
    if configured.object:
        package = re.split("[.:]", configured.object)[0]
        missing = f"{package} is not installed, or not where Python finds it"
        found = is_installed(package, or_directory=True)
        return ("", "") if found else (missing, f"Install {package}.")
    try:
        require_client(configured.fsspec)
    except NoClientError as error:
        return str(error), error.remedy
    unset = sorted(set(_variables(configured.options)) - os.environ.keys())
    if unset:
        return f"options are variables that are not set: {', '.join(unset)}", "Set them."
    return "", ""


class _Maker:
    """Makes the filesystem of one scheme, and describes what goes wrong."""

    def __init__(self, scheme: str, name: str, where: str, why: str) -> None:
        self.name = name
        self.where = where
        self._subject = why or f"scheme {scheme!r}, {where}"
        self._scheme = scheme

    def filesystem_of(self, make: Callable[[], object]) -> Filesystem:
        from modular_tf.filesystem.python_filesystem import as_filesystem  # noqa: PLC0415  (few)

        found = make()
        try:
            made = as_filesystem(self._scheme, found)
        except TypeError as error:
            self.fail(f"{self.name} is no filesystem: {error}", f"Correct {self.where}.", error)
        if made is not found:
            made.plugin = self.name
        return made

    def fail(self, what: str, remedy: str, cause: Exception | None = None) -> NoReturn:
        """Raise the error of this scheme; its class is the cause's where that says more."""
        from modular_tf.filesystem.python_errors import error_class_for  # noqa: PLC0415  (few)

        has_details = isinstance(cause, OSError | ModularTFError)
        kind = error_class_for(cause) if has_details and cause else FailedPreconditionError
        text = f"{self._subject}: {what}. {remedy}"
        raise kind(text, plugin=self.name, operation="filesystem") from without_secrets(cause)


def _object(maker: _Maker, path: str) -> object:
    from pkgutil import resolve_name  # noqa: PLC0415  (few)

    try:
        found = resolve_name(path)
    except Exception as error:  # noqa: BLE001  (the module's code may raise anything)
        maker.fail(
            f"{path} cannot be imported: {type(error).__name__}: {error}",
            f"Install its package, or correct {maker.where}.",
            error,
        )
    if not callable(found):
        return found
    try:
        return found()
    except Exception as error:  # noqa: BLE001  (a user's function)
        maker.fail(
            f"{path}() raised {type(error).__name__}: {error}",
            "Correct it; the next use calls it again.",
            error,
        )


def _client(maker: _Maker, protocol: str, options: Mapping[str, Any]) -> object:
    try:
        cls = client_class(protocol)
    except NoClientError as error:
        maker.fail(str(error), error.remedy, error)
    try:
        return cls(**options)
    except Exception as error:  # noqa: BLE001  (of any client)
        given = f"the options {sorted(options)}" if options else "to be made without options"
        maker.fail(
            f"{cls.__module__}.{cls.__qualname__} refused {given}: {type(error).__name__}: {error}",
            f"Correct the options in {maker.where}.",
            error,
        )


# -- values of options --------------------------------------------------------------------------


def _variable_of(value: object) -> str | None:
    """Return the variable that a value refers to, None where it is a value."""
    if isinstance(value, Mapping) and set(value) == {_ENVIRONMENT}:
        return str(value[_ENVIRONMENT])
    return None


def _variables(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the variables that options refer to."""
    for value in options.values():
        variable = _variable_of(value)
        if variable is not None:
            yield variable
        elif isinstance(value, Mapping):
            yield from _variables(value)


def _check_variables(key: str, options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        variable = value.get(_ENVIRONMENT) if isinstance(value, Mapping) else None
        if isinstance(value, Mapping) and set(value) != {_ENVIRONMENT}:
            _check_variables(f"{key}.{name}", value)
        elif isinstance(value, Mapping) and not (isinstance(variable, str) and variable):
            expected = "the name of a variable of the environment"
            raise ValueError(f"{key}.{name}.{_ENVIRONMENT}: expected {expected}")


def _with_environment(maker: _Maker, options: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return options with the values of the variables that they refer to."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        variable = _variable_of(value)
        if variable is None:
            is_table = isinstance(value, Mapping)
            found[name] = _with_environment(maker, value, f"{above}{name}.") if is_table else value
        elif variable in os.environ:
            found[name] = os.environ[variable]
        else:
            what = f"option {above + name!r} is the variable {variable}, which is not set"
            maker.fail(what, f"Set {variable}.")
    return found


def _secrets(given: Any, value: Any, *, is_secret: bool = False) -> Iterator[str]:
    """Yield the values that no message may show: secrets by their names, and variables' values."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            named = is_secret or names_secret(name)
            yield from _secrets(given[name], inner, is_secret=named)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _secrets(inner, inner, is_secret=is_secret)
    elif (is_secret and not isinstance(value, bool)) or isinstance(given, Mapping):
        yield str(value)


def _shown(value: Any, *, is_secret: bool = False) -> Any:
    if _variable_of(value) is not None:
        return dict(value)
    if isinstance(value, Mapping):
        return {
            name: _shown(inner, is_secret=is_secret or names_secret(name))
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_shown(inner, is_secret=is_secret) for inner in value]
    if is_secret:
        return HIDDEN
    return redacted(value) if isinstance(value, str) else value


# -- clients of fsspec, found without importing them ----------------------------------------------


@cache
def known_clients() -> dict[str, Any]:
    """Return the table `fsspec_clients.toml`, which says what its entries mean. [any thread]"""
    return read_table("service/fsspec_clients.toml")


class NoClientError(Exception):
    """fsspec has no filesystem for a protocol here; `remedy` is one sentence on what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def is_installed(module: str, *, or_directory: bool = False) -> bool:
    """Return whether a module without dots could be imported, without doing that. [any thread]

    With `or_directory` a directory without `__init__.py` counts: namespace packages are such, but
    so is many a directory that is no package.
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

    Raises NoClientError if fsspec or the client's package is not installed or cannot be imported,
    or fsspec does not know the protocol.
    """
    name = require_client(protocol)
    if not isinstance(name, str):
        return name
    module, _, attribute = name.replace(":", ".").rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:
        text = f"{name} cannot be imported: {type(error).__name__}: {error}"
        known = _tables()[1].get(protocol, {})
        remedy = known.get("err") or f"Install {name.partition('.')[0]} anew."
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

    Raises NoClientError if fsspec is not installed, or does not know the protocol.
    """
    imported, known = _tables()
    registered = imported.get(protocol)
    if registered is not None and not _is_ours(registered.__module__):
        return registered
    name = known.get(protocol, {}).get("class")
    if name is None or _is_ours(name):
        from difflib import get_close_matches  # noqa: PLC0415  (for mistakes only)

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
    """What fsspec's clients serve of the schemes that nothing else serves. [any thread]"""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._made: dict[str, MadeOnce] = {}
        self._logged: set[str] = set()

    @property
    def why_off(self) -> str:
        """Why it serves nothing; "" where it may serve."""
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
            imported, known = _tables()
        except NoClientError:
            return {}
        found = {scheme: self.owner(scheme) for scheme in sorted({*known, *imported})}
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
        """Forget the filesystems, so that they are made anew."""
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
    name = re.sub(r"[-_.]+", "-", module).lower()
    found = (one for one in installed_distributions(python_path()) if one.name == name)
    distribution = next(found, None)  # none where it has another name
    return module if distribution is None else f"{module} {distribution.version}".rstrip()


def _release(scheme: str) -> str:
    return _release_of(_module_of(scheme) or "fsspec")


def _tables() -> tuple[Mapping[str, Any], Mapping[str, Mapping[str, str]]]:
    """Return the classes that fsspec has imported, and what it knows of protocols.

    Where nothing has imported fsspec, its files are read instead: the import takes 40 ms.
    """
    if not is_installed("fsspec"):
        raise NoClientError("fsspec is not installed", "Run: pip install fsspec")
    if "fsspec" not in sys.modules and (known := _protocols_in_files(python_path())):
        return {}, known
    try:
        from fsspec.registry import known_implementations, registry  # type: ignore[import-untyped]  # noqa: PLC0415
    except Exception as error:
        text = f"fsspec cannot be imported: {type(error).__name__}: {error}"
        raise NoClientError(text, "Run: pip install --force-reinstall fsspec") from error
    return registry, known_implementations


@lru_cache(maxsize=1)
def _protocols_in_files(locations: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Return what fsspec will know of protocols; {} where only importing it shows that.

    Its own are in its module `registry`, which needs no other module of fsspec; those of installed
    packages are entry points, which replace its own.
    """
    found = find_spec("fsspec")
    folder = next(iter(found.submodule_search_locations or ()), "") if found else ""
    path = os.path.join(folder, "registry.py")
    spec = spec_from_file_location("_fsspec_registry", path) if folder else None
    if spec is None or spec.loader is None:  # not a package, or not of files
        return {}
    try:
        registry = module_from_spec(spec)
        spec.loader.exec_module(registry)
        known: dict[str, dict[str, str]] = dict(registry.known_implementations)
        added: dict[str, dict[str, str]] = {}
        installation = Installation(locations)
        for distribution in installation.distributions:
            content = installation.entry_points(distribution)
            if _ENTRY_POINTS.encode() in content:
                for name, value in entries_of_group(content, _ENTRY_POINTS):
                    added.setdefault(name, {"class": value.replace(":", ".")})
    except Exception:  # noqa: BLE001  (of another release of fsspec, or metadata that are broken)
        return {}
    return known | added


def _is_ours(module: str) -> bool:
    return module.startswith("modular_tf.")
