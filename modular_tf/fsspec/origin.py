"""The origin of a filesystem, in a form that another process can load.

A pickle has the plugin that serves the scheme, by distribution and version or by path, and the
configuration. Within the process that pickled, the same service is found again.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import ClosedError, NotFoundError, UnimplementedError
from modular_tf.loading.published import known_packages
from modular_tf.service.report import CONFIGURATION_SOURCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.service.default import LoadedOnce
    from modular_tf.service.plugin import Plugin
    from modular_tf.service.service import PluginService

_lock = ForkLock()
_keys: WeakKeyDictionary[PluginService, str] = WeakKeyDictionary()
_live: WeakValueDictionary[str, PluginService] = WeakValueDictionary()
_started: dict[tuple[PluginFile | str | None, str], LoadedOnce] = {}
registered: dict[str, PluginService | None] = {}
"""By scheme, the service of filesystems that name none."""


@dataclass(frozen=True)
class PluginFile:
    """Which library serves, for a process that may be on another machine.

    `path` is that on the machine that pickled; of a bundled plugin each machine's own copy serves.
    `distribution` brings it, in this `version` when it was discovered; None for none.
    """

    path: str
    is_bundled: bool
    distribution: str | None
    version: str | None

    @classmethod
    def of(cls, plugin: Plugin) -> PluginFile:
        """Return the file of a plugin in a service."""
        version = (plugin.candidate.brought_by or "").partition(" ")[2] or None
        return cls(plugin.path, plugin.is_bundled, plugin.candidate.distribution, version)

    def serves_for(self, other: PluginFile) -> bool:
        """Return whether this file may be loaded for `other`.

        It has the same name in the same version of the same distribution, or, without one, the
        same path.
        """
        if self.distribution is None and not self.is_bundled:
            return self.path == other.path and not other.is_bundled
        return self._key == other._key

    @property
    def _key(self) -> tuple[object, ...]:
        version = None if self.is_bundled else self.version
        return os.path.basename(self.path), self.is_bundled, self.distribution, version

    def __str__(self) -> str:
        """Return path, distribution and version."""
        by = f" of {self.distribution} {self.version or ''}".rstrip() if self.distribution else ""
        return f"{self.path}{by}"

    def load_in(self, service: PluginService) -> None:
        """Load this library in a service of this machine, or its own copy of it.

        If there is none, the message of `NotFoundError` names what to install.
        """
        if os.path.exists(self.path):
            service.entry(self.path)
        service.discover()
        found = [service.entry(one.name).plugin for one in service.plugins() if one.path]
        files = [PluginFile.of(plugin) for plugin in found]
        same = [file.path for file in files if file.serves_for(self)]
        if same:
            service.load(self.path if self.path in same else same[0])
            return
        name = os.path.basename(self.path)
        others = [
            f"{file}: {plugin.reasons[0].message}" if plugin.reasons else str(file)
            for file, plugin in zip(files, found, strict=True)
            if os.path.basename(file.path) == name
        ]
        if self.is_bundled:
            remedy = "Install the same version of modular_tf on each machine"
        elif self.distribution is None:
            remedy = "Put the same file on each machine, at that path"
        else:
            known = {package.name: package.install for package in known_packages()}
            command = known.get(self.distribution, f"pip install {self.distribution}")
            version = f"=={self.version}" if self.version else ""
            remedy = f"Install it there: {command}{version}"
        raise NotFoundError(
            f"the filesystem was made with the plugin {self}, which this machine does not have; "
            f"it has {'; '.join(others) or 'no plugin of that name'}. {remedy}",
            plugin=name,
            path=self.path,
            operation="load",
        )


@dataclass(frozen=True)
class Origin:
    """The origin of a filesystem, for other processes, of other machines too.

    `plugin` is None where the configuration decides which library serves the scheme. `key`
    identifies the service within its process and that process's forked children.
    """

    scheme: str
    plugin: PluginFile | None
    config: Any
    key: str

    @classmethod
    def of(cls, service: PluginService, scheme: str) -> Origin:
        """Return the origin of a scheme of a service.

        `UnimplementedError` if a Python object of this process serves the scheme.
        """
        owner = service.owner(scheme)
        is_configured = service.is_fallback(scheme) or any(
            one.name == owner and one.source == CONFIGURATION_SOURCE for one in service.plugins()
        )
        if is_configured:
            return cls(scheme, None, service.config, cls.key_of(service))
        if library_of(service, scheme) is None:
            raise UnimplementedError(
                f"the filesystem of scheme {scheme!r} cannot be pickled: a Python object of "
                "this process serves it, not a plugin that another process could load",
            )
        name = service.schemes()[scheme]  # its file may be gone by now
        plugin = PluginFile.of(service.entry(name).plugin)
        return cls(scheme, plugin, service.config, cls.key_of(service))

    @staticmethod
    def key_of(service: PluginService) -> str:
        """Return what identifies a service within its process and its forked children."""
        with _lock:
            key = _keys.setdefault(service, uuid.uuid4().hex)
            _live[key] = service
            return key

    def live(self) -> PluginService | None:
        """Return the same service; None in another process."""
        return _live.get(self.key)

    def service(self) -> PluginService:
        """Return the same service, or one of this process that loads the same plugin.

        `NotFoundError` if this machine does not have the plugin.
        """
        if (live := self.live()) is not None:
            return live
        if self.plugin is None:
            return service_for(self.scheme, None, self.config)
        return _start(self.plugin, self.config, (), self.plugin.load_in)


def library_of(service: PluginService, scheme: str) -> str | None:
    """Return the path of the plugin that serves a scheme; None if a Python object does."""
    owner = service.owner(scheme)
    return next((one.path for one in service.plugins() if one.name == owner and one.path), None)


def service_for(scheme: str, plugin: str | None, config: Any) -> PluginService:
    """Return the service of a filesystem that was made without one.

    `ClosedError` if the service that was registered for the scheme is closed.
    """
    if plugin is not None or config is not None:
        paths = () if plugin is None else (plugin,)
        return _start(plugin, config, paths, lambda service: service.load(*paths))
    service = registered.get(scheme)
    if service is None:
        from modular_tf.service.default import default_service  # noqa: PLC0415  (loads the native core)

        return default_service()
    if service.closed:
        raise ClosedError(
            f"the service that fsspec's {scheme!r} was registered with is closed; "
            "call modular_tf.fsspec.register with one that is open"
        )
    return service


def _start(
    plugin: PluginFile | str | None,
    config: Any,
    paths: tuple[str, ...],
    load: Callable[[PluginService], object],
) -> PluginService:
    """Return this process's own service for one plugin, or for all that discovery finds.

    `paths` are searched before all other places, and `load` loads the plugin.
    """
    from modular_tf.service.default import LoadedOnce  # noqa: PLC0415  (the native core)
    from modular_tf.service.service import PluginService  # noqa: PLC0415  (likewise)

    # A plugin that is named gets its schemes, also those that the bundled plugins have otherwise.
    is_bundled = plugin is None or (isinstance(plugin, PluginFile) and plugin.is_bundled)
    once = LoadedOnce(
        lambda: PluginService(config=config, plugin_paths=paths, bundled=is_bundled), load
    )
    options = {} if config is None else {s: f.options for s, f in config.filesystems.items()}
    return _started.setdefault((plugin, repr((config, options))), once).get()
