"""The origin of a filesystem, in a form that another process can load.

A service cannot be pickled: it holds loaded libraries. What travels is which plugin serves the
scheme, and with which configuration; the receiving process loads it again. Within the process
that pickled, the very same service is found again.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import ClosedError, UnimplementedError
from modular_tf.fsspec.plugin_file import PluginFile
from modular_tf.service.report import CONFIGURATION_SOURCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.service.default import LoadedOnce
    from modular_tf.service.service import PluginService

_lock = ForkLock()
_keys: WeakKeyDictionary[PluginService, str] = WeakKeyDictionary()
_live: WeakValueDictionary[str, PluginService] = WeakValueDictionary()
_started: dict[tuple[PluginFile | str | None, str], LoadedOnce] = {}
_registered: dict[str, PluginService] = {}


@dataclass(frozen=True)
class Origin:
    """Where a filesystem comes from, within its process.

    Attributes:
        scheme: The scheme.
        plugin_path: The library that serves it; None if a Python object does.
        is_configured: Whether the configuration decides what serves it, and no object of this
            process.
        config: The service's configuration.
        key: Names the service within its process and that process's forked children.
    """

    scheme: str
    plugin_path: str | None
    is_configured: bool
    config: Any
    key: str

    @classmethod
    def of(cls, service: PluginService, scheme: str) -> Origin:
        """Return the origin of a scheme of a service."""
        owner = service.owner(scheme)
        owners = [record for record in service.plugins() if record.name == owner]
        path = next((record.path for record in owners if record.path), None)
        is_configured = service.is_fallback(scheme) or any(
            record.source == CONFIGURATION_SOURCE for record in owners
        )
        return cls(scheme, path, is_configured, service.config, _key_of(service))

    def portable(self, service: PluginService) -> PortableOrigin:
        """Return what another process needs to serve the same scheme.

        Args:
            service: The service that this is the origin of.

        Raises:
            UnimplementedError: A Python object of this process serves the scheme.
        """
        if self.is_configured:
            return PortableOrigin(self.scheme, None, self.config, self.key)
        if self.plugin_path is None:
            raise UnimplementedError(
                f"the filesystem of scheme {self.scheme!r} cannot be pickled: a Python object of "
                "this process serves it, not a plugin that another process could load",
            )
        name = service.schemes()[self.scheme]  # its file may be gone by now
        plugin = PluginFile.of(service.entry(name).plugin)
        return PortableOrigin(self.scheme, plugin, self.config, self.key)


@dataclass(frozen=True)
class PortableOrigin:
    """The origin of a filesystem as it travels to other processes, of other machines too.

    Attributes:
        scheme: The scheme.
        plugin: The library that serves it; None where the configuration decides what does.
        config: The service's configuration.
        key: Names the service within its process and that process's forked children.
    """

    scheme: str
    plugin: PluginFile | None
    config: Any
    key: str

    def live(self) -> PluginService | None:
        """Return the service meant, None in another process."""
        return _live.get(self.key)

    def service(self) -> PluginService:
        """Return the service meant, or one of this process that loads the same plugin.

        Raises:
            NotFoundError: This machine does not have the plugin.
        """
        if (live := self.live()) is not None:
            return live
        if self.plugin is None:
            return service_for(self.scheme, None, self.config)
        return _start(self.plugin, self.config, (), self.plugin.load_in)


def service_for(scheme: str, plugin: str | None, config: Any) -> PluginService:
    """Return the service for a filesystem that was asked for without one.

    Raises:
        ClosedError: The service that was registered for the scheme is closed.
    """
    if plugin is not None or config is not None:
        paths = () if plugin is None else (plugin,)
        return _start(plugin, config, paths, lambda service: service.load(*paths))
    registered = _registered.get(scheme)
    if registered is None:
        from modular_tf.service.default import default_service  # noqa: PLC0415  (loads the native core)

        return default_service()
    if registered.closed:
        raise ClosedError(
            f"the service that fsspec's {scheme!r} was registered with is closed; "
            "call modular_tf.fsspec.register with one that is open"
        )
    return registered


def remember(scheme: str, service: PluginService | None) -> None:
    """Set the service for filesystems of `scheme` that name none; None removes it."""
    if service is None:
        _registered.pop(scheme, None)
    else:
        _registered[scheme] = service


def _start(
    plugin: PluginFile | str | None,
    config: Any,
    paths: tuple[str, ...],
    load: Callable[[PluginService], object],
) -> PluginService:
    """Return this process's own service for one plugin, or for all that discovery finds.

    Args:
        plugin: Tells the services of one configuration apart.
        config: The configuration.
        paths: What the service searches before all other places.
        load: Loads the plugin in the service.
    """
    from modular_tf.service.default import LoadedOnce  # noqa: PLC0415  (the native core)
    from modular_tf.service.service import PluginService  # noqa: PLC0415  (likewise)

    # Who names a plugin gets its schemes, also those that the bundled plugins have otherwise.
    is_bundled = plugin is None or (isinstance(plugin, PluginFile) and plugin.is_bundled)
    once = LoadedOnce(
        lambda: PluginService(config=config, plugin_paths=paths, bundled=is_bundled), load
    )
    options = {} if config is None else {s: f.options for s, f in config.filesystems.items()}
    return _started.setdefault((plugin, repr((config, options))), once).get()


def _key_of(service: PluginService) -> str:
    with _lock:
        key = _keys.setdefault(service, uuid.uuid4().hex)
        _live[key] = service
        return key
