"""The library of a plugin, in a form by which another machine finds its own copy of it.

Installed packages lie elsewhere on another machine, and may be of another version there. What tells
a library is its bytes: a copy with the same hash serves, wherever it is, and no other does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.discovery.file_identity import see
from modular_tf.errors import NotFoundError
from modular_tf.loading.known_packages import known_packages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.service.plugin import Plugin
    from modular_tf.service.plugin_entry import PluginEntry
    from modular_tf.service.service import PluginService

_HASH_DIGITS_SHOWN = 12


@dataclass(frozen=True)
class PluginFile:
    """Which library serves, for a process that may be on another machine.

    Attributes:
        path: Where it is on the machine that says so.
        sha256: Of its bytes, in hexadecimal digits. None for a plugin that comes with this package
            (any machine's own copy serves), and for a file that cannot be read.
        is_bundled: Whether it comes with this package.
        distribution: Normalised name of the distribution that brings it, None for none.
        version: Its version there.
    """

    path: str
    sha256: str | None = None
    is_bundled: bool = False
    distribution: str | None = None
    version: str | None = None

    @classmethod
    def of(cls, plugin: Plugin) -> PluginFile:
        """Return that of a plugin in a service."""
        if plugin.is_bundled:
            return cls(plugin.path, is_bundled=True)
        name, sha256 = plugin.candidate.distribution, _sha256_of(plugin)
        return cls(plugin.path, sha256, distribution=name, version=_version_of(plugin))

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return os.path.basename(self.path)

    def load_in(self, service: PluginService) -> None:
        """Load this library in a service of this machine, or its own copy of it.

        Raises:
            NotFoundError: There is none. The message names what to install.
        """
        service.load(self._found_in(service))

    def _found_in(self, service: PluginService) -> str:
        if os.path.exists(self.path):
            here = service.entry(self.path)
            if self._is_the_same(here.plugin):
                return here.plugin.path
        service.discover()
        for entry in _entries(service):
            if self._is_the_same(entry.plugin):
                return entry.plugin.path
        raise self._missing(service)

    def _is_the_same(self, plugin: Plugin) -> bool:
        if self.is_bundled:
            return plugin.is_bundled and _name_of(plugin) == self.name
        return self.sha256 is not None and _sha256_of(plugin) == self.sha256

    def _missing(self, service: PluginService) -> NotFoundError:
        """Return the error that says what is wanted, what there is, and what to do."""
        wanted = f"{self.name}{_from(self.distribution, self.version)}{_hash_of(self.sha256)}"
        return NotFoundError(
            f"the filesystem was made with the plugin {wanted}, which this machine does not have: "
            f"{self._what_there_is(service)}. {self._remedy()}",
            plugin=self.name,
            path=self.path,
            operation="load",
        )

    def _what_there_is(self, service: PluginService) -> str:
        plugins = [entry.plugin for entry in _entries(service)]
        others = [_described(plugin) for plugin in plugins if _name_of(plugin) == self.name]
        if others:
            return f"what it has by that name is another file: {'; '.join(others)}"
        return f"there is no {self.path}, and no plugin by that name elsewhere"

    def _remedy(self) -> str:
        if self.is_bundled:
            return "Install the same version of modular_tf on each machine"
        if self.distribution is None:
            return (
                "Put the same file on each machine, at that path or where `modular-tf paths` says "
                "that plugins are looked for"
            )
        return f"Install it there: {self._command()}"

    def _command(self) -> str:
        known = {package.name: package.install for package in known_packages()}
        command = known.get(self.distribution or "", f"pip install {self.distribution}")
        return f"{command}=={self.version}" if self.version else command


def _entries(service: PluginService) -> Iterator[PluginEntry]:
    """Yield the plugins that are files, in the service's order."""
    for record in service.plugins():
        if record.path:
            yield service.entry(record.name)


def _sha256_of(plugin: Plugin) -> str | None:
    """Return the hash of a plugin's bytes, which are read where nothing is kept of them."""
    if plugin.sha256 is None and (seen := see(plugin.path)) is not None:
        return seen.sha256
    return plugin.sha256


def _name_of(plugin: Plugin) -> str:
    return os.path.basename(plugin.path)


def _described(plugin: Plugin) -> str:
    name = plugin.candidate.distribution
    text = f"{plugin.path}{_from(name, _version_of(plugin))}{_hash_of(_sha256_of(plugin))}"
    return f"{text}: {plugin.reasons[0].message}" if plugin.reasons else text


def _version_of(plugin: Plugin) -> str | None:
    """Return the version of the distribution that brings a plugin, as it was when it was found."""
    return (plugin.candidate.brought_by or "").partition(" ")[2] or None


def _from(distribution: str | None, version: str | None) -> str:
    return f" of {distribution} {version or ''}".rstrip() if distribution else ""


def _hash_of(sha256: str | None) -> str:
    return f" (sha256 {sha256[:_HASH_DIGITS_SHOWN]}…)" if sha256 else ""
